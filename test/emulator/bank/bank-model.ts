import type { JsonObject } from "../../../src/core/json-object.ts";

/**
 * The bank as a till may picture it: what each request must be answered with, kept as simply as can be. Effects are booked at
 * once and in place, where the emulator derives them, so that the two can't be wrong in the same way by accident.
 */

/** What an amount's last two digits lead to; 03 and 05 concern the start. */
const courses: Readonly<Record<string, readonly [end: string, checks: number]>> = {
  "20": ["ERROR -20", 1],
  "21": ["ERROR -21", 1],
  "22": ["APPROVED", 5],
  "54": ["ERROR -54", 1],
  "30": ["REVERSED -20", 1],
  "44": ["APPROVED", 3],
  "61": ["APPROVED", 1],
  "65": ["APPROVED", 5],
};

const originals: Readonly<Record<string, readonly string[]>> = {
  "/confirm": ["/preauth"],
  "/cancel": ["/sale", "/preauth", "/confirm", "/refund"],
  "/refund": ["/sale", "/confirm"],
};

export interface ModelOperation {
  readonly route: string;
  readonly payId: string | undefined;
  readonly amount: bigint;
  readonly currency: string;
  readonly original: ModelOperation | undefined;
  readonly dueMs: number;
  /** Questions still to be answered "in progress". */
  waits: number;
  end: string;
  ended: boolean;
  aborted: boolean;
  /** Still to be confirmed or given back. */
  left: bigint;
  /** What it gave back, less what was taken back of that. */
  stands: bigint;
  /** Cancelled, or a preauth confirmed. */
  closed: boolean;
  totals: string | undefined;
}

export class BankModel {
  nowMs: number;
  readonly operations: ModelOperation[] = [];
  readonly totals = new Map<string, readonly [count: bigint, sum: bigint]>();
  readonly #failed = new Set<string>();
  /** By rrn: what the till has learnt from /check. */
  readonly learnt = new Map<string, ModelOperation>();

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  /** The answer to a start, as `status code`. */
  start(route: string, body: JsonObject): string {
    this.look();
    const { pay_id, amount = 0n, currency_name: currency = "", rrn } = body;
    const payId = pay_id === undefined ? undefined : String(pay_id);
    if (payId !== undefined && this.operations.some((each) => each.route === route && each.payId === payId)) return "success";
    const original = this.learnt.get(String(rrn));
    const kinds = originals[route];
    if (kinds !== undefined) {
      if (original === undefined || !kinds.includes(original.route)) return "error -16";
      if (original.currency !== currency) return "error -29";
    }
    const digits = String(amount).padStart(2, "0").slice(-2);
    const request = [route, payId, amount, currency, rrn].join();
    if (digits === "05" && !this.#failed.delete(payId === undefined ? request : `${route} ${payId}`)) {
      this.#failed.add(payId === undefined ? request : `${route} ${payId}`);
      return "error -3";
    }
    this.#failed.delete(`${route} ${payId}`);
    const [end, checks] = courses[digits] ?? ["APPROVED", 1];
    this.operations.push({
      ...{ route, payId, amount: BigInt(String(amount)), currency: String(currency), end },
      ...{ original: kinds && original, dueMs: this.nowMs + checks * 2000, waits: checks },
      ...{ ended: false, aborted: false, left: BigInt(String(amount)), stands: 0n, closed: false, totals: undefined },
    });
    return digits === "03" ? "error -3" : "success";
  }

  latest(payId: string): ModelOperation | undefined {
    return this.operations.findLast((each) => each.payId === payId);
  }

  /** The operation that a question ends or finds ended; undefined while it is in progress. */
  check(operation: ModelOperation): boolean {
    this.look();
    if (!operation.ended && operation.waits === 0) this.#finish(operation);
    else if (!operation.ended) operation.waits -= 1;
    else return true;
    return operation.ended;
  }

  /** True when it was in progress, whether it stops or not. */
  abort(operation: ModelOperation): boolean {
    if (operation.ended || operation.amount % 100n !== 22n) return this.stop(operation);
    return true;
  }

  /** True when it was in progress. */
  stop(operation: ModelOperation): boolean {
    if (operation.ended) return false;
    operation.end = "ERROR -21";
    operation.aborted = true;
    this.#finish(operation);
    return true;
  }

  look(): void {
    const due = this.operations.filter((each) => !each.ended && each.dueMs <= this.nowMs);
    for (const each of due.toSorted((one, other) => one.dueMs - other.dueMs)) this.#finish(each);
  }

  #finish(operation: ModelOperation): void {
    operation.ended = true;
    if (operation.end !== "APPROVED") return;
    const { route, original, amount, currency } = operation;
    if (route === "/xreport" || route === "/close-shift") {
      operation.totals = totalsText(this.totals);
      if (route === "/close-shift") this.totals.clear();
      return;
    }
    if (original !== undefined && (original.closed || original.left < amount)) {
      operation.end = "ERROR -20";
      return;
    }
    if (original !== undefined) book(route, original, operation);
    const key = `${route.slice(1)} ${currency}`;
    const [count, sum] = this.totals.get(key) ?? [0n, 0n];
    this.totals.set(key, [count + 1n, sum + amount]);
  }
}

function book(route: string, original: ModelOperation, operation: ModelOperation): void {
  const { amount } = operation;
  original.left -= amount;
  if (route === "/refund") original.stands += amount;
  else original.closed = true;
  if (route === "/cancel" && original.route === "/refund" && original.original !== undefined) {
    original.original.left += amount;
    original.original.stands -= amount;
  }
  if (route === "/cancel" && original.route !== "/refund") original.stands += amount;
}

/** Totals in one text, whatever their order. */
export function totalsText(totals: Iterable<readonly [string, readonly [bigint, bigint]]>): string {
  return [...totals]
    .map(([key, [count, sum]]) => `${key}: ${count} x, ${sum}`)
    .sort()
    .join("; ");
}
