import { errorAnswer, type ServiceAnswer } from "../answer.ts";
import type { FailedOnce } from "../failed-once.ts";
import type { EmulatedOutcome } from "../faults/magic-amounts.ts";
import { int64Max, type RequestReader } from "../request-reader.ts";
import type { ServiceContext } from "../service-context.ts";
import {
  cashFields,
  type DocumentDraft,
  type DocumentKind,
  documentFields,
  type FiscalDocument,
  idFields,
  printError,
} from "./document.ts";
import { readItems } from "./items.ts";
import { cashOnly, readPayments } from "./payments.ts";
import type { DocumentRegister } from "./register.ts";
import { type DocumentKeys, documentKeysOf, fiscalCodes } from "./request.ts";
import { cashOf, type FiscalShift } from "./shift.ts";
import { checkDepartment, checkPayment, type FiscalWorld } from "./shop.ts";
import { optionalDocTime, timestamp } from "./time.ts";
import { noVat } from "./vat.ts";

/**
 * A request for a document, as far as the request alone can tell: the same request always reads the same. Shift, drawer and other documents
 * are looked at when it is issued.
 */
export interface DocumentOrder {
  readonly kind: DocumentKind;
  readonly keys: DocumentKeys;
  readonly draft: Omit<DocumentDraft, "docTime" | "parent">;
  /** The time as sent. */
  readonly docTime: string | undefined;
  readonly parentDocId: string | undefined;
  readonly parentDocNum: string | undefined;
}

/** Texts of both /sale and /refund, and of /sale alone, that only a receipt shows. */
const receiptTexts = ["docNumber", "employeeName", "employeeFirstName", "employeeLastName"];
const saleTexts = ["wsName"];

/** Reads /sale and /refund. */
export function receiptOrder(kind: "sale" | "refund", fields: RequestReader, world: FiscalWorld): DocumentOrder {
  const keys = documentKeysOf(fields);
  const { sum, vat, lines } = readItems(fields, world);
  const payments = readPayments(fields, sum, world);
  const refund = kind === "refund";
  fields.checkTexts(refund ? receiptTexts : [...receiptTexts, ...saleTexts]);
  if (!refund) checkDepartment(fields, world);
  return {
    kind,
    keys,
    draft: { kind, extId: keys.extId, sum, payments, vat, lines },
    docTime: optionalDocTime(fields),
    parentDocId: refund ? fields.optionalId("parentDocID") : undefined,
    parentDocNum: refund ? fields.optionalId("parentDocNum") : undefined,
  };
}

/** Reads /deposit and /withdraw (Limits: amount greater than 0). */
export function cashOrder(kind: "deposit" | "withdraw", fields: RequestReader, world: FiscalWorld): DocumentOrder {
  const keys = documentKeysOf(fields);
  fields.checkTexts(["employeeName"]);
  const sum = fields.amount("amount");
  checkPayment("cash", fields, world);
  return {
    kind,
    keys,
    draft: { kind, extId: keys.extId, sum, payments: cashOnly(sum), vat: noVat, lines: undefined },
    docTime: undefined,
    parentDocId: undefined,
    parentDocNum: undefined,
  };
}

/** All that the fiscal service remembers, and the currency of all its sums. */
export interface FiscalMemory {
  readonly currency: string;
  readonly register: DocumentRegister;
  readonly shift: FiscalShift;
  readonly rolledBack: FailedOnce;
}

/**
 * Issues a document: finds the one that the request made before, or looks whether shift, drawer and parent allow a new one, and gives it
 * the outcome that the context names. Nothing is kept of a request that is refused.
 */
export class DocumentIssue {
  readonly #context: ServiceContext;
  readonly #memory: FiscalMemory;
  readonly #order: DocumentOrder;
  readonly #fields: RequestReader;

  constructor(context: ServiceContext, memory: FiscalMemory, order: DocumentOrder, fields: RequestReader) {
    this.#context = context;
    this.#memory = memory;
    this.#order = order;
    this.#fields = fields;
  }

  answer(route: string): ServiceAnswer {
    const known = this.#memory.register.find(this.#order.keys);
    if (known !== undefined) return this.#again(known);
    const draft = this.#allowed();
    const { keys } = this.#order;
    const outcome = this.#memory.rolledBack.outcomeOf(route, draft.sum, requestKey(draft.kind, keys, draft.sum));
    this.#refuseFor(outcome);
    return this.#begin(draft, outcome);
  }

  /**
   * Answers a resend (Endpoints, rules 2 and 3). The document is found whether the shift is open or not, as it was carried out already. A
   * key that belongs to an operation of another kind, or to cash of another amount, is refused with 4: the one code that says that two
   * things don't agree, and that the recovery rules don't answer with another resend.
   */
  #again(known: FiscalDocument): ServiceAnswer {
    const { kind, draft } = this.#order;
    const cash = kind === "deposit" || kind === "withdraw";
    if (known.kind !== kind || (cash && known.sum !== draft.sum)) {
      const state = known.kind === kind ? "this key is that of another amount" : `this key is that of a ${known.kind}`;
      return this.#fields.refuse(state, "send a new operation under a new documentExtID", fiscalCodes.amountMismatch);
    }
    return known.closed === undefined ? processing(known) : this.#success(known);
  }

  /** Checks everything that can forbid a new document. */
  #allowed(): DocumentDraft {
    const { register, shift } = this.#memory;
    const { keys, draft, docTime } = this.#order;
    if (!shift.open) return this.#fields.refuse("the shift is not open", "open it with /open_shift", fiscalCodes.shiftNotOpen);
    if (keys.id !== undefined && register.has(keys.id)) {
      const state = "documentID is that of another documentExtID";
      return this.#fields.refuse(state, "leave documentID out, the service assigns it", fiscalCodes.amountMismatch);
    }
    if (docTime !== undefined && docTime < shift.openedAt) {
      const state = `docTime is before the shift opened at ${shift.openedAt}`;
      return this.#fields.refuse(state, "send the time of the document", fiscalCodes.docTimeBeforeShift);
    }
    const parent = this.#parent();
    this.#checkSums();
    return { ...draft, docTime: docTime ?? timestamp(this.#context.now()), parent };
  }

  /** The fiscal number of the sale that is refunded, which must have so much left. */
  #parent(): bigint | undefined {
    const { register } = this.#memory;
    const { draft, parentDocId, parentDocNum } = this.#order;
    if (parentDocId === undefined && parentDocNum === undefined) return undefined;
    const sale = register.referred(parentDocId, parentDocNum);
    if (sale?.kind !== "sale") {
      return this.#fields.refuse(
        "no sale has this parentDocID and parentDocNum",
        "send those of its answer",
        fiscalCodes.documentNotFound,
      );
    }
    // 44 would say that the refund itself goes on, of which nothing is begun.
    if (sale.closed === undefined) {
      return this.#fields.refuse(
        "the sale is not closed yet",
        "ask /check_status of the sale first",
        fiscalCodes.documentNotFiscalized,
      );
    }
    const left = sale.sum - register.refundedOf(sale);
    if (draft.sum > left) {
      return this.#fields.refuse(
        `only ${left} minor units of the sale are left`,
        "refund no more than that",
        fiscalCodes.amountMismatch,
      );
    }
    return sale.closed.num;
  }

  /**
   * Refuses sums that can't be: the drawer can't give what it doesn't hold, and no sum may leave the 64 bits that the contract has for it.
   */
  #checkSums(): void {
    const { register, shift } = this.#memory;
    const { draft } = this.#order;
    const cash = cashOf(draft);
    // Processing documents count if that makes things tighter, as if they were closed already.
    const promised = register
      .processing()
      .map(cashOf)
      .filter((each) => each < 0n === cash < 0n);
    const drawer = promised.reduce((sofar, each) => sofar + each, register.drawer + cash);
    if (cash < 0n && drawer < 0n) {
      this.#fields.refuse(
        `the drawer holds ${drawer - cash} minor units`,
        "give no more cash than that",
        fiscalCodes.amountMismatch,
      );
    }
    if (drawer > int64Max || register.turnoverOf(shift.id) + draft.sum > int64Max) {
      this.#fields.refuse("the sums of the shift would need more than 64 bits", "send less", fiscalCodes.amountMismatch);
    }
  }

  /** Refuses for outcomes that keep nothing. */
  #refuseFor(outcome: EmulatedOutcome | undefined): void {
    const byCard = this.#order.draft.payments.paid.cashless > 0n;
    switch (outcome?.name) {
      case "internal-error":
        this.#fields.refuse(
          "an internal error, all is rolled back",
          "resend it with the same documentExtID",
          fiscalCodes.internalError,
        );
        break;
      case "not-fiscalized":
        this.#fields.refuse("the fiscal core refused the document", "look at the terminal", fiscalCodes.documentNotFiscalized);
        break;
      case "declined":
      case "cancelled":
      case "reversed":
      case "card-timeout":
        if (byCard)
          this.#fields.refuse(
            `the card payment failed (${outcome.name})`,
            "ask for another payment",
            fiscalCodes.documentNotPaid,
          );
        break;
      case "no-terminal":
        if (byCard)
          this.#fields.refuse(
            "no bank terminal is connected",
            "connect it, or take cash",
            fiscalCodes.bankTerminalNotConnected,
          );
        break;
    }
  }

  #begin(draft: DocumentDraft, outcome: EmulatedOutcome | undefined): ServiceAnswer {
    const { register, shift } = this.#memory;
    const slow = outcome?.name === "slow";
    const document = register.begin(draft, this.#order.keys.id, slow ? BigInt(outcome.checks ?? 1) : 0n);
    this.#context.changed();
    if (slow) return processing(document);
    const notPrinted = outcome?.name === "not-printed";
    register.close(document, shift.id, notPrinted ? undefined : timestamp(this.#context.now()));
    if (notPrinted) {
      const message = "Cannot print the document: no paper: ask /check_status, then print it with /check_copy";
      return errorAnswer(fiscalCodes.documentNotPrinted, message, { ...idFields(document), printError });
    }
    if (outcome?.name === "in-doubt") {
      const message = "Cannot tell what became of the document: an internal error: resend it with the same documentExtID";
      return errorAnswer(fiscalCodes.internalError, message, extIdFields(document));
    }
    return this.#success(document);
  }

  #success(document: FiscalDocument): ServiceAnswer {
    const cash = document.kind === "deposit" || document.kind === "withdraw";
    const fields = cash ? cashFields(document) : documentFields(document, this.#memory.currency);
    return { ...fields, status: "success", code: 0 };
  }
}

/** Answers code 44: at the start, and to a till that resends instead of asking. */
function processing(document: FiscalDocument): ServiceAnswer {
  const message = "Cannot answer with the document yet: it is being processed: ask /check_status until docStatus is 1";
  return errorAnswer(fiscalCodes.documentStillProcessing, message, { ...idFields(document), docStatus: 0 });
}

function extIdFields({ extId }: FiscalDocument) {
  return extId === undefined ? {} : { documentExtID: extId };
}

/** Tells a request from others. One without a key is identified by its amount: more can't be known of it. */
function requestKey(kind: DocumentKind, { extId, id }: DocumentKeys, sum: bigint): string {
  const key = extId !== undefined ? `documentExtID ${extId}` : id !== undefined ? `documentID ${id}` : `sum ${sum}`;
  return `${kind} ${key}`;
}
