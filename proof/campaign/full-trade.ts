import { contracts, routeOf } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import type { OperationResult } from "../../src/core/followed.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { bodyText } from "../../src/envelope/body-text.ts";
import { parseObject } from "../../src/envelope/json.ts";
import { readFormLine, readTextLine } from "../../src/envelope/request.ts";
import type { Framing } from "../../src/wire/decoded.ts";

/** What tills and terminals of each contract say to each other in the full worlds. */

/** How what was carried out ends. `gone`: a fiscal document that was taken back before it was closed, and is forgotten. */
export type End = "approved" | "declined" | "reversed" | "closed" | "unprinted" | "gone";

/** How a request stands: it was refused, or what was carried out goes on or ended so. */
export type Stand = End | "in progress" | "refused";

/** What a terminal has of an operation. */
export interface Entry {
  /** The number that it gave; where the till named it, that name. */
  readonly id: string;
  readonly key: string;
  readonly path: string;
  /** By which it is told apart from the others of its path. */
  readonly operation: string;
  readonly amount: string | undefined;
  end: End;
  readonly beganMs: number;
  /** When it ends. */
  atMs: number;
  /** How many copies of its receipt were printed. */
  copies: number;
}

/** A request, as its terminal reads it. */
export interface Request {
  readonly path: string;
  readonly json: JsonObject;
  readonly key: string;
  readonly operation: string;
}

export interface Trade {
  readonly contract: ContractName;
  /** Paths: of what moves money, of what is sent under the same key behind it, of the question about both. */
  readonly sale: string;
  readonly back: string;
  readonly question: string;
  /** How an operation ends where it goes well, badly, or otherwise. */
  readonly ends: { readonly good: End; readonly bad: End; readonly other: End };
  /** Whether an operation is answered by its end, where that comes in time; else it is asked about. */
  readonly startEnds: boolean;
  /** Whether the question's "there is none" ends what was accepted. */
  readonly denialEnds: boolean;
  /** Whether the second one needs the first. */
  readonly backNeedsSale: boolean;
  /** Whether several of the second one may stand under the key of the first, one of each amount. */
  readonly backIsByAmount: boolean;
  /** Whether the second one's repetition under its key is the one that there is, as the first one's is. */
  readonly backIsIdempotent: boolean;
  /** @param name By which the contract's question names it beside its key, where it has such a name. */
  body(path: string, key: string, amount: number, name: string | undefined): JsonObject;
  /** Refused before anything was begun. */
  readonly refused: string;
  /** There is no such operation. */
  readonly absent: string;
  /** A gateway's word for an operation of which it doesn't know how it ends; undefined where it says nothing. */
  unsure(path: string, end: keyof Trade["ends"]): string | undefined;
  /** The answer to a start. */
  started(entry: Entry, stand: Stand): string;
  /** The answer to a question. */
  found(entry: Entry, stand: Stand): string;
}

const success = (more: object = {}) => JSON.stringify({ status: "success", ...more });
const error = (code: number, more: object = {}) => JSON.stringify({ status: "error", code, ...more });

/** Bank: bank.md, Endpoints and Errors. */
const bankTrade: Trade = {
  contract: "bank",
  sale: "/sale",
  back: "/cancel",
  question: "/check",
  ends: { good: "approved", bad: "declined", other: "reversed" },
  startEnds: false,
  denialEnds: false,
  backNeedsSale: true,
  backIsByAmount: false,
  backIsIdempotent: false,
  body: (path, key, amount) => (path === "/check" ? { pay_id: key } : { pay_id: key, amount }),
  refused: error(-29),
  absent: error(-15),
  unsure: () => error(-3),
  started: () => success(),
  found({ id }, stand) {
    if (stand === "approved") return success({ data: { status: "APPROVED", txn_id: id } });
    if (stand === "in progress") return success();
    return error(-20, { data: { status: stand === "reversed" ? "REVERSED" : "ERROR", txn_id: id } });
  },
};

/** The same of what is set aside first, and taken later (rule 4); refused by a code that says no more than that. */
const preauthTrade: Trade = { ...bankTrade, sale: "/preauth", back: "/confirm", refused: error(-21) };

/** The same, given back under the sale's own pay_id, which is the idempotency key (What the service does). */
const bankRefundTrade: Trade = { ...bankTrade, back: "/refund", backIsIdempotent: true };

/** Fiscal: fiscal.md, States and transitions, and Errors. */
const fiscalTrade: Trade = {
  contract: "fiscal",
  sale: "/sale",
  back: "/refund",
  question: "/check_status",
  ends: { good: "closed", bad: "gone", other: "unprinted" },
  startEnds: true,
  denialEnds: false,
  backNeedsSale: false,
  backIsByAmount: false,
  backIsIdempotent: true,
  body(path, key, amount) {
    if (path === "/check_status" || path === "/abort") return { documentExtID: key };
    return path === "/deposit" ? { documentExtID: key, amount } : { documentExtID: key, items: [{ itemAmount: amount }] };
  },
  refused: error(6),
  absent: error(9),
  // The code alone would be a terminal's own word, after which it has nothing (docs/limits.md)
  unsure: () => error(5, { outcome: "unknown" }),
  started({ id, key }, stand) {
    if (stand === "gone") return error(8);
    if (stand === "unprinted") return error(15, { printError: 3, documentExtID: key });
    return success({ code: 0, documentID: id, docStatus: stand === "closed" ? 1 : 0, documentExtID: key });
  },
  found({ id, key }, stand) {
    const document = { code: 0, documentID: id, documentExtID: key };
    if (stand === "in progress") return error(44, { documentExtID: key });
    return success({ ...document, docStatus: 1, ...(stand === "unprinted" && { printError: 3 }) });
  },
};

/** The same of cash, of which a success says all, and whose documents are rolled back; refused by a code that says no more than that. */
const cashTrade: Trade = {
  ...fiscalTrade,
  sale: "/deposit",
  denialEnds: true,
  refused: error(7),
  unsure: (path, end) => (path === "/deposit" && end === "good" ? error(44) : error(5, { outcome: "unknown" })),
  started(entry, stand) {
    if (entry.path !== "/deposit") return fiscalTrade.started(entry, stand);
    if (stand === "gone") return error(4);
    return stand === "closed" ? success({ code: 0, documentID: entry.id }) : fiscalTrade.started(entry, stand);
  },
};

/** QR: qr.md, States and Flow rules. Each start shows a code of its own, by which alone it can be asked about. */
const qrTrade: Trade = {
  contract: "qr",
  sale: "/showqrcode",
  back: "/cancel",
  question: "/check",
  ends: { good: "approved", bad: "declined", other: "approved" },
  startEnds: false,
  denialEnds: true,
  backNeedsSale: true,
  backIsByAmount: true,
  backIsIdempotent: false,
  body(path, key, amount, name) {
    const named = { pay_id: key, pay_system: "PALM", ...(name !== undefined && { trans: name }) };
    return path === "/check" ? named : { ...named, amount, currency: "978", currency_name: "EUR", rrn: "1" };
  },
  refused: error(1, { message: "refused" }),
  absent: error(1, { message: "no such payment" }),
  // What is given back goes on behind a success that lacks the rrn, or behind nothing
  unsure(path, end) {
    if (path === "/showqrcode") return success({ message: "in progress" });
    return end === "good" ? undefined : success();
  },
  started({ id, path }, stand) {
    return path === "/showqrcode" ? success({ data: { trans: id } }) : endOfQr(id, stand);
  },
  found({ id }, stand) {
    return stand === "in progress" ? success() : endOfQr(id, stand);
  },
};

const endOfQr = (id: string, stand: Stand) =>
  stand === "approved" ? success({ data: { rrn: id } }) : error(1, { message: "failed" });

/** The same, given back by the other route for it. */
const qrRefundTrade: Trade = { ...qrTrade, back: "/refund" };

/** A payment with its receipt's data behind it, of which a success says all (Endpoints, responses). */
const qrReceiptTrade: Trade = {
  ...qrTrade,
  back: "/final_confirm",
  backIsByAmount: false,
  unsure: (path, end) => (path === "/final_confirm" ? undefined : qrTrade.unsure(path, end)),
  started: (entry, stand) =>
    entry.path === "/final_confirm" && stand === "approved" ? success() : qrTrade.started(entry, stand),
};

export const trades = {
  ...{ bank: bankTrade, preauth: preauthTrade, bankRefund: bankRefundTrade, fiscal: fiscalTrade, cash: cashTrade },
  ...{ qr: qrTrade, qrRefund: qrRefundTrade, qrReceipt: qrReceiptTrade },
} as const;

export type TradeName = keyof typeof trades;

/** An answer to a question that is about another operation: it names another key. */
export function foundOther(trade: Trade): string {
  const [key, end] = ["other", trade.ends.good];
  const entry = { id: "0", key, path: trade.sale, operation: key, amount: undefined, end, beganMs: 0, atMs: 0, copies: 0 };
  return JSON.stringify({ ...JSON.parse(trade.found(entry, end)), [keyField(trade)]: key });
}

/** What names an operation among those of its path: its key, where several stand under one key with its amount. */
export const operationOf = ({ back, backIsByAmount }: Trade, path: string, key: string, amount: number) =>
  path === back && backIsByAmount ? `${key} of ${amount}` : key;

/** The field that names an operation. */
const keyField = ({ contract, sale }: Trade) => routeOf(contracts[contract], sale)?.key ?? "";

/** Reads a request from the line. */
export function readRequest(trade: Trade, framing: Framing, text: string): Request {
  const contract = contracts[trade.contract];
  const payload = Buffer.from(text);
  const { route: path = "", body = [] } = (framing === "stx" ? readFormLine(payload) : readTextLine(payload)) ?? {};
  const json = parseObject(bodyText(contract, body));
  if (json === undefined) throw new Error(`a request without a JSON object: ${text}`);
  const key = String(json[keyField(trade)]);
  return { path, json, key, operation: operationOf(trade, path, key, Number(json["amount"])) };
}

/** Words that a till may be given where one of its key's sales stands so; what isn't here promises nothing. */
const allowed: Readonly<Partial<Record<OperationResult, readonly Stand[]>>> = {
  approved: ["approved"],
  declined: ["declined", "refused"],
  reversed: ["reversed"],
  closed: ["closed"],
  unprinted: ["unprinted"],
};

/** Where one of a key's sales stands so, none of them may be called declined or failed. */
export const isGood = (stand: Stand) => ["approved", "closed", "unprinted", "in progress"].includes(stand);

/** Whether a word may be said of a key, as its sales stand. */
export function isAllowed(word: OperationResult, stands: readonly Stand[]): boolean {
  if (word === "failed") return stands.every((stand) => stand === "refused" || stand === "gone");
  const may = allowed[word];
  return may === undefined || stands.some((stand) => may.includes(stand));
}

/** Keys of tills with the typed client: no other has them. */
export const clientKey = (number: number) => `c${number}`;
export const isClientKey = (key: string) => key.startsWith("c");
