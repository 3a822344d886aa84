import { fiscal } from "../contract/fiscal.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type Answer, refusal } from "./answer.ts";
import { currency, type FiscalDocument, fiscalIdOf, shownCopy, shownDocument } from "./fiscal-document.ts";
import { cashOrder, type Order, receiptOrder } from "./fiscal-draft.ts";
import { Issue, type Memory } from "./fiscal-issue.ts";
import { Register } from "./fiscal-register.ts";
import { codes, Fields, type Keys, keysOf } from "./fiscal-request.ts";
import { RolledBack } from "./fiscal-rollback.ts";
import { Shift } from "./fiscal-shift.ts";
import { dateOf, dayOf, timestamp } from "./fiscal-time.ts";
import { add, noTotals, shownTotals } from "./fiscal-totals.ts";
import { answerOf, RequestReader } from "./refused.ts";
import { Saved } from "./saved.ts";
import type { EmulatedService, World } from "./world.ts";

/**
 * The emulated fiscal service: documents, the shift they count in, and the drawer (fiscal contract, States and transitions).
 * What it reports is always what its documents add up to. Where the contract leaves a choice open, it is made where the rule
 * stands, and the comment there says so.
 *
 * It refuses to know of printers and cards: what one would have done is the outcome that the world names when a document begins.
 */
export function emulatedFiscal(world: World): EmulatedService {
  return new EmulatedFiscal(world);
}

const operations = fiscal.routes.map(({ path }) => path.slice(1));

class EmulatedFiscal implements EmulatedService {
  readonly #world: World;
  #memory: Memory;

  constructor(world: World) {
    this.#world = world;
    this.#memory = this.#fresh();
  }

  answer(route: string, body: JsonObject): Answer {
    return answerOf(() => this.#answer(route, new Fields(new RequestReader(route, body, codes.missingParams), body), body));
  }

  saved(): JsonObject {
    const { register, shift, rolledBack } = this.#memory;
    return { shift: shift.saved(), ...register.saved(), rolledBack: rolledBack.saved() };
  }

  restore(saved: JsonObject): void {
    const state = new Saved(saved, "fiscal");
    const shift = Shift.restored(state.at("shift"));
    const register = Register.restored(state, shift.id);
    this.#memory = { shift, register, rolledBack: RolledBack.restored(state.at("rolledBack")) };
  }

  reset(): void {
    this.#memory = this.#fresh();
    this.#world.changed();
  }

  #fresh(): Memory {
    return { shift: Shift.first(this.#time()), register: new Register(), rolledBack: new RolledBack() };
  }

  #time(): string {
    return timestamp(this.#world.now());
  }

  #answer(route: string, fields: Fields, body: JsonObject): Answer {
    switch (route) {
      case "/supported_operations":
        return success({ operations });
      case "/get_info":
        return success({ fiscalData: { emulated: true, fiscalID: fiscalIdOf(0n), currency_name: currency } });
      case "/sale":
        return this.#issue(route, receiptOrder("sale", fields), fields);
      case "/refund":
        return this.#issue(route, receiptOrder("refund", fields), fields);
      case "/deposit":
        return this.#issue(route, cashOrder("deposit", fields), fields);
      case "/withdraw":
        return this.#issue(route, cashOrder("withdraw", fields), fields);
      case "/check_status":
        return this.#checkStatus(fields);
      case "/check_copy":
        return this.#checkCopy(fields);
      case "/abort":
        return this.#abort(fields);
      case "/open_shift":
        return this.#openShift();
      case "/close_shift":
        return this.#closeShift(fields, body["openOrdersOperation"]);
      case "/check_shift":
        return this.#checkShift();
      case "/x_report":
        // Nothing is printed here, so skipReceipt has nothing to skip (Endpoints, rule 1).
        this.#mustBeOpen(fields);
        return success(this.#metrics());
      case "/dates_report":
        return this.#datesReport(fields);
      default:
        return refusal(
          fiscal.faultCodes.route,
          `Cannot answer ${route}: the fiscal service has no such route: look at its contract`,
        );
    }
  }

  #issue(route: string, order: Order, fields: Fields): Answer {
    return new Issue(this.#world, this.#memory, order, fields).answer(route);
  }

  /** Each question brings a document that is processing nearer to its end. It can't close, and waits, while no shift is open. */
  #checkStatus(fields: Fields): Answer {
    const document = this.#found(keysOf(fields), "documentID or documentExtID", fields);
    if (document.closed === undefined) {
      const { register, shift } = this.#memory;
      if (document.checks > 0) {
        document.checks -= 1;
        this.#world.changed();
      } else if (shift.open) {
        register.close(document, shift.id, this.#time());
        this.#world.changed();
      }
    }
    return success(shownDocument(document));
  }

  /** Prints what wasn't printed (Errors, code 15). */
  #checkCopy(fields: Fields): Answer {
    const document = this.#found({ extId: undefined, id: keysOf(fields).id }, "documentID", fields);
    const { closed } = document;
    if (closed !== undefined && closed.printTime === undefined) {
      closed.printTime = this.#time();
      this.#world.changed();
    }
    return success(shownCopy(document));
  }

  /**
   * Removes what is processing. The contract has no code for aborting a closed document, which can only be refunded: 5, since the
   * till's request is right in itself and "not implemented" is what a fiscal core says of it.
   */
  #abort(fields: Fields): Answer {
    const document = this.#found({ extId: keysOf(fields).extId, id: undefined }, "documentExtID", fields);
    fields.amount("amount");
    if (document.closed !== undefined) {
      return fields.refuse(codes.internalError, "the document is closed already", "refund it instead");
    }
    this.#memory.register.remove(document);
    this.#world.changed();
    return success({});
  }

  #found(keys: Keys, names: string, fields: Fields): FiscalDocument {
    if (keys.extId === undefined && keys.id === undefined) {
      return fields.refuse(codes.missingParams, `${names} is missing`, "send it");
    }
    const found = this.#memory.register.find(keys);
    return (
      found ?? fields.refuse(codes.documentNotFound, `no document has this ${names}`, "send it as it was sent or answered")
    );
  }

  #openShift(): Answer {
    const { shift } = this.#memory;
    if (!shift.open) {
      shift.begin(this.#time());
      this.#world.changed();
    }
    return success({ ...shift.fields, fiscalID: shift.fiscalId });
  }

  /** @param operation What isn't delete or renew is check (Endpoints). The code of its refusal isn't shown: 44 says what is so. */
  #closeShift(fields: Fields, operation: unknown): Answer {
    const { register, shift } = this.#memory;
    this.#mustBeOpen(fields);
    const unclosed = register.processing();
    if (operation === "delete") {
      for (const document of unclosed) register.remove(document);
    } else if (unclosed.length > 0 && operation !== "renew") {
      const state = `${unclosed.length} documents are not closed`;
      return fields.refuse(
        codes.documentStillProcessing,
        state,
        "ask /check_status, or send openOrdersOperation delete or renew",
      );
    }
    shift.end();
    this.#world.changed();
    return success({ ...this.#metrics(), fiscalShiftID: shift.fiscalId, fiscalShiftNum: String(shift.id) });
  }

  #checkShift(): Answer {
    const { register, shift } = this.#memory;
    // isShiftOpen is documented as a string (Shift).
    return success({
      ...shift.fields,
      isShiftOpen: String(shift.open),
      shiftStatus: shift.open ? 1 : 2,
      cash: register.drawer,
    });
  }

  #mustBeOpen(fields: Fields): void {
    if (!this.#memory.shift.open) fields.refuse(codes.shiftNotOpen, "the shift is not open", "open it with /open_shift");
  }

  #metrics(): JsonObject {
    const { register, shift } = this.#memory;
    return { ...shift.fields, cash: register.drawer, ...shownTotals(register.totalsOf(shift.id)) };
  }

  /** Its payload isn't shown by the contract: here it has the sums of a shift report, over the documents that are remembered. */
  #datesReport(fields: Fields): Answer {
    const dateFrom = dayOf(fields, "dateFrom");
    const dateFor = dayOf(fields, "dateFor");
    if (dateFrom !== undefined && dateFor !== undefined && dateFrom > dateFor) {
      return fields.refuse(codes.invalidDateFormat, "dateFrom is after dateFor", "send the first day as dateFrom");
    }
    const documents = [...this.#memory.register.all()].filter(({ closed, docTime }) => {
      const day = dateOf(docTime);
      return closed !== undefined && day >= (dateFrom ?? day) && day <= (dateFor ?? day);
    });
    const range = { ...(dateFrom !== undefined && { dateFrom }), ...(dateFor !== undefined && { dateFor }) };
    return success({ ...range, ...shownTotals(add(noTotals, documents)) });
  }
}

function success(fields: JsonObject): Answer {
  return { ...fields, status: "success", code: 0 };
}
