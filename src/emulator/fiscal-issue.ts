import { type Answer, refusal } from "./answer.ts";
import { type Draft, type FiscalDocument, idFields, printError, shownCash, shownDocument } from "./fiscal-document.ts";
import type { Order } from "./fiscal-draft.ts";
import type { Register } from "./fiscal-register.ts";
import { codes, type Fields, int64Max } from "./fiscal-request.ts";
import { type RolledBack, requestDigest } from "./fiscal-rollback.ts";
import type { Shift } from "./fiscal-shift.ts";
import { timestamp } from "./fiscal-time.ts";
import { cashOf } from "./fiscal-totals.ts";
import type { Outcome } from "./outcomes.ts";
import type { World } from "./world.ts";

/** All that the fiscal service remembers. */
export interface Memory {
  readonly register: Register;
  readonly shift: Shift;
  readonly rolledBack: RolledBack;
}

/**
 * Issues a document: finds the one that the request made before, or looks whether shift, drawer and parent allow a new one, and
 * lets it become what the world says. Nothing is kept of a request that is refused.
 */
export class Issue {
  readonly #world: World;
  readonly #memory: Memory;
  readonly #order: Order;
  readonly #fields: Fields;

  constructor(world: World, memory: Memory, order: Order, fields: Fields) {
    this.#world = world;
    this.#memory = memory;
    this.#order = order;
    this.#fields = fields;
  }

  answer(route: string): Answer {
    const known = this.#memory.register.find(this.#order.keys);
    if (known !== undefined) return this.#again(known);
    const draft = this.#allowed();
    const outcome = this.#outcomeOf(route);
    this.#refuseFor(outcome);
    return this.#begin(draft, outcome);
  }

  /**
   * A resend (Endpoints, rules 2 and 3). It is found whether the shift is open or not, as it was carried out already. A key that
   * belongs to an operation of another kind, or to cash of another amount, is refused with 4: the one code that says that two
   * things don't agree, and that the recovery rules don't answer with another resend.
   */
  #again(known: FiscalDocument): Answer {
    const { kind, draft } = this.#order;
    const cash = kind === "deposit" || kind === "withdraw";
    if (known.kind !== kind || (cash && known.sum !== draft.sum)) {
      const state = known.kind === kind ? "this key is that of another amount" : `this key is that of a ${known.kind}`;
      return this.#fields.refuse(codes.amountMismatch, state, "send a new operation under a new documentExtID");
    }
    return known.closed === undefined ? processing(known) : success(known);
  }

  /** Looks at everything that can forbid a new document. */
  #allowed(): Draft {
    const { register, shift } = this.#memory;
    const { keys, draft, docTime } = this.#order;
    if (!shift.open) return this.#refuse(codes.shiftNotOpen, "the shift is not open", "open it with /open_shift");
    if (keys.id !== undefined && register.has(keys.id)) {
      const state = "documentID is that of another documentExtID";
      return this.#refuse(codes.amountMismatch, state, "leave documentID out, the service assigns it");
    }
    if (docTime !== undefined && docTime < shift.openedAt) {
      const state = `docTime is before the shift opened at ${shift.openedAt}`;
      return this.#refuse(codes.docTimeBeforeShift, state, "send the time of the document");
    }
    const parent = this.#parent();
    this.#checkSums();
    return { ...draft, docTime: docTime ?? timestamp(this.#world.now()), parent };
  }

  /** The fiscal number of the sale that is refunded, which must have so much left. */
  #parent(): bigint | undefined {
    const { register } = this.#memory;
    const { draft, parentDocId, parentDocNum } = this.#order;
    if (parentDocId === undefined && parentDocNum === undefined) return undefined;
    const sale = register.referred(parentDocId, parentDocNum);
    if (sale?.kind !== "sale") {
      return this.#refuse(codes.documentNotFound, "no sale has this parentDocID and parentDocNum", "send those of its answer");
    }
    if (sale.closed === undefined) {
      return this.#refuse(codes.documentStillProcessing, "the sale is not closed yet", "ask /check_status until it is");
    }
    const left = sale.sum - register.refundedOf(sale);
    if (draft.sum > left) {
      return this.#refuse(codes.amountMismatch, `only ${left} minor units of the sale are left`, "refund no more than that");
    }
    return sale.closed.num;
  }

  /** The drawer can't give what it doesn't hold, and no sum may leave the 64 bits that the contract has for it. */
  #checkSums(): void {
    const { register, shift } = this.#memory;
    const { draft } = this.#order;
    const cash = cashOf(draft);
    // What is still processing counts where it makes things tighter, as if it were closed already.
    const promised = register
      .processing()
      .map(cashOf)
      .filter((each) => each < 0n === cash < 0n);
    const drawer = promised.reduce((sofar, each) => sofar + each, register.drawer + cash);
    if (cash < 0n && drawer < 0n) {
      this.#refuse(codes.amountMismatch, `the drawer holds ${drawer - cash} minor units`, "give no more cash than that");
    }
    if (drawer > int64Max || register.turnoverOf(shift.id) + draft.sum > int64Max) {
      this.#refuse(codes.amountMismatch, "the sums of the shift would need more than 64 bits", "send less");
    }
  }

  /** What is to become of it. Whoever was rolled back before isn't again. */
  #outcomeOf(route: string): Outcome | undefined {
    const { keys, draft } = this.#order;
    const outcome = this.#world.outcomeOf(route, draft.sum);
    const request = requestDigest(draft.kind, keys, draft.sum);
    const rolledBack = this.#memory.rolledBack.take(request);
    if (rolledBack) this.#world.changed();
    if (outcome?.name !== "internal-error") return outcome;
    if (rolledBack) return undefined;
    this.#memory.rolledBack.add(request);
    this.#world.changed();
    return outcome;
  }

  /** The outcomes of which nothing is kept. */
  #refuseFor(outcome: Outcome | undefined): void {
    const byCard = this.#order.draft.payments.paid.cashless > 0n;
    switch (outcome?.name) {
      case "internal-error":
        this.#refuse(codes.internalError, "an internal error, all is rolled back", "resend it with the same documentExtID");
        break;
      case "not-fiscalized":
        this.#refuse(codes.documentNotFiscalized, "the fiscal core refused the document", "look at the terminal");
        break;
      case "declined":
      case "cancelled":
      case "reversed":
      case "card-timeout":
        if (byCard) this.#refuse(codes.documentNotPaid, `the card payment failed (${outcome.name})`, "ask for another payment");
        break;
      case "no-terminal":
        if (byCard) this.#refuse(codes.bankTerminalNotConnected, "no bank terminal is connected", "connect it, or take cash");
        break;
    }
  }

  #begin(draft: Draft, outcome: Outcome | undefined): Answer {
    const { register, shift } = this.#memory;
    const slow = outcome?.name === "slow";
    const document = register.begin(draft, this.#order.keys.id, slow ? (outcome.checks ?? 1) : 0);
    this.#world.changed();
    if (slow) return processing(document);
    const notPrinted = outcome?.name === "not-printed";
    register.close(document, shift.id, notPrinted ? undefined : timestamp(this.#world.now()));
    if (notPrinted) {
      const message = "Cannot print the document: no paper: ask /check_status, then print it with /check_copy";
      return refusal(codes.documentNotPrinted, message, { ...idFields(document), printError });
    }
    if (outcome?.name === "in-doubt") {
      const message = "Cannot tell what became of the document: an internal error: resend it with the same documentExtID";
      return refusal(codes.internalError, message, extIdFields(document));
    }
    return success(document);
  }

  #refuse(code: number, state: string, cure: string): never {
    return this.#fields.refuse(code, state, cure);
  }
}

function success(document: FiscalDocument): Answer {
  const cash = document.kind === "deposit" || document.kind === "withdraw";
  return { ...(cash ? shownCash(document) : shownDocument(document)), status: "success", code: 0 };
}

/** Code 44: at the start, and to whoever resends instead of asking. */
function processing(document: FiscalDocument): Answer {
  const message = "Cannot answer with the document yet: it is being processed: ask /check_status until docStatus is 1";
  return refusal(codes.documentStillProcessing, message, { ...idFields(document), docStatus: 0 });
}

function extIdFields({ extId }: FiscalDocument) {
  return extId === undefined ? {} : { documentExtID: extId };
}
