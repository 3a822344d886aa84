import type { JsonObject } from "../../../core/json-object.ts";
import { errorAnswer, type ServiceAnswer, zeroPadded } from "../answer.ts";
import type { EmulatedEnd } from "../operations.ts";
import { type BankOperation, type CardOperation, isCardOperation } from "./operation.ts";
import { type BankWorld, pairOf } from "./terminals.ts";

/** The bank's words for an operation's end. Sections named are the bank contract's. */

interface Texts {
  readonly en: string;
  readonly ru: string;
}

interface BankFailure extends Texts {
  readonly status: "ERROR" | "REVERSED";
}

const bankFailures: Readonly<Record<Exclude<EmulatedEnd, "approved">, BankFailure>> = {
  declined: {
    status: "ERROR",
    en: "Cannot complete the operation: the issuer declined it: try another card",
    ru: "Операция не выполнена: отклонена банком: попробуйте другую карту",
  },
  cancelled: {
    status: "ERROR",
    en: "Cannot complete the operation: it was cancelled: start a new one if it is still wanted",
    ru: "Операция не выполнена: отменена: начните новую, если она ещё нужна",
  },
  "card-timeout": {
    status: "ERROR",
    en: "Cannot complete the operation: no card came in time: start a new one",
    ru: "Операция не выполнена: карта не предъявлена вовремя: начните новую",
  },
  reversed: {
    status: "REVERSED",
    en: "Cannot complete the operation: it was approved and then reversed: start a new one",
    ru: "Операция не выполнена: одобрена и затем отменена реверсом: начните новую",
  },
  exhausted: {
    status: "ERROR",
    en: "Cannot complete the operation: less than this is left of the original: look at what was confirmed, refunded or cancelled",
    ru: "Операция не выполнена: остаток исходной операции меньше: проверьте подтверждения, возвраты и отмены",
  },
};

/** A number that every terminal knows for a test, masked as on a receipt. */
const maskedCard = "411111******1111";

/** Ends for which no card was read. */
const cardless: readonly EmulatedEnd[] = ["cancelled", "card-timeout"];

/** How the answer to a status query is to look (Status query request). */
export interface CheckOptions {
  /** A hint: an unknown language is answered in English. */
  readonly language: string | undefined;
  readonly withoutPrintData: boolean;
}

/** The answer of /check about an operation: success without data while it is in progress (States and transitions). */
export function checkAnswer(world: BankWorld, operation: BankOperation, options: CheckOptions): ServiceAnswer {
  if (!operation.ended) return { status: "success" };
  const number = operation.number;
  const common = { txn_id: `EMU${zeroPadded(number, 12)}`, ...(isCardOperation(operation) && cardResultFields(operation)) };
  const more = { data: detailsOf(operation), ...(!options.withoutPrintData && { print_data: printDataOf(operation, world) }) };
  if (operation.end === "approved") {
    const auth = isCardOperation(operation) && { auth: zeroPadded(number % 1_000_000n, 6) };
    return { status: "success", data: { ...common, status: "APPROVED", ...auth, ...more } };
  }
  const failure = bankFailures[operation.end];
  const message = failure[languageOf(options.language)];
  return errorAnswer(world.codes[operation.end], message, {
    data: { ...common, status: failure.status, error: message, ...more },
  });
}

/** "ru", "RU" and "ru-RU" are the same hint. */
function languageOf(hint: string | undefined): keyof Texts {
  return hint?.slice(0, 2).toLowerCase() === "ru" ? "ru" : "en";
}

function cardResultFields(operation: CardOperation): JsonObject {
  const card = !cardless.includes(operation.end) && { card_num: maskedCard };
  return { ...card, rrn: operation.rrn };
}

/** The inner `data`, whose structure the contract leaves open. */
function detailsOf(operation: BankOperation): JsonObject {
  const { route, terminal, merchant } = operation;
  const common = { operation: route.slice(1), terminal, merchant };
  if (!isCardOperation(operation)) return { ...common, ...operation.totals };
  const { amount, tips, cashback, currency } = operation;
  return { ...common, amount, tips, cashback, currency_name: currency };
}

/** A slip for the till to print, which nobody can take for a real one. */
function printDataOf(operation: BankOperation, world: BankWorld): JsonObject {
  const lines = ["EMULATED - NO RECEIPT", pairOf(world, operation)?.merchantName ?? "", operation.route.slice(1).toUpperCase()];
  if (isCardOperation(operation)) {
    lines.push(`${operation.amount} ${operation.currency} (minor units)`, `RRN ${operation.rrn}`);
  } else {
    for (const { kind, currency, count, sum } of operation.totals?.totals ?? []) {
      lines.push(`${kind} ${count} x, ${sum} ${currency} (minor units)`);
    }
  }
  return { lines: [...lines, operation.end.toUpperCase()] };
}
