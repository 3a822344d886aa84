import type { XStatic } from "typebox/schema";
import { contracts } from "../../contract/contracts.ts";
import type { ContractName } from "../../core/call.ts";
import type { EmulatedEnd } from "./operations.ts";

/**
 * The shape of a world's file, as JSON Schema: what `check` walks, and what the file's type is inferred from. The description of each
 * setting is its comment in the printed example, a sentence a line. `$comment` is quoted in messages.
 */

/** The kinds of money. Prepayment counts to the sum of sales only: the metrics have no sum of its own for it. */
export const paymentKinds = ["cash", "cashless", "credit", "bonuses", "prepayment"] as const;

/** 100 %: no tax contained in a price is higher. The bound also limits how many rates there can be. */
export const rateMax = 10_000;

const text = {
  type: "string",
  pattern: "^[^\\u0000-\\u001f\\u007f]{1,128}$",
  $comment: "it must be 1 to 128 characters without line breaks",
} as const;

/** Names of a map: they aren't empty, as a request's field that is empty counts as absent. */
const names = { pattern: text.pattern, $comment: text.$comment } as const;

/** An id or an amount, of 64 bits in the contracts: JSON's numbers are exact up to 2^53. */
const exact = (comment: string) =>
  ({ type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER, $comment: comment }) as const;

/** One of these words; a type can't know those that are read from a contract. */
function word(words: readonly string[]): { readonly type: "string" } {
  const schema = { type: "string", enum: words } as const;
  return schema;
}

/** A list; 256 entries are more than a shop has of anything. */
const listOf = <const Items>(items: Items) => ({ type: "array", maxItems: 256, items }) as const;

/** Names of a contract's routes without slash, but for those that every terminal answers. */
function operations(service: ContractName, always: readonly string[] = []) {
  const routes = contracts[service].routes.map(({ path }) => path.slice(1)).filter((name) => !always.includes(name));
  return listOf(word(routes));
}

const code = {
  type: "integer",
  minimum: -(2 ** 31),
  maximum: -1,
  $comment: "the bank's codes of errors are negative, and have 32 bits",
} as const;

const moneyKind = { enum: paymentKinds } as const;

/** A list of objects, or "any" in place of one in which everything is. */
const anyOrListOf = <const Items>(items: Items) => ({ anyOf: [any, listOf(items)] }) as const;

const any = { type: "string", enum: ["any"], $comment: `"any" takes all there are, and a list only what is in it` } as const;

/** An object of these fields alone. */
const fields = <const Required, const Properties>(required: Required, properties: Properties) =>
  ({ type: "object", additionalProperties: false, required, properties }) as const;

const taxPrc = {
  type: "integer",
  minimum: 0,
  maximum: rateMax,
  $comment: "it is percent x100, so 1800 is 18 %",
} as const;

const bank = {
  type: "object",
  description: "Cards",
  additionalProperties: false,
  properties: {
    terminals: {
      ...listOf(
        fields(["terminal"], {
          terminal: exact("it is the terminal's number"),
          terminalId: text,
          name: text,
          merchant: exact("it is the merchant's number"),
          merchantId: text,
          merchantName: text,
          mcc: text,
          fiscalId: text,
        }),
      ),
      description:
        "The valid pairs of terminal and merchant: the answer of /terminals. Requests that name no terminal are for the first one. A " +
        "terminal's first merchant is its default. A terminal without any merchant refuses its operations, and isn't in that answer.",
    },
    currencies: {
      type: "object",
      description: "What currency_name may be, each with what else it may be called. All others are refused with -47.",
      minProperties: 1,
      $comment: "name at least one currency",
      propertyNames: names,
      additionalProperties: listOf(text),
    },
    operations: {
      ...operations("bank", ["supported_operations"]),
      description: "The answer of /supported_operations. All others are refused with -80.",
    },
    codes: {
      type: "object",
      description:
        "The code of each end: any negative number, as acquirers have codes of their own. What is left out keeps its code. " +
        "Exhausted: less than this is left of the original.",
      additionalProperties: false,
      properties: { declined: code, cancelled: code, "card-timeout": code, reversed: code, exhausted: code },
    },
  },
} as const;

const qr = {
  type: "object",
  description: "QR and palm payments",
  additionalProperties: false,
  properties: {
    systems: {
      ...listOf(
        fields(["name", "operations", "makesTrans"], {
          name: text,
          operations: { ...operations("qr", ["check_connection"]), description: "a list of its routes, without slash" },
          makesTrans: { type: "boolean", description: "true if /showqrcode returns a trans" },
        }),
      ),
      description:
        "The answer of /check_connection. Without makesTrans /showqrcode returns no trans, and the till sends one of its own.",
    },
  },
} as const;

const fiscal = {
  type: "object",
  description: "Receipts",
  additionalProperties: false,
  properties: {
    operations: {
      ...operations("fiscal"),
      description:
        "The answer of /supported_operations, which is answered in any case. All others are 404 over HTTP, and code 5 on a line.",
    },
    departments: {
      ...anyOrListOf(fields(["departmentCode"], { departmentCode: text, departmentName: text })),
      description: `The departments that a /sale may name, such as [{ "departmentCode": "1", "departmentName": "Bakery" }]. All others are refused with 2.`,
    },
    taxes: {
      ...anyOrListOf(fields(["taxPrc"], { taxCode: text, taxPrc })),
      description: `The taxes that a line may name by code or rate, such as [{ "taxCode": "A", "taxPrc": 1800 }] for 18 %. All others are refused with 2.`,
    },
    payments: {
      ...listOf(moneyKind),
      description: "The kinds of money that are taken, cash for /deposit and /withdraw too. All others are refused with 7.",
    },
    extraPayments: {
      type: "object",
      description: "The codes that extraPayments may have, each with its kind of money. All others are refused with 7.",
      propertyNames: names,
      additionalProperties: moneyKind,
    },
    drawer: {
      ...exact("it is an amount in minor units"),
      description: "The cash in the drawer before the first document, in minor units.",
    },
    currency: {
      ...text,
      description: "The currency_name of each answer. XTS is for tests, so that no receipt is taken for money.",
    },
  },
} as const;

/** The JSON Schema of a world's file. */
export const worldSchema = {
  type: "object",
  additionalProperties: false,
  properties: { bank, qr, fiscal },
} as const;

/** The world as it may be written. */
export type WorldShape = XStatic<typeof worldSchema>;

/** The world as it is written in full. */
export type WorldSettings = {
  readonly [Section in keyof WorldShape]-?: Required<NonNullable<WorldShape[Section]>>;
} & { readonly bank: { readonly codes: Readonly<Record<Exclude<EmulatedEnd, "approved">, number>> } };
