import type { JsonObject } from "../../../core/json-object.ts";
import { errorAnswer, type ServiceAnswer, zeroPadded } from "../answer.ts";
import type { LedgerEntry } from "../ledger.ts";
import { type EmulatedOperation, isApproved, OperationStore, type SavedOperations, standOf } from "../operations.ts";
import { answerOrRefusal, type RefusalCodes, RequestReader } from "../request-reader.ts";
import type { EmulatedService, ServiceContext } from "../service-context.ts";
import { builtInWorld } from "../world.ts";
import { Batches, type SavedBatch } from "./batches.ts";
import {
  type BankOperation,
  bankOperationNames,
  type CardOperation,
  type FinancialRoute,
  isCardOperation,
  operationNames,
  originalsOf,
  type ReportRoute,
  remainingAmount,
} from "./operation.ts";
import { type CheckOptions, checkAnswer } from "./result.ts";
import { type BankWorld, currencyOf, pairFor, terminalPairs } from "./terminals.ts";

/**
 * The emulated bank terminal: operations that are started, go on by themselves, and are asked about (bank contract, States and
 * transitions). If the contract leaves a choice open, it is made at the rule, and the comment there says so.
 *
 * Cards and people are none of its business: the outcome that its context names, when an operation begins, says what they do.
 */

/** Errors, known codes. */
const codes = { unsupported: -80, noOriginal: -16, notFound: -15, currency: -47, failed: -3 } as const;

const invalid: RefusalCodes = { wrong: -29, missing: -29, amount: -29 };

/** How to ask what is supported isn't among what is supported: the contract's own list leaves it out. */
const discovery = "/supported_operations";

/** Questions for which an operation stays in progress if its /abort comes too late: ten seconds, for a person at the till's button. */
const abortTooLateChecks = 5;

/** The memory of the bank. */
interface SavedBank extends SavedOperations<BankOperation> {
  readonly batches: readonly SavedBatch[];
  readonly selected?: bigint;
}

export function emulatedBank(context: ServiceContext, world = builtInWorld.bank): EmulatedService {
  return new EmulatedBank(context, world);
}

class EmulatedBank implements EmulatedService<SavedBank> {
  readonly #context: ServiceContext;
  readonly #world: BankWorld;
  readonly #operations: OperationStore<BankOperation>;
  #batches: Batches;
  /** The terminal of the last operation that named one: the contract's "currently selected terminal", as we take it. */
  #selected: bigint | undefined;

  constructor(context: ServiceContext, world: BankWorld) {
    this.#context = context;
    this.#world = world;
    this.#batches = new Batches(world);
    this.#operations = new OperationStore<BankOperation>(context, {
      namesOf: bankOperationNames,
      ending: (operation) => this.#ending(operation),
    });
  }

  answer(route: string, body: JsonObject): ServiceAnswer {
    this.#operations.endDue();
    return answerOrRefusal(() => this.#answer(new RequestReader(route, body, invalid)));
  }

  ledger(): readonly LedgerEntry[] {
    this.#operations.endDue();
    return [...this.#operations.all()].filter(isCardOperation).map((operation) => {
      const { number, route, payId: key, original } = operation;
      // What the card is charged with
      const amount = operation.amount + operation.tips + operation.cashback;
      const of = original !== undefined && { of: String(original) };
      return { id: String(number), route, key, amount, end: standOf(operation), ...of };
    });
  }

  saved(): SavedBank {
    const selected = this.#selected !== undefined && { selected: this.#selected };
    return { ...this.#operations.saved(), batches: this.#batches.saved(), ...selected };
  }

  restore(saved: SavedBank): void {
    this.#operations.restore(saved);
    this.#batches = new Batches(this.#world, saved.batches);
    this.#selected = saved.selected;
  }

  reset(): void {
    this.#operations.reset();
    this.#batches = new Batches(this.#world);
    this.#selected = undefined;
    this.#context.changed();
  }

  #answer(request: RequestReader): ServiceAnswer {
    const { route } = request;
    if (route !== discovery && !this.#world.operations.includes(route.slice(1))) {
      return request.refuse("the operation is not supported", `choose one that ${discovery} lists`, codes.unsupported);
    }
    switch (route) {
      case discovery:
        return { status: "success", data: { operations: this.#world.operations } };
      case "/terminals":
        return { status: "success", data: { terminals: terminalPairs(this.#world) } };
      case "/sale":
      case "/preauth":
      case "/confirm":
      case "/cancel":
      case "/refund":
        return this.#startCard(route, request);
      case "/xreport":
      case "/close-shift":
        return this.#startReport(route, request);
      case "/check":
        return this.#check(request);
      case "/abort":
        return this.#abort(request);
      case "/terminate":
        // The contract leaves the effect on operations in progress open: they end as if the customer had cancelled
        this.#operations.endAll("cancelled");
        return { status: "success" };
      default:
        return request.refuse("there is no such route", `choose one that ${discovery} lists`, codes.unsupported);
    }
  }

  #startCard(route: FinancialRoute, request: RequestReader): ServiceAnswer {
    checkOptions(request);
    request.checkTexts(["doc_number", "rrn"]);
    const amount = request.amount("amount");
    const tips = request.optionalAmount("tips") ?? 0n;
    const cashback = request.optionalAmount("cashback") ?? 0n;
    if (tips > 0n && cashback > 0n) {
      return request.refuse("tips and cashback are both greater than 0", "send one of them");
    }
    const currencyName = request.id("currency_name");
    const currency = currencyOf(this.#world, currencyName);
    if (currency === undefined)
      return request.refuse(
        "the currency is not supported",
        `send one of ${Object.keys(this.#world.currencies).join(", ")}, or its number`,
        codes.currency,
      );
    const rrn = originalsOf[route] === undefined ? undefined : request.id("rrn");
    const withoutId = `${amount} ${currency} ${rrn ?? ""}`;
    return this.#start(request, amount, withoutId, () => {
      const original = rrn === undefined ? undefined : this.#originalOf(route, rrn, currency, request);
      return (common) => ({ ...common, route, rrn: zeroPadded(common.number, 12), amount, tips, cashback, currency, original });
    });
  }

  /** The operation that an rrn names: an approved one, of a kind that this route goes with. */
  #originalOf(route: FinancialRoute, rrn: string, currency: string, request: RequestReader): bigint {
    const original = this.#operations.named(operationNames.rrn(rrn));
    const kinds: readonly string[] = originalsOf[route] ?? [];
    if (original === undefined || !isCardOperation(original) || !isApproved(original) || !kinds.includes(original.route)) {
      const wanted = kinds.join(", ");
      return request.refuse(`no approved ${wanted} has this rrn`, "send the rrn that /check returned", codes.noOriginal);
    }
    if (original.currency !== currency) return request.refuse("the original has another currency", "send the original's");
    return original.number;
  }

  #startReport(route: ReportRoute, request: RequestReader): ServiceAnswer {
    checkOptions(request);
    return this.#start(request, 0n, "", () => (common) => ({ ...common, route, totals: undefined }));
  }

  /**
   * Begins an operation, unless it was begun before: the same pay_id on the same route is the same operation, running or ended.
   * @param withoutId Distinguishes requests without pay_id from each other.
   * @param prepare Checks the rest of the request, and returns how the operation is made.
   */
  #start(
    request: RequestReader,
    amount: bigint,
    withoutId: string,
    prepare: () => (
      common: EmulatedOperation & Pick<BankOperation, "payId" | "terminal" | "merchant" | "abortTooLate">,
    ) => BankOperation,
  ): ServiceAnswer {
    const { route } = request;
    const payId = request.optionalId("pay_id");
    if (payId !== undefined && this.#operations.named(operationNames.key(route, payId)) !== undefined)
      return { status: "success" };
    const { terminal, merchant } = pairFor(request, this.#world, this.#selected);
    const make = prepare();
    const key =
      payId === undefined ? `${route} without pay_id ${terminal} ${merchant} ${withoutId}` : operationNames.key(route, payId);
    const outcome = this.#operations.outcomeOf(route, amount, key);
    const failure = () => errorAnswer(codes.failed, `Cannot start ${route}: processing failed: ask /check what became of it`);
    if (outcome?.name === "internal-error") return failure();
    if (outcome?.name === "update-required")
      return errorAnswer(-100, `Cannot start ${route}: the terminal needs a critical update`);
    if (outcome?.name === "blocked")
      return errorAnswer(-101, `Cannot start ${route}: the application is blocked: call support`);
    if (outcome?.name === "not-supported") return errorAnswer(-80, `Cannot start ${route}: this terminal does not support it`);
    this.#selected = request.optionalInteger("terminal") ?? this.#selected;
    const abortTooLate = outcome?.name === "abort-too-late";
    const course = abortTooLate ? { ...outcome, checks: abortTooLateChecks } : outcome;
    this.#operations.begin(course, (common) => make({ ...common, payId, terminal, merchant, abortTooLate }));
    return outcome?.name === "in-doubt" ? failure() : { status: "success" };
  }

  /** Effects of an end. Only an approved operation has any. */
  #ending(operation: BankOperation): void {
    if (operation.end !== "approved") return;
    const { terminal, route } = operation;
    if (!isCardOperation(operation)) {
      operation.totals = this.#batches.of(terminal);
      if (route === "/close-shift") this.#batches.close(terminal);
    } else if (this.#covers(operation)) {
      this.#batches.add(terminal, route, operation.currency, operation.amount);
    } else {
      operation.end = "exhausted";
    }
  }

  /** True if enough is left of the original, which is seen when the operation is carried out: another may have come first. */
  #covers(operation: CardOperation): boolean {
    if (operation.original === undefined) return true;
    const original = this.#operations.numbered(operation.original);
    return (
      original !== undefined &&
      isCardOperation(original) &&
      operation.amount <= remainingAmount(original, this.#operations.all())
    );
  }

  #check(request: RequestReader): ServiceAnswer {
    const options = optionsOf(request);
    const operation = this.#asked(request);
    this.#operations.check(operation);
    return checkAnswer(this.#world, operation, options);
  }

  /**
   * Attempts to stop an operation in progress (Endpoints): if that comes too late, the answer is the same, and only /check tells. An ended
   * operation stays as it is, and is reported (States and transitions).
   */
  #abort(request: RequestReader): ServiceAnswer {
    const options = optionsOf(request);
    const operation = this.#asked(request);
    if (operation.ended) return checkAnswer(this.#world, operation, options);
    if (!operation.abortTooLate) this.#operations.end(operation, "cancelled");
    return { status: "success" };
  }

  /** The latest operation that was begun under a pay_id, since /cancel comes under that of the operation it cancels (seen in the field). */
  #asked(request: RequestReader): BankOperation {
    const operation = this.#operations.named(operationNames.payId(request.id("pay_id")));
    return operation ?? request.refuse("no operation has this pay_id", "send the one of the start", codes.notFound);
  }
}

/** Checks the types of options that operations and reports share, though no answer here depends on them. */
function checkOptions(request: RequestReader): void {
  request.checkTexts(["package_name", "language"]);
  for (const name of ["headless", "no_printing"]) request.flag(name);
  request.object("txn_config");
}

function optionsOf(request: RequestReader): CheckOptions {
  return { language: request.optionalId("language"), withoutPrintData: request.flag("no_print_data") };
}
