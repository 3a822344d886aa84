import type { ContractName } from "../../src/core/call.ts";

/**
 * Services as their contracts describe them, as small as they can be, with a record of what really happened. They are meaner than
 * the emulator where the contracts leave room: what may not be resent is carried out as often as it arrives.
 */

/** What becomes of one operation. */
export interface Fate {
  readonly end: "good" | "bad" | "reversed";
  /** Questions answered "in progress" first. */
  readonly checks: number;
  /**
   * How the start is answered: truly; with an error though it runs; or with an error, the first time, and nothing is begun; or each time, by a
   * code that proves that, or one that doesn't (`plain`).
   */
  readonly start: "true" | "in-doubt" | "fails-once" | "refused" | "plain";
  /** Whether a start's answer names what the question needs (qr): each, the first alone, or none, for there is nothing to name. */
  readonly tells: "each" | "first" | "none";
  /** A success says that the document is open still; one that fails is rolled back later (fiscal's cash). */
  readonly opens: boolean;
  /** Printing fails (fiscal). */
  readonly unprinted: boolean;
}

export type Body = Readonly<Record<string, unknown>>;

interface Running {
  readonly key: string;
  left: number;
  /** The answer of the end was reached. */
  ended: boolean;
}

/** By how a start is answered. */
type Codes = Readonly<Partial<Record<Fate["start"], number>>>;

const codesOfNothing: Readonly<Record<"bank" | "fiscal", Codes>> = {
  bank: { refused: -47, plain: -21 },
  fiscal: { refused: 6, plain: 7 },
};

const ok = (more: object = {}) => ({ status: "success", ...more });
const error = (code: number, more: object = {}) => ({ status: "error", code, message: "no", ...more });

/** One service with one operation that a test follows. */
export interface Model {
  answer(route: string, body: Body): object;
  /** How often the operation was carried out, or is bound to be. */
  readonly effects: number;
  readonly prints: number;
}

abstract class Base implements Model {
  readonly fate: Fate;
  running: Running | undefined;
  begun = 0;
  starts = 0;
  prints = 0;

  constructor(fate: Fate) {
    this.fate = fate;
  }

  get effects(): number {
    return this.fate.end === "good" ? this.begun : 0;
  }

  abstract answer(route: string, body: Body): object;

  /** Begins, unless it has: the same key is the same operation. */
  protected begin(key: string, again: boolean): void {
    if (!again && this.running?.key === key) return;
    this.begun++;
    this.running = { key, left: this.fate.checks, ended: this.fate.checks === 0 };
  }

  protected ask(running: Running): boolean {
    if (running.left > 0) running.left--;
    else running.ended = true;
    return running.ended;
  }

  /** Whether this start is answered with an error that leaves nothing behind. */
  protected comesToNothing(): boolean {
    this.starts++;
    const { start } = this.fate;
    return start === "refused" || start === "plain" || (start === "fails-once" && this.starts === 1);
  }
}

/** bank.md. `/confirm` and `/cancel` are carried out each time they come; an original may stand under the same pay_id. */
export class BankModel extends Base {
  readonly #original: boolean;
  readonly #once: boolean;

  constructor(fate: Fate, route: string, original: boolean) {
    super(fate);
    this.#original = original;
    this.#once = route === "/confirm" || route === "/cancel";
  }

  answer(route: string, body: Body): object {
    const key = String(body["pay_id"]);
    if (route === "/check") return this.#check(key);
    if (this.comesToNothing()) return error(codesOfNothing.bank[this.fate.start] ?? -3);
    this.begin(key, this.#once);
    return this.fate.start === "in-doubt" ? error(-3) : ok();
  }

  #check(key: string): object {
    const { running } = this;
    if (running?.key !== key) {
      return this.#original ? ok({ data: { txn_id: "1", status: "APPROVED", rrn: "1" } }) : error(-15);
    }
    if (!this.ask(running)) return ok();
    const { end } = this.fate;
    if (end === "good") return ok({ data: { txn_id: "2", status: "APPROVED", rrn: "2" } });
    return error(-20, { data: { txn_id: "2", status: end === "bad" ? "ERROR" : "REVERSED" } });
  }
}

/** qr.md. The giving back is carried out each time it comes. */
export class QrModel extends Base {
  answer(route: string, body: Body): object {
    const key = String(body["pay_id"]);
    if (route === "/check") return this.#check(key, String(body["trans"]));
    if (route !== "/showqrcode") {
      if (this.fate.end !== "good" || this.fate.start === "refused" || this.fate.start === "plain") return error(1);
      this.begin(key, true);
      return ok({ data: { rrn: "9" } });
    }
    if (this.comesToNothing()) return error(1);
    this.begin(key, false);
    if (this.fate.start === "in-doubt" && this.starts === 1) return error(1);
    const told = this.fate.tells === "each" || (this.fate.tells === "first" && this.starts === 1);
    return told ? ok({ data: { trans: "T-1" } }) : ok();
  }

  #check(key: string, trans: string): object {
    const { running } = this;
    if (running?.key !== key || (this.fate.tells !== "none" && trans !== "T-1")) return error(1);
    if (!this.ask(running)) return ok();
    return this.fate.end === "good" ? ok({ data: { rrn: "77" } }) : error(1);
  }
}

/** fiscal.md. Cash that fails is rolled back, and found no more. */
export class FiscalModel extends Base {
  answer(route: string, body: Body): object {
    const key = String(body["documentExtID"]);
    if (route === "/check_copy") {
      this.prints++;
      return this.fate.end === "good" ? ok() : error(9);
    }
    if (route === "/check_status") return this.#check(key);
    if (this.comesToNothing()) return error(codesOfNothing.fiscal[this.fate.start] ?? 5);
    const isCash = route === "/deposit" || route === "/withdraw";
    const isOpen = isCash && this.fate.opens && this.fate.checks > 0;
    if (this.fate.end !== "good" && !isOpen) return error(8);
    this.begin(key, false);
    if (this.fate.start === "in-doubt" && this.starts === 1) return error(5);
    const { running } = this;
    if (running !== undefined && !running.ended) {
      if (!isCash) return error(44);
      return isOpen ? ok({ docStatus: 0, documentID: 5 }) : ok();
    }
    if (this.fate.unprinted) return error(15, { printError: 1 });
    return this.#document();
  }

  #check(key: string): object {
    const { running } = this;
    if (running?.key !== key) return error(9);
    if (!this.ask(running)) return ok({ docStatus: 0, documentID: 5 });
    if (this.fate.end === "good") return this.#document();
    this.running = undefined;
    return error(9);
  }

  #document(): object {
    return ok({
      docStatus: 1,
      documentID: 5,
      documentExtID: this.running?.key,
      ...(this.fate.unprinted ? { printError: 1 } : {}),
    });
  }
}

export function modelOf(service: ContractName, route: string, fate: Fate, original: boolean): Model {
  if (service === "bank") return new BankModel(fate, route, original);
  return service === "qr" ? new QrModel(fate) : new FiscalModel(fate);
}
