import { fiscal } from "../../../contract/fiscal.ts";
import type { JsonObject } from "../../../core/json-object.ts";
import { errorAnswer, type ServiceAnswer } from "../answer.ts";
import { FailedOnce } from "../failed-once.ts";
import type { LedgerEntry } from "../ledger.ts";
import { answerOrRefusal, RequestReader } from "../request-reader.ts";
import type { EmulatedService, ServiceContext } from "../service-context.ts";
import { builtInWorld } from "../world.ts";
import { copyFields, documentFields, type FiscalDocument, fiscalIdOf } from "./document.ts";
import { cashOrder, DocumentIssue, type DocumentOrder, type FiscalMemory, receiptOrder } from "./issue.ts";
import { DocumentRegister, type SavedRegister } from "./register.ts";
import { type DocumentKeys, documentKeysOf, fiscalCodes, refusalCodes } from "./request.ts";
import { addToTotals, type FiscalShift, firstShift, fiscalShiftId, noTotals, shiftFields, totalsFields } from "./shift.ts";
import type { FiscalWorld } from "./shop.ts";
import { dateOf, optionalDay, optionalDocTime, timestamp } from "./time.ts";

/**
 * The emulated fiscal service: documents, the shift they count in, and the drawer (fiscal contract, States and transitions). Its reports
 * always are the sums of its documents. If the contract leaves a choice open, it is made at the rule, and the comment there says so.
 *
 * Printers and cards are none of its business: the outcome that its context names, when a document begins, says what they do.
 */
export function emulatedFiscal(context: ServiceContext, world = builtInWorld.fiscal): EmulatedService {
  return new EmulatedFiscal(context, world);
}

/** The memory of the fiscal service. */
interface SavedFiscal extends SavedRegister {
  readonly shift: FiscalShift;
  /** As `FailedOnce` saves them. */
  readonly rolledBack: readonly string[];
}

class EmulatedFiscal implements EmulatedService<SavedFiscal> {
  readonly #context: ServiceContext;
  readonly #world: FiscalWorld;
  #memory: FiscalMemory;

  constructor(context: ServiceContext, world: FiscalWorld) {
    this.#context = context;
    this.#world = world;
    this.#memory = this.#fresh();
  }

  answer(route: string, body: JsonObject): ServiceAnswer {
    return answerOrRefusal(() => this.#answer(route, new RequestReader(route, body, refusalCodes), body));
  }

  ledger(): readonly LedgerEntry[] {
    const documents = [...this.#memory.register.all()];
    return documents.map(({ id, kind, extId: key, sum: amount, closed, lines, payments, parent }) => {
      const original = parent === undefined ? undefined : documents.find((each) => each.closed?.num === parent);
      const end = closed === undefined ? "in progress" : closed.printTime === undefined ? "unprinted" : "closed";
      return {
        id: String(id),
        route: `/${kind}`,
        key,
        amount,
        end,
        cash: payments.paid.cash,
        ...(original !== undefined && { of: String(original.id) }),
        ...(lines !== undefined && { articles: lines.map(articleOf) }),
      };
    });
  }

  saved(): SavedFiscal {
    const { register, shift, rolledBack } = this.#memory;
    return { shift, ...register.saved(), rolledBack: rolledBack.saved() };
  }

  restore({ shift, rolledBack, ...register }: SavedFiscal): void {
    const { currency } = this.#world;
    const restored = { register: DocumentRegister.restored(register), rolledBack: new FailedOnce(this.#context, rolledBack) };
    this.#memory = { currency, shift, ...restored };
  }

  reset(): void {
    this.#memory = this.#fresh();
    this.#context.changed();
  }

  #fresh(): FiscalMemory {
    const { currency, drawer } = this.#world;
    const rolledBack = new FailedOnce(this.#context);
    return { currency, shift: firstShift(this.#time()), register: new DocumentRegister(BigInt(drawer)), rolledBack };
  }

  #time(): string {
    return timestamp(this.#context.now());
  }

  #answer(route: string, fields: RequestReader, body: JsonObject): ServiceAnswer {
    switch (route) {
      case "/supported_operations":
        return success({ operations: this.#world.operations });
      case "/get_info":
        return success({ fiscalData: { emulated: true, fiscalID: fiscalIdOf(0n), currency_name: this.#world.currency } });
      case "/sale":
        return this.#issue(route, receiptOrder("sale", fields, this.#world), fields);
      case "/refund":
        return this.#issue(route, receiptOrder("refund", fields, this.#world), fields);
      case "/deposit":
        return this.#issue(route, cashOrder("deposit", fields, this.#world), fields);
      case "/withdraw":
        return this.#issue(route, cashOrder("withdraw", fields, this.#world), fields);
      case "/check_status":
        return this.#checkStatus(fields);
      case "/check_copy":
        return this.#checkCopy(fields);
      case "/abort":
        return this.#abort(fields);
      case "/open_shift":
        fields.checkTexts(["employeeName"]);
        return this.#openShift();
      case "/close_shift":
        fields.checkTexts(["employeeName"]);
        return this.#closeShift(fields, body["openOrdersOperation"]);
      case "/check_shift":
        return this.#checkShift();
      case "/x_report":
        // Nothing is printed here, so skipReceipt has nothing to skip (Endpoints, rule 1).
        fields.checkTexts(["employeeName"]);
        fields.flag("skipReceipt");
        fields.flag("skipReceiptPrint");
        this.#mustBeOpen(fields);
        return success(this.#metrics());
      case "/dates_report":
        return this.#datesReport(fields);
      default:
        return errorAnswer(
          fiscal.faultCodes.route,
          `Cannot answer ${route}: the fiscal service has no such route: look at its contract`,
        );
    }
  }

  #issue(route: string, order: DocumentOrder, fields: RequestReader): ServiceAnswer {
    return new DocumentIssue(this.#context, this.#memory, order, fields).answer(route);
  }

  /**
   * Answers a question, each of which brings a processing document nearer to its end. A document can't close, and waits, while no shift is
   * open.
   */
  #checkStatus(fields: RequestReader): ServiceAnswer {
    const document = this.#found(documentKeysOf(fields), "documentID or documentExtID", fields);
    if (document.closed === undefined) {
      const { register, shift } = this.#memory;
      if (document.checks > 0n) {
        document.checks -= 1n;
        this.#context.changed();
      } else if (shift.open) {
        register.close(document, shift.id, this.#time());
        this.#context.changed();
      }
    }
    return success(documentFields(document, this.#world.currency));
  }

  /** Prints a document that wasn't printed (Errors, code 15). */
  #checkCopy(fields: RequestReader): ServiceAnswer {
    const document = this.#found({ extId: undefined, id: documentKeysOf(fields).id }, "documentID", fields);
    const { closed } = document;
    if (closed !== undefined && closed.printTime === undefined) {
      closed.printTime = this.#time();
      this.#context.changed();
    }
    return success(copyFields(document, this.#world.currency));
  }

  /**
   * Removes a processing document. The contract has no code for aborting a closed one, which can only be refunded: 5, since the till's
   * request is right in itself and "not implemented" is what a fiscal core says of it.
   */
  #abort(fields: RequestReader): ServiceAnswer {
    fields.optionalAmount("amount");
    fields.checkTexts(["docNumber"]);
    optionalDocTime(fields);
    const document = this.#found({ extId: documentKeysOf(fields).extId, id: undefined }, "documentExtID", fields);
    if (document.closed !== undefined) {
      return fields.refuse("the document is closed already", "refund it instead", fiscalCodes.internalError);
    }
    this.#memory.register.remove(document);
    this.#context.changed();
    return success({});
  }

  #found(keys: DocumentKeys, names: string, fields: RequestReader): FiscalDocument {
    if (keys.extId === undefined && keys.id === undefined) {
      return fields.refuse(`${names} is missing`, "send it", fiscalCodes.missingParams);
    }
    const found = this.#memory.register.find(keys);
    return (
      found ??
      fields.refuse(`no document has this ${names}`, "send it as it was sent or answered", fiscalCodes.documentNotFound)
    );
  }

  #openShift(): ServiceAnswer {
    const { shift } = this.#memory;
    if (!shift.open) {
      shift.id += 1n;
      shift.openedAt = this.#time();
      shift.open = true;
      this.#context.changed();
    }
    return success({ ...shiftFields(shift), fiscalID: fiscalShiftId(shift) });
  }

  /**
   * @param operation Anything but delete or renew means check (Endpoints). The code of its refusal isn't shown (Errors, rule 3): 5, which has
   * no rule on this route, while 44 would have a till poll for a document that it didn't send.
   */
  #closeShift(fields: RequestReader, operation: unknown): ServiceAnswer {
    const { register, shift } = this.#memory;
    this.#mustBeOpen(fields);
    const unclosed = register.processing();
    if (operation === "delete") {
      for (const document of unclosed) register.remove(document);
    } else if (unclosed.length > 0 && operation !== "renew") {
      const state = `${unclosed.length} documents are not closed`;
      return fields.refuse(state, "close them, or send openOrdersOperation delete or renew", fiscalCodes.internalError);
    }
    shift.open = false;
    this.#context.changed();
    return success({ ...this.#metrics(), fiscalShiftID: fiscalShiftId(shift), fiscalShiftNum: String(shift.id) });
  }

  #checkShift(): ServiceAnswer {
    const { register, shift } = this.#memory;
    // isShiftOpen is documented as a string (Shift).
    return success({
      ...shiftFields(shift),
      isShiftOpen: String(shift.open),
      shiftStatus: shift.open ? 1 : 2,
      cash: register.drawer,
    });
  }

  #mustBeOpen(fields: RequestReader): void {
    if (!this.#memory.shift.open) fields.refuse("the shift is not open", "open it with /open_shift", fiscalCodes.shiftNotOpen);
  }

  #metrics(): JsonObject {
    const { register, shift } = this.#memory;
    return { ...shiftFields(shift), cash: register.drawer, ...totalsFields(register.totalsOf(shift.id), this.#world.currency) };
  }

  /** The contract doesn't show this report's payload: here it has the sums of a shift report, over the documents that are remembered. */
  #datesReport(fields: RequestReader): ServiceAnswer {
    fields.checkTexts(["employeeName"]);
    const dateFrom = optionalDay(fields, "dateFrom");
    const dateFor = optionalDay(fields, "dateFor");
    if (dateFrom !== undefined && dateFor !== undefined && dateFrom > dateFor) {
      return fields.refuse("dateFrom is after dateFor", "send the first day as dateFrom", fiscalCodes.invalidDateFormat);
    }
    const documents = [...this.#memory.register.all()].filter(({ closed, docTime }) => {
      const day = dateOf(docTime);
      return closed !== undefined && day >= (dateFrom ?? day) && day <= (dateFor ?? day);
    });
    const range = { ...(dateFrom !== undefined && { dateFrom }), ...(dateFor !== undefined && { dateFor }) };
    return success({ ...range, ...totalsFields(addToTotals(noTotals, documents), this.#world.currency) });
  }
}

function articleOf({ itemName, itemQty }: JsonObject) {
  const name = typeof itemName === "string" ? itemName : undefined;
  return { name, quantity: typeof itemQty === "bigint" ? itemQty : undefined };
}

function success(fields: JsonObject): ServiceAnswer {
  return { ...fields, status: "success", code: 0 };
}
