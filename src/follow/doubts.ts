import type { Contract, Polling, Route } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { type SettlingRules, settlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { Call, Reply, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { foundElsewhere, isByOtherContract, isElsewhere, sentByOthers, sentElsewhere } from "../core/device-mark.ts";
import { isGoodEnd, type OperationEnd, type OthersOperation, type QuestionFields } from "../core/followed.ts";
import { type JsonObject, looseInteger } from "../core/json-object.ts";
import { bodyText } from "../envelope/body-text.ts";
import { textOf } from "../envelope/json.ts";
import type { AskedWay, OpenOperation, Progress, SaidOf, SettledEnd } from "../journal/journal.ts";
import { recentMs } from "../journal/recent-operations.ts";
import { parseExactObject, scalarText, writeExactObject } from "../settle/exact-json.ts";
import { nextStep } from "../settle/machine.ts";
import { type AnsweredCall, type FollowedOperation, hasCode, saysNothing, saysUnprinted, verdictIn } from "../settle/proof.ts";
import { freshState, type SettleState } from "../settle/state.ts";

/**
 * What is known of the operations whose outcome the journal doesn't know: what was answered about them, by any question, and what that
 * proves. An answer is judged by the rules of `settle`, as of an operation that was lost and may not be sent again. It sends nothing.
 */

/** The journal, as far as it is needed. */
export interface DoubtfulJournal {
  /** Operations of unknown outcome, the last one last. */
  readonly open: readonly OpenOperation[];
  aloneSinceMs(operation: OpenOperation): number | undefined;
  progressOf(operation: OpenOperation): Progress;
  mayBeCleared(operation: OpenOperation): boolean;
  /** Whether the terminal on this device may have operations of another service. */
  mayHaveOthers(service: string, device: string): boolean;
  /** What another service sent last under this key over this device. */
  findOthers(service: string, key: string, device: string): OthersOperation | undefined;
  /** An answer said that the terminal has it. */
  begun(operation: OpenOperation): void;
  /**
   * A question by this key was answered by one who knows the operation, where it is of one of these routes.
   * @param saidOf What the answer says of one of a route, that is asked about by these fields.
   */
  heardOf(service: string, key: string, routes: readonly string[], asked: AskedWay, saidOf: SaidOf): void;
  settle(operation: OpenOperation, end: SettledEnd): Promise<boolean>;
}

/** A service of the configuration. */
export interface AskedService {
  readonly contract: Contract;
  /** Signs the questions of a fiscal service. */
  readonly merchantId: string | undefined;
}

/** A question about an operation. */
export interface Question {
  readonly route: string;
  /** JSON. */
  readonly text: string;
}

/** What was tried to learn how an operation ended, for people. */
export interface Tried {
  /** How often posline asked by itself. */
  readonly asked: number;
  /** As ISO 8601. */
  readonly lastAsked: string | undefined;
  /** The last answer to anybody's question. */
  readonly lastAnswer: string | undefined;
  /** Why posline doesn't ask by itself, in a sentence. */
  readonly cannotAsk: string | undefined;
}

/** What is known of one operation. */
interface Doubt {
  state: SettleState;
  /** As by the journal, when the state was begun: a later sending under the key begins it anew. */
  aloneSinceMs: number;
  /** When the question was asked whose "there is none" was last judged, on `nowMs`'s scale. */
  absentMs: number;
  /** That was the last answer. */
  isDenied: boolean;
  asked: number;
  lastAsked: string | undefined;
  lastAnswer: string | undefined;
}

/** An operation under its contract's rules. */
interface Rules {
  readonly route: Route;
  readonly polling: Polling;
  readonly recovery: SettlingRules;
  readonly followed: FollowedOperation;
}

export class Doubts {
  readonly #journal: DoubtfulJournal;
  readonly #doubts = new WeakMap<OpenOperation, Doubt>();
  #services: ReadonlyMap<ServiceName, AskedService> = new Map();

  constructor(journal: DoubtfulJournal) {
    this.#journal = journal;
  }

  /** Takes the services of a configuration. */
  use(services: ReadonlyMap<ServiceName, AskedService>): void {
    this.#services = services;
  }

  /** Those of a service, the last one last. */
  of(service: ServiceName): readonly OpenOperation[] {
    return this.#journal.open.filter(({ sent }) => sent.service === service);
  }

  /** Whether it is still not known how it ended. */
  isOpen(operation: OpenOperation): boolean {
    return this.#journal.open.includes(operation);
  }

  /** Why an operation can't be asked about, in a sentence; undefined where it can. */
  cannotAsk(operation: OpenOperation): string | undefined {
    const { sent } = operation;
    const service = this.#services.get(sent.service);
    if (service === undefined) return `the configuration has no service ${sent.service} any more`;
    const rules = rulesOf(service.contract, operation);
    if (rules === undefined) return `${service.contract.service} has no question about ${sent.route}`;
    const { recovery } = rules;
    if (recovery.baseline && sent.fresh !== true)
      return `what is known under the key may be another operation's, which ${sent.route} refers to`;
    if (sent.key === undefined || sent.ask === undefined)
      return "its record lacks what it is asked by: a key or a field was missing, too long or masked";
    if (recovery.learns !== undefined && sent.ask[recovery.learns] === undefined)
      return `its ${recovery.learns}, by which it is asked, was in the answer that was lost`;
    if (service.contract.envelope === "form" && service.merchantId === undefined)
      return "the question can't be signed: set merchantId";
    if (isOld(operation)) return "it was sent more than 24 h ago: look at the terminal, then use posline journal settle";
    if (this.#journal.aloneSinceMs(operation) === undefined)
      return "another operation was sent under its key, and an answer would not say which one it is about";
    return undefined;
  }

  /** What is to be asked about an operation that can be asked about. */
  questionOf(operation: OpenOperation): Question | undefined {
    const rules = this.#rulesOf(operation);
    if (rules === undefined) return undefined;
    const { polling } = rules;
    const fields = polling.keys.map((name) => [name, fieldOf(operation, rules.route, name)]);
    return { route: polling.route, text: writeExactObject(Object.fromEntries(fields)) };
  }

  /**
   * When "there is none", said once more, could count towards a proof, on `nowMs`'s scale; undefined where it wasn't the last answer, or
   * proves nothing.
   */
  absenceDueMs(operation: OpenOperation): number | undefined {
    const doubt = this.#doubts.get(operation);
    const rules = this.#rulesOf(operation);
    if (doubt?.isDenied !== true || rules === undefined) return undefined;
    const { recovery, polling } = rules;
    const { phase, isAborted } = doubt.state;
    const proves =
      phase === "lost" || recovery.absentWhenAccepted === "refused" || (isAborted && recovery.absentWhenAborted === "refused");
    if (!proves || this.#journal.mayBeCleared(operation)) return undefined;
    return Math.max(doubt.aloneSinceMs + recovery.absentsAfterMs, doubt.absentMs + polling.intervalMs.min);
  }

  /** posline asked by itself, and got no answer. */
  unanswered(operation: OpenOperation, reason: string): void {
    const doubt = this.#doubtOf(operation);
    doubt.lastAnswer = reason;
    doubt.isDenied = false;
  }

  /** posline asks by itself. */
  asks(operation: OpenOperation): void {
    const doubt = this.#doubtOf(operation);
    doubt.asked++;
    doubt.lastAsked = new Date().toISOString();
  }

  triedOf(operation: OpenOperation): Tried {
    const { asked = 0, lastAsked, lastAnswer } = this.#doubts.get(operation) ?? {};
    return { asked, lastAsked, lastAnswer, cannotAsk: this.cannotAsk(operation) };
  }

  /**
   * A question was answered, no matter who asked it.
   * @param askedMs When it was asked, on `nowMs`'s scale.
   * @param device The mark of the device that it was asked over, where it is known.
   */
  answered(call: Call, reply: Reply, askedMs: number, device?: string): void {
    const { service, contract: name, route, body } = call;
    const contract = contracts[name];
    const way = { askedMs, device };
    this.#heard(call, reply, way, true);
    const open = this.of(service);
    if (open.length === 0) return;
    const asked = parseExactObject(bodyText(contract, body));
    const answer = readAnswer(reply);
    if (asked === undefined || answer === undefined) return;
    for (const operation of open) {
      const rules = rulesOf(contract, operation);
      if (rules?.polling.route === route) this.#judge(operation, rules, asked, answer, way);
    }
  }

  /** The same where nothing is to be settled: only that the terminal has what it was asked about is noted. */
  heard(call: Call, reply: Reply, askedMs: number, device?: string): void {
    this.#heard(call, reply, { askedMs, device }, false);
  }

  /** Also of what was answered, with an error that leaves it open. */
  #heard({ service, contract: name, route, body, key }: Call, reply: Reply, way: AskedWay, settles: boolean): void {
    const contract = contracts[name];
    const { status, code } = reply;
    const isKnown = status === "success" || (code !== undefined && contract.finals.pendingCodes.includes(code));
    if (key === undefined || !isKnown) return;
    const asked = () => parseExactObject(bodyText(contract, body));
    this.#journal.heardOf(service, key, askedBy(contract, route), way, (operation, ask) => {
      const said = ask === undefined ? undefined : saidOf(contract, operation, ask, asked(), readAnswer(reply));
      return settles || said === undefined ? said : "begun";
    });
  }

  #judge(operation: OpenOperation, rules: Rules, asked: JsonObject, answer: AnsweredCall, { askedMs, device }: AskedWay): void {
    const { recovery, followed } = rules;
    const aloneSinceMs = this.#journal.aloneSinceMs(operation);
    const isItsOwn = !recovery.baseline || operation.sent.fresh === true;
    if (!isItsOwn || aloneSinceMs === undefined || !asksAbout(operation, rules, asked)) return;
    const doubt = this.#doubtOf(operation);
    if (doubt.aloneSinceMs !== aloneSinceMs) {
      doubt.aloneSinceMs = aloneSinceMs;
      doubt.state = lost;
    }
    const { device: sentOver, service, key = "" } = operation.sent;
    if (device !== undefined && this.#journal.findOthers(service, key, device) !== undefined) {
      doubt.lastAnswer = `${answerText(answer)}: this proves nothing, ${sentByOthers}`;
      return;
    }
    const isElse = isElsewhere(sentOver, device);
    // What stood under a key that may be another one's too was asked of the terminal that it was sent to.
    const isFound = answer.success && !recovery.baseline && !isByOtherContract(sentOver, device);
    const mayBeOthers = isElse && device !== undefined && this.#journal.mayHaveOthers(service, device);
    if (isElse && (!isFound || mayBeOthers)) {
      const why = isFound ? `${sentElsewhere}, and ${foundElsewhere}` : sentElsewhere;
      doubt.lastAnswer = `${answerText(answer)}: this proves nothing, ${why}`;
      return;
    }
    const isAbsent = !answer.success && hasCode(followed.contract.finals.absentCodes, answer.summary.code);
    if (isAbsent && this.#journal.mayBeCleared(operation)) {
      doubt.lastAnswer = `${answerText(answer)}: this proves nothing, ${sinceCleared}`;
      return;
    }
    if (isAbsent && !this.#absenceCounts(operation, rules, doubt, asked, askedMs)) return;
    doubt.isDenied = isAbsent;
    const learned = recovery.learns === undefined ? undefined : scalarText(asked[recovery.learns]);
    // What was proven of one name is not proven of another.
    const learnedProven = doubt.state.learnedProven && doubt.state.learned === learned;
    const progress = this.#journal.progressOf(operation);
    const { isAccepted, isStopped: isAborted, isUnprinted, hasOtherNames } = progress;
    const phase = isAccepted ? "accepted" : doubt.state.phase;
    const unprinted = isUnprinted || doubt.state.unprinted;
    const state = { ...doubt.state, phase, isAborted, learned, learnedProven, hasOtherNames, unprinted } as const;
    const step = nextStep(followed, state, answer, askedMs - aloneSinceMs);
    doubt.lastAnswer = answerText(answer);
    if ("state" in step) {
      doubt.state = step.state;
      if (step.state.phase === "accepted") this.#journal.begun(operation);
    } else if (step.verdict !== "unknown") {
      // What the terminal doesn't know wasn't carried out; what it refused, it knows.
      const result: OperationEnd = isAbsent && step.verdict === recovery.refused ? "failed" : step.verdict;
      if (isAbsent || isGoodEnd(result) || !progress.mayEndWell) void this.#journal.settle(operation, { result, by: "answer" });
    }
  }

  /** "There is none" counts once an interval, of a question that could find it. */
  #absenceCounts(
    operation: OpenOperation,
    { polling, followed }: Rules,
    doubt: Doubt,
    asked: JsonObject,
    askedMs: number,
  ): boolean {
    const { ask } = operation.sent;
    if (ask === undefined || typeof asked[followed.keyField] !== typeof followed.key) return false;
    if (askedMs < doubt.aloneSinceMs || isOld(operation)) return false;
    if (askedMs < doubt.absentMs + polling.intervalMs.min) return false;
    doubt.absentMs = askedMs;
    return true;
  }

  #doubtOf(operation: OpenOperation): Doubt {
    let doubt = this.#doubts.get(operation);
    if (doubt === undefined) {
      const none = {
        absentMs: Number.NEGATIVE_INFINITY,
        isDenied: false,
        asked: 0,
        lastAsked: undefined,
        lastAnswer: undefined,
      };
      doubt = { state: lost, aloneSinceMs: operation.sinceMs, ...none };
      this.#doubts.set(operation, doubt);
    }
    return doubt;
  }

  #rulesOf(operation: OpenOperation): Rules | undefined {
    const service = this.#services.get(operation.sent.service);
    return service === undefined ? undefined : rulesOf(service.contract, operation);
  }
}

/** The operations that a question names by a key of their own. */
function askedBy(contract: Contract, question: string): readonly string[] {
  return settlingRules[contract.service]
    .filter(({ route, baseline }) => !baseline && routeOf(contract, route)?.polling?.route === question)
    .map(({ route }) => route);
}

/**
 * What the answer to a question says of an operation whose key is its own: a good end, or that the terminal has it; undefined where it
 * may be about another one. Of one that a name from its answer identifies it isn't known here whether that name was asked for.
 */
function saidOf(
  contract: Contract,
  path: string,
  ask: QuestionFields,
  asked: JsonObject | undefined,
  answer: AnsweredCall | undefined,
): ReturnType<SaidOf> {
  const recovery = settlingRulesOf(contract.service, path);
  const route = routeOf(contract, path);
  const keyField = route?.key;
  if (recovery === undefined || keyField === undefined || route?.polling === undefined) return undefined;
  if (asked === undefined || answer === undefined) return undefined;
  if (saysNothing({ recovery, keyField, key: asked[keyField] }, answer)) return undefined;
  if (!hasFields(asked, route.polling, [keyField, recovery.learns], (name) => ask[name])) return undefined;
  if (recovery.learns !== undefined || !answer.success) return "begun";
  const end = verdictIn({ contract, recovery }, answer.reply, true);
  if (end === undefined) return "begun";
  return saysUnprinted({ recovery }, answer) ? "unprinted" : end;
}

/** An operation that was sent and never answered, and that is only asked about. Nothing is printed because of it. */
const lost: SettleState = {
  ...freshState,
  phase: "lost",
  doubt: true,
  // For operations whose key is their own, or under whose key nothing was known; the others aren't judged.
  baseline: "",
  copied: true,
  isSentOnce: true,
};

/** Why "there is none" proves nothing. */
const sinceCleared = "since a batch or shift was closed after it, or records after it are missing from the journal";

/**
 * After a day a terminal may have forgotten it, and "there is none" would prove nothing. The box's clock counts as well, for what an
 * earlier process sent; where that was ahead by a day, nobody knows how long ago it was.
 */
function isOld({ sent, place, sinceMs }: OpenOperation): boolean {
  return nowMs() - sinceMs >= recentMs || (typeof place === "number" && Math.abs(Date.now() - sent.timeMs) >= recentMs);
}

function rulesOf(contract: Contract, operation: OpenOperation): Rules | undefined {
  const route = routeOf(contract, operation.sent.route);
  const recovery = settlingRulesOf(contract.service, operation.sent.route);
  if (recovery === undefined || route?.key === undefined || route.polling === undefined) return undefined;
  const followed = { contract, recovery, keyField: route.key, key: fieldOf(operation, route, route.key), asks: true };
  return { route, polling: route.polling, recovery, followed };
}

/** A field of the question, as the operation's body had it. */
function fieldOf({ sent }: OpenOperation, { key }: Route, name: string): string | number | undefined {
  return sent.ask?.[name] ?? (name === key ? sent.key : undefined);
}

/** Whether a question names this operation and nothing else. */
function asksAbout(operation: OpenOperation, { route, polling, recovery, followed }: Rules, asked: JsonObject): boolean {
  if (scalarText(asked[followed.keyField]) !== scalarText(followed.key)) return false;
  return hasFields(asked, polling, [followed.keyField, recovery.learns], (name) => fieldOf(operation, route, name));
}

/** Whether a question has the fields by which one asks, but for some, as an operation's record has them, and no number of another. */
function hasFields(
  asked: JsonObject,
  { keys, ownNumber }: Polling,
  except: readonly (string | undefined)[],
  recorded: (name: string) => unknown,
): boolean {
  if (ownNumber !== undefined && asked[ownNumber] !== undefined) return false;
  return keys.every((name) => except.includes(name) || scalarText(asked[name]) === scalarText(recorded(name)));
}

function readAnswer({ payload }: Reply): AnsweredCall | undefined {
  const reply = parseExactObject(textOf(payload));
  const status = reply?.["status"];
  if (reply === undefined || (status !== "success" && status !== "error")) return undefined;
  const summary = {
    code: looseInteger(reply["code"]),
    message: scalarText(reply["message"]),
    httpStatus: undefined,
    reason: undefined,
  };
  return { outcome: "answered", success: status === "success", reply, summary };
}

function answerText({ success, summary: { code } }: AnsweredCall): string {
  const status = success ? "success" : "error";
  return code === undefined ? status : `${status}, code ${code}`;
}
