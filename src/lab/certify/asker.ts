import { isUtf8 } from "node:buffer";
import { setTimeout as pause } from "node:timers/promises";
import type { Contract } from "../../contract/contract.ts";
import { routeOf } from "../../contract/contracts.ts";
import { maskCardNumbers } from "../../core/card-number.ts";
import { nowMs } from "../../core/clock.ts";
import { isObject, isTexts, type JsonObject, looseInteger } from "../../core/json-object.ts";
import { printable } from "../../core/shell-text.ts";
import { parseObject } from "../../envelope/json.ts";
import { toLine } from "../../envelope/request.ts";
import { signOf } from "../../envelope/sign.ts";
import { type Crc16, otherReading } from "../../wire/crc16.ts";
import { frameOf } from "../../wire/framing.ts";
import { type CaseResult, failed, type Moment, untested } from "../report/judgement.ts";
import type { HeardBytes, Wire } from "./wire.ts";

/** An answer that came in a whole frame; its JSON is empty if it is no JSON object. */
export interface TerminalAnswer {
  readonly payload: Buffer;
  readonly json: JsonObject;
  readonly status: unknown;
  readonly code: number | undefined;
  /** Milliseconds from the question. */
  readonly ms: number;
}

/** A question, and all that came of it. It has a route if it was asked with a payload of its own. */
export interface AskedQuestion extends HeardBytes {
  readonly asked: string;
  readonly route: string | undefined;
  readonly body: JsonObject;
  /** True if more than one answer may come. */
  readonly isSeveral: boolean;
  readonly answers: readonly TerminalAnswer[];
}

/** Waits of a certification, in milliseconds: as long as the contracts have an answer take. */
export const contractPace = {
  presenceMs: 3_000, // For each of the first questions to a service but the last, which is waited for as long as an answer may take
  answerMsMax: Number.POSITIVE_INFINITY, // For which an answer is waited at most, if the contract allows more
  pollMs: 1_000, // Between two questions about an operation, and until which it is followed
  followMs: 180_000,
  cutMs: 6_000, // After which a frame cut short is given up by its reader
  idleMs: 10_000, // For which nothing is asked
  quietMs: 150, // Without a byte, after which an answer is over
};

export type Pace = Readonly<typeof contractPace>;

/** Characters of a key. */
const keyLength = 40;
/** After which nothing is taken for no answer, at least; an answer that took long makes it longer. */
const silentMsMin = 1_000;
/** Characters of an answer that a time line shows. */
const shownMax = 240;

/** Ends a check before its own judgement: without an answer there is nothing to judge. */
export class CheckEnd extends Error {
  readonly finding: CaseResult;

  constructor(finding: CaseResult) {
    super(finding.why);
    this.finding = finding;
  }
}

/** What to pay with, in checks that sell: minor units, and a currency as the terminal names it. */
export interface Sale {
  readonly amount: number;
  readonly currency: string;
}

/** A service that is asked. */
export interface CertifiedService {
  readonly contract: Contract;
  /** Signs what fiscal is asked. */
  readonly merchantId?: string | undefined;
}

export interface AskerOptions extends CertifiedService {
  readonly wire: Wire;
  readonly sale: Sale | undefined;
  readonly pace: Pace;
  /** Begins every key of this run. */
  readonly keys: string;
}

/** What is sent, in words, and how long an answer is waited for; `isFirst` of the question whether the service is there. */
type Saying = Pick<AskedQuestion, "asked"> & { readonly waitMs: number; readonly isFirst?: boolean } & Partial<
    Pick<AskedQuestion, "isSeveral" | "route" | "body">
  >;

/** Whether a service is there; if it isn't, what is to be said of its checks. */
type Presence = { readonly answer: TerminalAnswer } | { readonly absent: CaseResult; readonly garbled?: "frame" | "checksum" };

/** A service of the terminal, as it is asked: frames out, answers in. */
export class Asker {
  readonly contract: Contract;
  readonly wire: Wire;
  readonly pace: Pace;
  readonly merchantId: string | undefined;
  /** All that was asked of this service in this run. */
  readonly exchanges: AskedQuestion[] = [];
  /** The time line of the check that is made. */
  moments: Moment[] = [];
  readonly #options: AskerOptions;
  readonly #once = new Map<string, Promise<unknown>>();
  #presence: Promise<Presence> | undefined;
  #slowestMs = 0;
  #began = nowMs();

  constructor(options: AskerOptions) {
    this.#options = options;
    ({ contract: this.contract, wire: this.wire, pace: this.pace, merchantId: this.merchantId } = options);
  }

  /** @throws CheckEnd without an amount. */
  get sale(): Sale {
    const { sale } = this.#options;
    if (sale === undefined) throw new CheckEnd(untested("It needs an amount: --with-sales"));
    return sale;
  }

  /** Begins a check: its time line is empty. */
  begin(): void {
    this.#began = nowMs();
    this.moments = [];
  }

  /** Asks nothing for a while. */
  async waitIdle(): Promise<void> {
    const { idleMs } = this.pace;
    this.note("bridge", `asks nothing for ${idleMs / 1_000} s`);
    await pause(idleMs);
  }

  note(who: Moment["who"], text: string): void {
    this.moments.push({ atMs: nowMs() - this.#began, who, text });
  }

  /** A key that nothing has had before, longer than a UUID: what keeps less of it takes one operation for another. */
  key(name: string): string {
    return `${this.#options.keys}-${name}-`.padEnd(keyLength, "0");
  }

  /** What several checks judge is done once in a run, and what it breaks is said of the first alone. @throws CheckEnd if it failed. */
  async once<T>(name: string, act: () => Promise<T>): Promise<T> {
    const before = this.#once.get(name);
    const acted = before ?? act();
    this.#once.set(name, acted);
    try {
      // The same name is the same act, with the same result.
      return (await acted) as T;
    } catch (error) {
      if (before === undefined || !(error instanceof CheckEnd)) throw error;
      throw new CheckEnd(untested(`There is nothing to judge: ${error.finding.why}`));
    }
  }

  /** Whether the service is there: looked for once, in both readings of CRC16. */
  presence(): Promise<Presence> {
    this.#presence ??= this.#look();
    return this.#presence;
  }

  /** Unless it lists its operations without it: what isn't listed may be refused with any code, and any silence. */
  async serves(route: string): Promise<boolean> {
    const presence = await this.presence();
    const { operations } = "answer" in presence ? presence.answer.json : {};
    return !isTexts(operations) || operations.includes(route.slice(1));
  }

  /** @throws CheckEnd if nothing was answered yet, or nothing more. */
  async mustBeThere(): Promise<void> {
    const presence = await this.presence();
    if ("absent" in presence) throw new CheckEnd(presence.absent);
  }

  async #look(): Promise<Presence> {
    const { contract, pace } = this;
    const { service, probe } = contract;
    if (contract.envelope === "form" && this.merchantId === undefined)
      return { absent: untested("fiscal takes signed requests alone: name the merchant's id with --merchant-id-file") };
    const { crc16, isProven } = this.wire;
    const isKnown = contract.framing === "stx" || isProven;
    // Asked once more, since what is asked right after an opening may be taken for older than it, and be dropped.
    const readings = isKnown ? [crc16, crc16] : [crc16, otherReading(crc16), crc16];
    const asked = `${probe.route}, to see if ${service} is there`;
    const lastMs = this.answerMs(probe.route);
    const heard = await this.askUntilAnswered(readings, { asked, waitMs: pace.presenceMs, isFirst: true }, lastMs);
    const answer = heard.at(-1)?.answers[0];
    if (answer === undefined) return absentOf(heard, pace.presenceMs * (readings.length - 1) + lastMs);
    if (answer.status !== "error") return { answer };
    const error = `It answers ${probe.route} with an error (code ${answer.code})`;
    return { absent: untested(`${error}: ${service} isn't there, or can't work`) };
  }

  /** Asks in one reading of CRC16 after the other until there is an answer, and returns what came of each question. */
  async askUntilAnswered(
    readings: readonly Crc16[],
    saying: Saying,
    lastMs = saying.waitMs,
  ): Promise<readonly AskedQuestion[]> {
    const heard: AskedQuestion[] = [];
    const isSame = new Set(readings).size === 1;
    for (const [index, reading] of readings.entries()) {
      const asked = `${saying.asked} (CRC-16/${reading.toUpperCase()})`;
      const waitMs = index === readings.length - 1 ? lastMs : saying.waitMs;
      const exchange = await this.send(this.probe(reading), {
        ...saying,
        asked: isSame ? saying.asked : asked,
        waitMs,
        isSeveral: true,
      });
      heard.push(exchange);
      if (exchange.answers.length === 0) continue;
      // The answers to earlier ones may come late.
      if (index > 0) await this.wire.listen(this.contract.framing, this.silentMs);
      break;
    }
    return heard;
  }

  /** A request's payload. A fiscal one is signed. */
  payload(route: string, json?: string, form: FormChange = {}): readonly Buffer[] {
    const { contract } = this;
    if (contract.envelope === "text") return toLine(contract, route, json === undefined ? [] : [Buffer.from(json)], undefined);
    const data = form.data ?? Buffer.from(json ?? "{}").toString("base64");
    const sign = form.sign ?? signOf(data, this.merchantId ?? "");
    return toLine(contract, route, [Buffer.from(`data=${data}${sign === "" ? "" : `&sign=${sign}`}`)], undefined);
  }

  /** The question that only reads, as a frame. */
  probe(crc16?: Crc16): Buffer {
    return this.frame(this.payload(this.contract.probe.route), crc16);
  }

  frame(payload: readonly Buffer[], crc16: Crc16 = this.wire.crc16): Buffer {
    return Buffer.concat(frameOf(this.contract.framing, payload, crc16));
  }

  /** Milliseconds that an answer of a route may take. */
  answerMs(route: string): number {
    const { contract, pace } = this;
    const own = routeOf(contract, route) ?? routeOf(contract, contract.probe.route);
    return Math.min(pace.answerMsMax, own?.replyTimeoutMs ?? pace.answerMsMax);
  }

  /** Milliseconds of silence that are no answer. */
  get silentMs(): number {
    return Math.min(this.pace.answerMsMax, Math.max(silentMsMin, 3 * this.#slowestMs));
  }

  /** Answers without their copies, if it was found to repeat its answers: it is accused of that alone. */
  withoutCopies(payloads: readonly Buffer[]): readonly Buffer[] {
    const repeats = this.exchanges.some(({ answers, isSeveral }) => answers.length > 1 && !isSeveral);
    return repeats ? payloads.filter((payload, index) => payloads[index - 1]?.equals(payload) !== true) : payloads;
  }

  /** Asks. @throws CheckEnd without an answer: failed if the service answers other questions all the same. */
  async ask(route: string, json?: JsonObject | string, form?: FormChange): Promise<TerminalAnswer> {
    const text = json === undefined || typeof json === "string" ? json : JSON.stringify(json);
    const asked = text === undefined ? route : `${route} ${text}`;
    const saying = { asked, waitMs: this.answerMs(route), route, body: parseObject(text ?? "") ?? {} };
    return this.askRaw(this.frame(this.payload(route, text, form)), saying);
  }

  /** Asks with a frame of its own. */
  async askRaw(frame: Buffer, saying: Saying): Promise<TerminalAnswer> {
    await this.mustBeThere();
    const exchange = await this.send(frame, saying);
    const [answer] = exchange.answers;
    if (answer !== undefined) return answer;
    throw new CheckEnd(await this.#unanswered(exchange, saying.waitMs));
  }

  /** Sends anything, and returns what came of it. */
  async send(bytes: Buffer, saying: Saying): Promise<AskedQuestion> {
    const { asked, waitMs, isSeveral = false, isFirst = false, route, body = {} } = saying;
    if (!isFirst) await this.mustBeThere();
    const { contract, wire } = this;
    const sentMs = nowMs();
    this.note("bridge", `asks ${this.#shown(asked)}`);
    const heard = await wire.send(bytes, contract.framing, waitMs, isSeveral);
    if (wire.lost !== undefined) throw new CheckEnd(untested(`The line was lost: ${wire.lost}`));
    if (heard.isStuck) throw new CheckEnd(untested("The line takes no bytes: look at the flow control and the cable"));
    const answers = heard.frames.map(({ payload, atMs }) => answerOf(payload, atMs - sentMs));
    for (const { payload, ms } of answers) {
      this.note("terminal", `answers in ${Math.round(ms)} ms: ${this.#shown(payload.toString("utf8"))}`);
      this.#slowestMs = Math.max(this.#slowestMs, ms);
    }
    const { strayBytes, strayHead } = heard;
    if (strayBytes > 0) this.note("terminal", `sends ${strayBytes} bytes that are no frame: ${strayHead}`);
    else if (answers.length === 0) this.note("terminal", `says nothing for ${Math.round(nowMs() - sentMs)} ms`);
    const exchange = { ...heard, asked, route, body, answers, isSeveral };
    this.exchanges.push(exchange);
    return exchange;
  }

  /** Judges a silence: only a service that answers other questions has refused this one by it. */
  async #unanswered({ asked, strayBytes, strayHead, isChecksumWrong }: AskedQuestion, waitMs: number): Promise<CaseResult> {
    const silence = strayBytes === 0 ? `said nothing within ${waitMs / 1_000} s` : undefined;
    const stray = silence ?? `answered ${strayBytes} bytes that are no whole frame (${strayHead})`;
    const what = `Asked ${this.#shown(asked)}, the terminal ${isChecksumWrong ? "answered with a wrong checksum" : stray}`;
    const { route } = this.contract.probe;
    const saying = { asked: `${route}, to see if it is still there`, waitMs: this.answerMs(route) };
    const { answers } = await this.send(this.probe(), saying);
    if (answers.length > 0) return failed(what);
    const absent = untested(`${what}, and answers nothing any more`);
    this.#presence = Promise.resolve({ absent });
    return absent;
  }

  #shown(text: string): string {
    return maskCardNumbers(printable(text.length > shownMax ? `${text.slice(0, shownMax)}...` : text));
  }
}

/** What a fiscal form has in place of its own data and sign; an empty sign is left out. */
type FormChange = { readonly data?: string; readonly sign?: string };

function answerOf(payload: Buffer, ms: number): TerminalAnswer {
  const json = (isUtf8(payload) ? parseObject(payload.toString("utf8")) : undefined) ?? {};
  return { payload, json, status: json["status"], code: looseInteger(json["code"]), ms };
}

/** Without a whole frame there is a terminal only if its words can be read: at a wrong speed there are bytes, too. */
function absentOf(heard: readonly AskedQuestion[], waitMs: number): Presence {
  const spoken = heard.find(({ isReadable }) => isReadable);
  if (spoken?.isChecksumWrong === true)
    return { absent: untested("Its answers have a wrong checksum, by either reading"), garbled: "checksum" };
  if (spoken !== undefined)
    return { absent: untested(`Its answers are no whole frames: they begin with ${spoken.strayHead}`), garbled: "frame" };
  if (heard.some(({ isEcho }) => isEcho))
    return { absent: untested("What is sent comes back, and nothing else: the line echoes, and no terminal answers") };
  const bytes = heard.reduce((sum, { strayBytes }) => sum + strayBytes, 0);
  const noise = `${bytes} bytes came that are no frame: the speed may be another one`;
  const came = bytes === 0 ? `Nothing was answered within ${waitMs / 1_000} s` : noise;
  return { absent: untested(`${came}: posline doctor looks for the cause`) };
}

/** A field of an answer's data. */
export function dataIn({ json }: TerminalAnswer): JsonObject {
  return isObject(json["data"]) ? json["data"] : {};
}
