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
import type { Fact } from "../settle/fact.ts";
import { after, type JudgedOperation, type Known, provenEnd } from "../settle/judge.ts";
import { type AnsweredCall, isQuestion } from "../settle/proof.ts";
import { mayBeForgotten, saidToQuestion } from "../settle/said.ts";
import type { Operations } from "./operations.ts";
import { answeredOf, answerWords, asksAbout, type Subject, subjectOf } from "./question.ts";
import { addFact, isOld, knownOfOne, type Sending } from "./sending.ts";
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
      before: this.knownOf(sending).before,
      device,
      hasOthers: this.#operations.underByOthers(sending.sent, device).length > 0,
      lacks: this.#operations.lacksSince(sending),
    });
  }

  /** All that is known of the operation's last sending. */
  knownOf(sending: Sending): Known {
    sending.known ??= knownOfOne(sending);
    const { known } = sending;
    if (known === undefined) throw new TypeError(`${sending.sent.route} has no end to be asked about`);
    return known;
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
    if (failure !== undefined) heard.lastAnswer = failure;
  }

  triedOf(sending: Sending, service: AskedService | undefined): Tried {
    const { asked, lastAsked, lastAnswer } = this.#of(sending);
    return { asked, lastAsked, lastAnswer, cannotAsk: this.cannotAsk(sending, service) };
  }

  /** When "there is none" would count once more, on `nowMs`'s scale; undefined if the last answer wasn't that, or proves nothing. */
  absenceDueMs(sending: Sending, { rules, followed }: Subject): number | undefined {
    const { noneMs } = this.knownOf(sending);
    if (noneMs === undefined || this.#operations.wasClosedSince(sending)) return undefined;
    return Math.max((sending.endedMs ?? noneMs) + rules.absentsAfterMs, noneMs + followed.intervalMs);
  }

  #judge(sending: Sending, subject: Subject, asked: JsonObject, answer: AnsweredCall, { askedMs, device }: AskedWay): void {
    const { rules, followed } = subject;
    const heard = this.#of(sending);
    const name = rules.learns === undefined ? undefined : scalarText(asked[rules.learns]);
    const said = saidToQuestion(followed, answer, name);
    const isAbsent = said.says === "none";
    const answered = this.whoseIs(sending, subject, device);
    heard.whyNot =
      "why" in answered ? answered.why : isAbsent && this.#operations.wasClosedSince(sending) ? sinceClosed : undefined;
    heard.lastAnswer = `${answerWords(answer)}${heard.whyNot === undefined ? "" : `: this proves nothing, ${heard.whyNot}`}`;
    if ("why" in answered || heard.whyNot !== undefined) return;
    // "There is none" counts only for a question that could find the operation: a terminal may tell a number from its digits. And not after
    // a day, when it may be forgotten.
    if (isAbsent && typeof asked[followed.keyField] !== typeof followed.key) return;
    if (mayBeForgotten(said) && isOld(sending)) return;
    this.#take(sending, { is: "told", atMs: askedMs, said, name }, followed, answered.counts);
  }

  #take(sending: Sending, fact: Fact & { is: "told" }, operation: JudgedOperation, counts: "all" | "good"): void {
    const known = this.knownOf(sending);
    const next = after(operation, known, fact);
    const end = provenEnd(next);
    const isEnd = end !== undefined && end !== known.end;
    if (next === known || isGoodEnd(this.#operations.togetherOf(sending).end)) return;
    if (isEnd && counts === "good" && !isGoodEnd(end)) return;
    const settles = this.#settlesAll || sending.isFollowed;
    if (isEnd && !settles) {
      if (isGoodEnd(end)) this.#operations.begun(sending, { ...fact, said: { says: "going" } });
    } else if (isEnd) {
      addFact(sending, fact);
      void this.#operations.settle(sending, { result: end, by: "answer", rrn: next.ids?.["rrn"] });
    } else if (next.isAccepted && (!known.isAccepted || end !== known.end)) this.#operations.begun(sending, fact);
    else addFact(sending, fact, operation);
  }

  #of(sending: Sending): HeardOf {
    let heard = this.#heard.get(sending);
    if (heard === undefined) {
      heard = { asked: 0, lastAsked: undefined, lastAnswer: undefined, whyNot: undefined };
      this.#heard.set(sending, heard);
    }
    return heard;
  }
}
