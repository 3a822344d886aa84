import type { JsonObject } from "../core/json-object.ts";
import { type Answer, reference, refusal } from "./answer.ts";
import { savedTotals } from "./bank-batch.ts";
import { type BankOperation, type CardOperation, isCard } from "./bank-operation.ts";
import { pairOf } from "./bank-terminals.ts";
import type { End } from "./operations.ts";

/** How the bank tells what became of an operation. Sections named are the bank contract's. */

interface Words {
  readonly en: string;
  readonly ru: string;
}

interface Failure extends Words {
  readonly status: "ERROR" | "REVERSED";
  /** Errors, known codes. */
  readonly code: number;
}

const failures: Readonly<Record<Exclude<End, "approved">, Failure>> = {
  declined: {
    status: "ERROR",
    code: -20,
    en: "Cannot complete the operation: the issuer declined it: try another card",
    ru: "Операция не выполнена: отклонена банком: попробуйте другую карту",
  },
  cancelled: {
    status: "ERROR",
    code: -21,
    en: "Cannot complete the operation: it was cancelled: start a new one if it is still wanted",
    ru: "Операция не выполнена: отменена: начните новую, если она ещё нужна",
  },
  "card-timeout": {
    status: "ERROR",
    code: -54,
    en: "Cannot complete the operation: no card came in time: start a new one",
    ru: "Операция не выполнена: карта не предъявлена вовремя: начните новую",
  },
  // The contract names no code for it: what was approved was taken back, so that it ends as if it had been declined
  reversed: {
    status: "REVERSED",
    code: -20,
    en: "Cannot complete the operation: it was approved and then reversed: start a new one",
    ru: "Операция не выполнена: одобрена и затем отменена реверсом: начните новую",
  },
  exhausted: {
    status: "ERROR",
    code: -20,
    en: "Cannot complete the operation: less than this is left of the original: look at what was confirmed, refunded or cancelled",
    ru: "Операция не выполнена: остаток исходной операции меньше: проверьте подтверждения, возвраты и отмены",
  },
};

/** A number that every terminal knows for a test, masked as on a receipt. */
const maskedCard = "411111******1111";

/** Ends that no card was read for. */
const cardless: readonly End[] = ["cancelled", "card-timeout"];

/** How the answer is wanted (Status query request). */
export interface ResultOptions {
  /** A hint: what isn't known is answered in English. */
  readonly language: string | undefined;
  readonly withoutPrintData: boolean;
}

/** What /check says of an operation: success without data while it is in progress (States and transitions). */
export function resultOf(operation: BankOperation, options: ResultOptions): Answer {
  if (!operation.ended) return { status: "success" };
  const number = operation.number;
  const common = { txn_id: `EMU${reference(number, 12)}`, ...(isCard(operation) && cardFields(operation)) };
  const more = { data: detailsOf(operation), ...(!options.withoutPrintData && { print_data: printDataOf(operation) }) };
  if (operation.end === "approved") {
    const auth = isCard(operation) && { auth: reference(number % 1_000_000, 6) };
    return { status: "success", data: { ...common, status: "APPROVED", ...auth, ...more } };
  }
  const failure = failures[operation.end];
  const message = failure[languageOf(options.language)];
  return refusal(failure.code, message, { data: { ...common, status: failure.status, error: message, ...more } });
}

/** "ru", "RU" and "ru-RU" are the same hint. */
function languageOf(hint: string | undefined): keyof Words {
  return hint?.slice(0, 2).toLowerCase() === "ru" ? "ru" : "en";
}

function cardFields(operation: CardOperation): JsonObject {
  const card = !cardless.includes(operation.end) && { card_num: maskedCard };
  return { ...card, rrn: operation.rrn };
}

/** The inner `data`, whose structure the contract leaves open. */
function detailsOf(operation: BankOperation): JsonObject {
  const { route, terminal, merchant } = operation;
  const common = { operation: route.slice(1), terminal, merchant };
  if (!isCard(operation)) return { ...common, ...(operation.totals !== undefined && savedTotals(operation.totals)) };
  const { amount, tips, cashback, currency } = operation;
  return { ...common, amount, tips, cashback, currency_name: currency };
}

/** A slip for the till to print, which nobody can take for a real one. */
function printDataOf(operation: BankOperation): JsonObject {
  const lines = ["EMULATED - NO RECEIPT", pairOf(operation)?.merchantName ?? "", operation.route.slice(1).toUpperCase()];
  if (isCard(operation)) {
    lines.push(`${operation.amount} ${operation.currency} (minor units)`, `RRN ${operation.rrn}`);
  } else {
    for (const { kind, currency, count, sum } of operation.totals?.totals ?? []) {
      lines.push(`${kind} ${count} x, ${sum} ${currency} (minor units)`);
    }
  }
  return { lines: [...lines, operation.end.toUpperCase()] };
}
