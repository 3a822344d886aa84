import type { Contract } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { isGoodEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import { bodyText } from "../envelope/body-text.ts";
import { keyOf, textOf } from "../envelope/json.ts";
import { storedKey } from "../journal/record.ts";
import { parseExactObject, scalarText } from "../settle/exact-json.ts";
import { type NextStep, nextStep } from "../settle/machine.ts";
import { type AnsweredCall, isQuestion, saysAbsent } from "../settle/proof.ts";
import type { SettleState } from "../settle/state.ts";
import { stateOf } from "./known.ts";
import type { Operations } from "./operations.ts";
import { answeredOf, answerText, asksAbout, type Subject, subjectOf } from "./question.ts";
import { isOld, type Sending } from "./sending.ts";
import { type Whose, whose } from "./whose.ts";

/**
 * Hears every answer to a question about operations, no matter who asked, and judges it once: whose it is, what it proves by the rules of
 * `settle`, and what the journal records of that. Hearing sends nothing.
 */

/** A service of the configuration. */
export interface AskedService {
  readonly contract: Contract;
  /** Signs the questions of a fiscal service. */
  readonly merchantId: string | undefined;
  /** The mark of the line's device, if known. */
  readonly device?: string | undefined;
}

/** The attempts to learn how an operation ended, for people. */
export interface Tried {
  /** Count of posline's own questions. */
  readonly asked: number;
  /** Time of the last one, as ISO 8601. */
  readonly lastAsked: string | undefined;
  /** The last answer to anybody's question. */
  readonly lastAnswer: string | undefined;
  /** Why posline doesn't ask by itself, in a sentence; undefined if it does. */
  readonly cannotAsk: string | undefined;
}

/** The answers about one operation. */
interface HeardOf {
  asked: number;
  lastAsked: string | undefined;
  lastAnswer: string | undefined;
  /** Why the last answer doesn't count, in words; undefined if it does. */
  whyNot: string | undefined;
  /** When the question was asked whose "there is none" was counted last, on `nowMs`'s scale; undefined if the last answer wasn't that. */
  absentMs: number | undefined;
}

/** When a question was asked, on `nowMs`'s scale, and over which device, if its mark is known. */
interface AskedWay {
  readonly askedMs: number;
  readonly device: string | undefined;
}

const sinceClosed = "a batch or shift was closed after it was sent";

export class Hearing {
  readonly #operations: Operations;
  readonly #settlesAll: boolean;
  readonly #error: (error: unknown) => void;
  readonly #heard = new WeakMap<Sending, HeardOf>();

  /**
   * @param settlesAll True if answers also settle operations that nobody follows.
   * @param error Told of a bug, which must not cost the caller its answer.
   */
  constructor(operations: Operations, settlesAll: boolean, error: (error: unknown) => void) {
    this.#operations = operations;
    this.#settlesAll = settlesAll;
    this.#error = error;
  }

  /** Wraps a service's handler so that its answers are heard. Calls that are no question pass as they are. */
  observed(handler: Handler, { contract, device }: Omit<AskedService, "merchantId">): Handler {
    return (call) => {
      if (!isQuestion(contract, call.route)) return handler(call);
      const askedMs = nowMs();
      return handler(call).then((reply) => {
        try {
          this.heard(call, reply, { askedMs, device });
        } catch (bug) {
          this.#error(bug);
        }
        return reply;
      });
    };
  }

  heard(call: Call, reply: Reply, way: AskedWay): void {
    const contract = contracts[call.contract];
    const keyField = contract.routes.find(({ polling }) => polling?.route === call.route)?.key ?? "";
    const asked = parseExactObject(bodyText(contract, call.body));
    const key = keyOf(scalarText(asked?.[keyField]));
    if (asked === undefined || key === undefined) return;
    const under = this.#operations.under(call.service, storedKey(key));
    const lasts = under.filter((each) => this.#operations.lastOf(each) === each);
    const answer = lasts.length === 0 ? undefined : answeredOf(textOf(reply.payload));
    if (answer === undefined) return;
    for (const sending of lasts) {
      const subject = subjectOf(contract, sending);
      if (subject?.polling.route === call.route && asksAbout(sending, subject, asked))
        this.#judge(sending, subject, asked, answer, way);
    }
  }

  /** Why an operation can't be asked about, in a sentence; undefined if it can. */
  cannotAsk(sending: Sending, service: AskedService | undefined): string | undefined {
    const { sent, names } = sending;
    if (service === undefined) return `the configuration has no service ${sent.service} any more`;
    const subject = subjectOf(service.contract, sending);
    if (subject === undefined) return `${service.contract.service} has no question about ${sent.route}`;
    if (sent.key === undefined || (names ?? sent.ask) === undefined)
      return "its record lacks the key or a field to ask by, which was missing, too long or masked";
    if (service.contract.envelope === "form" && service.merchantId === undefined)
      return "the question can't be signed: set merchantId";
    if (isOld(sending)) return "it was sent more than 24 h ago: look at the terminal, then use sudo posline journal settle";
    const answer = this.whoseIs(sending, subject, service.device);
    return "why" in answer ? answer.why : undefined;
  }

  /** The operation that an answer about a key belongs to, if it comes over this device. */
  whoseIs(sending: Sending, subject: Subject, device: string | undefined): Whose {
    const { service, key } = sending.sent;
    return whose({
      sending,
      under: this.#operations.under(service, key),
      rules: subject.rules,
      before: this.stateOf(sending, subject).baseline,
      device,
      hasOthers: this.#operations.underByOthers(sending.sent, device).length > 0,
      lacks: this.#operations.lacksSince(sending),
    });
  }

  stateOf(sending: Sending, { rules }: Subject): SettleState {
    return stateOf(sending, rules, this.#operations.knownOf(sending).standing.length > 1);
  }

  /** Why answers over a device don't count, or the last one didn't, in words. */
  whyNot(sending: Sending, subject: Subject, device: string | undefined): string | undefined {
    const answer = this.whoseIs(sending, subject, device);
    return "why" in answer ? answer.why : this.#of(sending).whyNot;
  }

  /** Notes that posline asks by itself. @param failure Why there was no answer. */
  asks(sending: Sending, failure?: string): void {
    const heard = this.#of(sending);
    heard.asked++;
    heard.lastAsked = new Date().toISOString();
    if (failure !== undefined) Object.assign(heard, { lastAnswer: failure, absentMs: undefined });
  }

  triedOf(sending: Sending, service: AskedService | undefined): Tried {
    const { asked, lastAsked, lastAnswer } = this.#of(sending);
    return { asked, lastAsked, lastAnswer, cannotAsk: this.cannotAsk(sending, service) };
  }

  /** When "there is none" would count once more, on `nowMs`'s scale; undefined if the last answer wasn't that, or proves nothing. */
  absenceDueMs(sending: Sending, subject: Subject): number | undefined {
    const { rules, polling } = subject;
    const { absentMs } = this.#of(sending);
    const { phase, isAborted } = this.stateOf(sending, subject);
    const isDenying =
      phase !== "accepted" || rules.absentWhenAccepted === "refused" || (isAborted && rules.absentWhenAborted === "refused");
    if (absentMs === undefined || !isDenying || this.#operations.wasClosedSince(sending)) return undefined;
    return Math.max((sending.endedMs ?? absentMs) + rules.absentsAfterMs, absentMs + polling.intervalMs.min);
  }

  #judge(sending: Sending, subject: Subject, asked: JsonObject, answer: AnsweredCall, { askedMs, device }: AskedWay): void {
    const { rules, followed } = subject;
    const heard = this.#of(sending);
    const isAbsent = saysAbsent(followed, answer);
    const answered = this.whoseIs(sending, subject, device);
    heard.whyNot =
      "why" in answered ? answered.why : isAbsent && this.#operations.wasClosedSince(sending) ? sinceClosed : undefined;
    heard.lastAnswer = `${answerText(answer)}${heard.whyNot === undefined ? "" : `: this proves nothing, ${heard.whyNot}`}`;
    const isBefore = askedMs < (sending.endedMs ?? Number.POSITIVE_INFINITY);
    if ("why" in answered || heard.whyNot !== undefined || isBefore) return;
    const isAgain = heard.absentMs !== undefined && askedMs < heard.absentMs + subject.polling.intervalMs.min;
    // "There is none" counts once an interval, and only for a question that could find the operation: a terminal may tell a number from its
    // digits.
    if (isAbsent && (isAgain || typeof asked[followed.keyField] !== typeof followed.key)) return;
    heard.absentMs = isAbsent ? askedMs : undefined;
    const state = this.stateOf(sending, subject);
    const learned = rules.learns === undefined ? undefined : scalarText(asked[rules.learns]);
    // A proof under one name is not a proof under another.
    const isOwnName = learned === state.learned;
    const step = nextStep(
      followed,
      { ...state, learned, learnedProven: isOwnName && state.learnedProven },
      answer,
      askedMs - (sending.endedMs ?? 0),
    );
    this.#take(sending, state, step, { counts: answered.counts, isAbsent, rules });
  }

  #take(
    sending: Sending,
    state: SettleState,
    step: NextStep,
    {
      counts,
      isAbsent,
      rules,
    }: { readonly counts: "all" | "good"; readonly isAbsent: boolean; readonly rules: Subject["rules"] },
  ): void {
    const { end } = this.#operations.knownOf(sending);
    const next = "state" in step ? step.state : step.known;
    if (next !== undefined)
      sending.state = next.learnedProven ? next : { ...next, learned: state.learned, learnedProven: state.learnedProven };
    const settles = this.#settlesAll || sending.isFollowed;
    if ("state" in step || !settles) {
      const isThere = "state" in step ? step.state.phase === "accepted" : isGoodEnd(verdictOf(step, isAbsent, rules));
      if (isThere && !isGoodEnd(end)) this.#operations.begun(sending);
      return;
    }
    const result = verdictOf(step, isAbsent, rules);
    // A good end stays; so does any other except "failed", which the terminal's own word takes back.
    if (result === undefined || (end !== undefined && (end !== "failed" || result === "failed"))) return;
    if (counts === "good" && !isGoodEnd(result)) return;
    void this.#operations.settle(sending, { result, by: "answer" });
  }

  #of(sending: Sending): HeardOf {
    let heard = this.#heard.get(sending);
    if (heard === undefined) {
      heard = { asked: 0, lastAsked: undefined, lastAnswer: undefined, whyNot: undefined, absentMs: undefined };
      this.#heard.set(sending, heard);
    }
    return heard;
  }
}

/** The journal's verdict on a step: an operation that the terminal doesn't know wasn't carried out; one that it refused, it knows. */
function verdictOf(step: NextStep, isAbsent: boolean, { refused }: Subject["rules"]) {
  if (!("verdict" in step) || step.verdict === "unknown") return undefined;
  return isAbsent && step.verdict === refused ? "failed" : step.verdict;
}
