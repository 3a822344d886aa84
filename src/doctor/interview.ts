import type { LineConfig } from "../config/config.ts";
import { nowMs } from "../core/clock.ts";
import type { OpenTransport } from "../device/transport.ts";
import { drainMs, silenceMsMax } from "../line/limits.ts";
import type { Crc16 } from "../wire/crc16.ts";
import { Conversation, type Heard } from "./conversation.ts";
import type { Question } from "./question.ts";

/** Milliseconds that a barrier's answer may take to begin; one that comes later is taken too, and said to be late. */
export const answerMs = 3_000;

/** How the questions to one line's services went. */
export interface Interview {
  /** What came before anything was asked, older than the opening or sent unasked. */
  readonly before: Buffer;
  /** Why the line was lost meanwhile. */
  readonly lost: string | undefined;
  /** The line was still when it was left, and nothing is on its way. */
  readonly leftClean: boolean;
}

export interface Interviewing {
  readonly config: LineConfig;
  readonly open: OpenTransport;
  readonly questions: readonly Question[];
  readonly progress: (text: string) => void;
}

/**
 * Asks each service of a line its barrier, one at a time, and leaves the line as it was found: an answer that stays out is waited
 * for, so that whoever uses the line next doesn't take it for its own.
 * @throws OpenError saying why the line can't be opened, and what to do.
 */
export async function interview({ config, open, questions, progress }: Interviewing): Promise<Interview> {
  const conversation = new Conversation(config, new Set(questions.map(({ contract }) => contract.framing)));
  const talk = new Talk(conversation, config, questions);
  try {
    await conversation.open(open);
    const before = conversation.raw;
    for (const question of questions) {
      progress(`asking ${question.service} ${question.contract.probe.route}`);
      for (const crc16 of talk.readingsFor(question)) if (await talk.ask(question, crc16)) break;
    }
    const leftClean = await talk.leave(progress);
    return { before, lost: conversation.lost, leftClean };
  } finally {
    await conversation.close();
  }
}

/** The questions that are out on one line, and whose answer is whose. */
class Talk {
  readonly #conversation: Conversation;
  readonly #config: LineConfig;
  readonly #questions: readonly Question[];
  /** Bytes of whole frames since the last question. */
  #framed = 0;

  constructor(conversation: Conversation, config: LineConfig, questions: readonly Question[]) {
    this.#conversation = conversation;
    this.#config = config;
    this.#questions = questions;
  }

  /**
   * The readings of CRC16 to ask by: the line's own first, then the other one; or the one that a service of this line has
   * answered by. An STX frame has another checksum, which nobody reads in two ways.
   */
  *readingsFor({ contract }: Question): Generator<Crc16> {
    const { crc16 } = this.#config;
    if (contract.framing === "stx") {
      yield crc16;
      return;
    }
    const proven = this.#questions.find((each) => each.contract.framing === "length" && each.answer !== undefined)?.answer;
    yield proven?.crc16 ?? crc16;
    if (proven === undefined) yield crc16 === "arc" ? "umts" : "arc";
  }

  /** Asks once; true when there is no use in asking once more. */
  async ask(question: Question, crc16: Crc16): Promise<boolean> {
    const conversation = this.#conversation;
    await conversation.settle();
    conversation.forget();
    this.#framed = 0;
    const frame = question.next(crc16);
    const dueMs = nowMs() + answerMs;
    question.ending = await conversation.ask(frame, this.#fits, answerMs);
    this.#distribute(question, false);
    while (question.ending === "heard" && question.pending) {
      // What came was the answer to an earlier question.
      question.ending = await conversation.wait(this.#fits, Math.max(0, dueMs - nowMs()));
      this.#distribute(question, false);
    }
    const noise = conversation.rawBytes > this.#framed;
    if (noise) question.noise(conversation.raw, conversation.lastMs);
    // Noise is no matter of the checksum, unless it is a frame with a wrong one.
    return !question.pending || question.ending !== "silence" || (noise && !question.broken);
  }

  /** Waits for the answers that stay out; true when none is on its way any more. */
  async leave(progress: (text: string) => void): Promise<boolean> {
    const conversation = this.#conversation;
    const { lateReplyMs } = this.#config;
    const pending = () => this.#questions.filter((question) => question.pending);
    if (pending().length > 0 && conversation.lost === undefined) {
      progress(`waiting ${Math.ceil(lateReplyMs / 1_000)} s for late answers, so that the line is left clean`);
    }
    for (let last = pending().at(-1); last !== undefined; last = pending().at(-1)) {
      conversation.forget();
      this.#framed = 0;
      const untilMs = Math.max(conversation.lastMs, ...pending().map(({ askedMs }) => askedMs)) + lateReplyMs;
      const ending = await conversation.wait(this.#fits, Math.max(0, untilMs - nowMs()));
      this.#distribute(last, true);
      if (ending !== "heard") {
        if (conversation.rawBytes > this.#framed) last.noise(conversation.raw, conversation.lastMs);
        break;
      }
    }
    if (conversation.lost !== undefined) return false;
    return conversation.silence(drainMs, silenceMsMax);
  }

  readonly #fits = (heard: Heard): boolean => this.#askedBy(heard) !== undefined;

  /** Whose answer a frame is: an answer's shape tells, and an error belongs to whoever has waited longest. */
  #askedBy(heard: Heard): Question | undefined {
    const pending = this.#questions.filter((question) => question.pending);
    return (
      pending.find((question) => question.kindOf(heard) === "barrier") ??
      pending.find((question) => question.kindOf(heard) === "error")
    );
  }

  #distribute(current: Question, late: boolean): void {
    for (const heard of this.#conversation.heard.splice(0)) {
      if (heard.item.kind === "frame") this.#framed += heard.item.wireBytes;
      const question = this.#askedBy(heard);
      if (question === undefined) current.stray(heard);
      else question.take(heard, late || question !== current);
    }
  }
}
