import { bank } from "../contract/bank.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type Answer, reference, refusal } from "./answer.ts";
import { Batches } from "./bank-batch.ts";
import {
  type BankOperation,
  type CardOperation,
  type FinancialRoute,
  isCard,
  leftOf,
  names,
  namesOf,
  originalsOf,
  type ReportRoute,
  restoredOperation,
  savedOperation,
} from "./bank-operation.ts";
import { type ResultOptions, resultOf } from "./bank-result.ts";
import { currencyOf, pairFor, pairs, terminals } from "./bank-terminals.ts";
import { isApproved, type Operation, Operations } from "./operations.ts";
import { answerOf, RequestReader } from "./refused.ts";
import { Saved } from "./saved.ts";
import type { EmulatedService, World } from "./world.ts";

/**
 * The emulated bank terminal: operations that are started, go on by themselves, and are asked about (bank contract, States and
 * transitions). Where the contract leaves a choice open, it is made where the rule stands, and the comment there says so.
 *
 * It refuses to know of cards and people: what one would have done is the outcome that the world names when something begins.
 */

/** Errors, known codes. */
const codes = { unsupported: -80, invalid: -29, noOriginal: -16, notFound: -15, currency: -47, failed: -3 } as const;

/** How to ask what is supported isn't among what is supported: the contract's own list leaves it out. */
const discovery = "/supported_operations";

const allOperations = bank.routes.map(({ path }) => path.slice(1)).filter((name) => `/${name}` !== discovery);

export interface BankOptions {
  /** What /supported_operations lists and no other route does: names without slash; all of the contract's by default. */
  readonly operations?: readonly string[];
}

export function emulatedBank(world: World, options: BankOptions = {}): EmulatedService {
  return new EmulatedBank(world, options.operations ?? allOperations);
}

class EmulatedBank implements EmulatedService {
  readonly #world: World;
  readonly #enabled: readonly string[];
  readonly #operations: Operations<BankOperation>;
  #batches = new Batches();
  /** The terminal of the last operation that named one: the contract's "currently selected terminal", as we take it. */
  #selected: bigint | undefined;

  constructor(world: World, enabled: readonly string[]) {
    this.#world = world;
    this.#enabled = enabled;
    this.#operations = new Operations<BankOperation>(world, {
      namesOf,
      ending: (operation) => this.#ending(operation),
      saved: savedOperation,
      restored: restoredOperation,
    });
  }

  answer(route: string, body: JsonObject): Answer {
    this.#operations.look();
    return answerOf(() => this.#answer(new RequestReader(route, body, codes.invalid)));
  }

  saved(): JsonObject {
    const selected = this.#selected !== undefined && { selected: this.#selected };
    return { ...this.#operations.saved(), batches: this.#batches.saved(), ...selected };
  }

  restore(saved: JsonObject): void {
    const state = new Saved(saved, "bank");
    const batches = Batches.restored(state.at("batches"));
    const selected = state.at("selected").present ? state.at("selected").integer(0n) : undefined;
    if (selected !== undefined && !terminals.includes(selected)) state.at("selected").wrong("must be a terminal that exists");
    this.#operations.restore(state);
    this.#batches = batches;
    this.#selected = selected;
  }

  reset(): void {
    this.#operations.reset();
    this.#batches = new Batches();
    this.#selected = undefined;
    this.#world.changed();
  }

  #answer(request: RequestReader): Answer {
    const { route } = request;
    if (route !== discovery && !this.#enabled.includes(route.slice(1))) {
      return request.refuse("the operation is not supported", `choose one that ${discovery} lists`, codes.unsupported);
    }
    switch (route) {
      case discovery:
        return { status: "success", data: { operations: this.#enabled } };
      case "/terminals":
        return { status: "success", data: { terminals: pairs } };
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
        // The contract leaves its effect on what is in progress open: it ends as if the customer had cancelled it
        this.#operations.endAll("cancelled");
        return { status: "success" };
      default:
        return request.refuse("there is no such route", `choose one that ${discovery} lists`, codes.unsupported);
    }
  }

  #startCard(route: FinancialRoute, request: RequestReader): Answer {
    const amount = request.amount("amount");
    const money = { amount, tips: request.amountIfAny("tips"), cashback: request.amountIfAny("cashback") };
    if (money.tips > 0n && money.cashback > 0n) {
      return request.refuse("tips and cashback are both greater than 0", "send one of them");
    }
    const currencyName = request.id("currency_name");
    const currency = currencyOf(currencyName);
    if (currency === undefined) return request.refuse("the currency is not supported", "send AZN or 944", codes.currency);
    const rrn = originalsOf[route] === undefined ? undefined : request.id("rrn");
    const unnamed = `${amount} ${currency} ${rrn ?? ""}`;
    return this.#start(request, amount, unnamed, () => {
      const original = rrn === undefined ? undefined : this.#originalOf(route, rrn, currency, request);
      return (common) => ({ ...common, route, rrn: reference(common.number, 12), ...money, currency, original });
    });
  }

  /** The operation that an rrn names: an approved one, of a kind that this route goes with. */
  #originalOf(route: FinancialRoute, rrn: string, currency: string, request: RequestReader): number {
    const original = this.#operations.named(names.rrn(rrn));
    const kinds: readonly string[] = originalsOf[route] ?? [];
    if (original === undefined || !isCard(original) || !isApproved(original) || !kinds.includes(original.route)) {
      const wanted = kinds.join(", ");
      return request.refuse(`no approved ${wanted} has this rrn`, "send the rrn that /check returned", codes.noOriginal);
    }
    if (original.currency !== currency) return request.refuse("the original has another currency", "send the original's");
    return original.number;
  }

  #startReport(route: ReportRoute, request: RequestReader): Answer {
    return this.#start(request, 0n, "", () => (common) => ({ ...common, route, totals: undefined }));
  }

  /**
   * Begins an operation, unless it was begun before: the same pay_id on the same route is the same operation, running or ended.
   * @param unnamed Tells requests without pay_id from each other.
   * @param prepare Looks at what else there must be, and says how the operation is made.
   */
  #start(
    request: RequestReader,
    amount: bigint,
    unnamed: string,
    prepare: () => (common: Operation & Pick<BankOperation, "payId" | "terminal" | "merchant">) => BankOperation,
  ): Answer {
    const { route } = request;
    const payId = request.idIfAny("pay_id");
    if (payId !== undefined && this.#operations.named(names.key(route, payId)) !== undefined) return { status: "success" };
    const { terminal, merchant } = pairFor(request, this.#selected);
    const make = prepare();
    const key = payId === undefined ? `${route} without pay_id ${terminal} ${merchant} ${unnamed}` : names.key(route, payId);
    const outcome = this.#operations.outcomeOf(route, amount, key);
    const failure = () => refusal(codes.failed, `Cannot start ${route}: processing failed: ask /check what became of it`);
    if (outcome?.name === "internal-error") return failure();
    if (outcome?.name === "update-required")
      return refusal(-100, `Cannot start ${route}: the terminal needs a critical update`);
    if (outcome?.name === "blocked") return refusal(-101, `Cannot start ${route}: the application is blocked: call support`);
    this.#selected = request.int64IfAny("terminal") ?? this.#selected;
    this.#operations.begin(outcome, (common) => make({ ...common, payId, terminal, merchant }));
    return outcome?.name === "in-doubt" ? failure() : { status: "success" };
  }

  /** Effects of an end. Only what is approved has any. */
  #ending(operation: BankOperation): void {
    if (operation.end !== "approved") return;
    const { terminal, route } = operation;
    if (!isCard(operation)) {
      operation.totals = this.#batches.of(terminal);
      if (route === "/close-shift") this.#batches.close(terminal);
    } else if (this.#covers(operation)) {
      this.#batches.add(terminal, route, operation.currency, operation.amount);
    } else {
      operation.end = "exhausted";
    }
  }

  /** Whether enough is left of what it refers to, which is seen when it is carried out: another may have been before it. */
  #covers(operation: CardOperation): boolean {
    if (operation.original === undefined) return true;
    const original = this.#operations.numbered(operation.original);
    return original !== undefined && isCard(original) && operation.amount <= leftOf(original, this.#operations.all());
  }

  #check(request: RequestReader): Answer {
    const options = optionsOf(request);
    const operation = this.#asked(request);
    this.#operations.ask(operation);
    return resultOf(operation, options);
  }

  /** Stops what is in progress. What has ended stays as it is, and is told (States and transitions). */
  #abort(request: RequestReader): Answer {
    const options = optionsOf(request);
    const operation = this.#asked(request);
    if (operation.ended) return resultOf(operation, options);
    this.#operations.end(operation, "cancelled");
    return { status: "success" };
  }

  /** The latest operation that was begun under a pay_id, for /cancel comes under that of what it cancels (FIELD-NOTES). */
  #asked(request: RequestReader): BankOperation {
    const operation = this.#operations.named(names.payId(request.id("pay_id")));
    return operation ?? request.refuse("no operation has this pay_id", "send the one of the start", codes.notFound);
  }
}

function optionsOf(request: RequestReader): ResultOptions {
  return { language: request.idIfAny("language"), withoutPrintData: request.flag("no_print_data") };
}
