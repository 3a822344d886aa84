import { isUtf8 } from "node:buffer";
import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { nowMs } from "../core/clock.ts";
import { isObject, type JsonObject, looseInteger } from "../core/json-object.ts";
import { printable } from "../core/shell-text.ts";
import { parseObject, wholeOf } from "../envelope/json.ts";
import { questionToLine, toLine } from "../envelope/request.ts";
import { signOf } from "../envelope/sign.ts";
import type { Moment } from "../judge/judgement.ts";
import { type Crc16, otherReading } from "../wire/crc16.ts";
import { frameOf } from "../wire/framing.ts";
import { broken, CheckEnd, type Finding, type Sale, unseen } from "./check.ts";
import type { HeardBytes, Wire } from "./wire.ts";

/** An answer that came in a whole frame. */
export interface Answer {
  readonly payload: Buffer;
  /** Empty if it is no JSON object. */
  readonly json: JsonObject;
  readonly status: unknown;
  readonly code: number | undefined;
  /** Milliseconds from the question. */
  readonly ms: number;
}

/** A question, and all that came of it. */
export interface Exchange extends HeardBytes {
  readonly asked: string;
  /** True if more than one answer may come. */
  readonly isSeveral: boolean;
  readonly answers: readonly Answer[];
}

/** How long a certification waits. */
export interface Pace {
  /** Milliseconds for each of the first questions to a service: whether there is a terminal. */
  readonly presenceMs: number;
  /** Milliseconds that an answer may take at most, if the contract allows more. */
  readonly answerMsMax: number;
  /** Milliseconds between two questions about an operation, and until which it is followed. */
  readonly pollMs: number;
  readonly followMs: number;
  /** Milliseconds after which a frame cut short is given up by its reader. */
  readonly cutMs: number;
  /** Milliseconds for which nothing is asked. */
  readonly idleMs: number;
}

/** Milliseconds after which nothing is taken for no answer, at least; an answer that took long makes it longer. */
const silentMsMin = 1_000;

/** Characters of an answer that a time line shows. */
const shownMax = 240;

export interface AskerOptions {
  readonly wire: Wire;
  readonly contract: Contract;
  readonly merchantId: string | undefined;
  readonly sale: Sale | undefined;
  readonly pace: Pace;
  /** Begins every key of this run. */
  readonly keys: string;
}

/** What is sent, in words, and how long an answer is waited for. */
interface Saying {
  readonly asked: string;
  readonly waitMs: number;
  readonly isSeveral?: boolean;
  /** True of the question whether the service is there. */
  readonly isFirst?: boolean;
}

/** Whether a service is there; if it isn't, what is to be said of its checks. */
type Presence = { readonly answer: Answer } | { readonly absent: Finding; readonly garbled?: "frame" | "checksum" };

/** A service of the terminal, as it is asked: frames out, answers in. */
export class Asker {
  readonly contract: Contract;
  readonly wire: Wire;
  readonly merchantId: string | undefined;
  readonly sale: Sale | undefined;
  readonly pace: Pace;
  /** All that was asked of this service in this run. */
  readonly exchanges: Exchange[] = [];
  readonly #keys: string;
  readonly #once = new Map<string, Promise<unknown>>();
  #presence: Presence | undefined;
  #slowestMs = 0;
  #began = nowMs();
  #moments: Moment[] = [];

  constructor({ wire, contract, merchantId, sale, pace, keys }: AskerOptions) {
    this.wire = wire;
    this.contract = contract;
    this.sale = sale;
    this.pace = pace;
    this.merchantId = merchantId;
    this.#keys = keys;
  }

  /** Begins a check: its time line is empty. */
  begin(): void {
    this.#began = nowMs();
    this.#moments = [];
  }

  get moments(): readonly Moment[] {
    return this.#moments;
  }

  note(who: Moment["who"], text: string): void {
    this.#moments.push({ atMs: nowMs() - this.#began, who, text });
  }

  /** A key that nothing has had before. */
  key(name: string): string {
    return `${this.#keys}-${name}`;
  }

  /**
   * What several checks judge is done at most once in a run.
   * @throws CheckEnd if it failed: what it broke is said of the check that did it alone.
   */
  async once<T>(name: string, act: () => Promise<T>): Promise<T> {
    const before = this.#once.get(name);
    const acted = before ?? act();
    this.#once.set(name, acted);
    try {
      // The same name is the same act, with the same result.
      return (await acted) as T;
    } catch (error) {
      if (before === undefined || !(error instanceof CheckEnd)) throw error;
      throw new CheckEnd(unseen(`There is nothing to judge: ${error.finding.why}`));
    }
  }

  /** Whether the service is there: looked for once, in both readings of CRC16. */
  async presence(): Promise<Presence> {
    this.#presence ??= await this.#look();
    return this.#presence;
  }

  /** @throws CheckEnd if nothing was answered yet, or nothing more. */
  async mustBeThere(): Promise<void> {
    const presence = await this.presence();
    if ("absent" in presence) throw new CheckEnd(presence.absent);
  }

  async #look(): Promise<Presence> {
    const { contract, wire } = this;
    if (contract.envelope === "form" && this.merchantId === undefined) {
      return { absent: unseen("fiscal takes signed requests alone: name the merchant's id with --merchant-id-file") };
    }
    const { crc16 } = wire;
    const isKnown = contract.framing === "stx" || wire.isProven;
    // Asked once more, since what is asked right after an opening may be taken for older than it, and be dropped.
    const readings = isKnown ? [crc16, crc16] : [crc16, otherReading(crc16), crc16];
    const heard: Exchange[] = [];
    for (const reading of readings) {
      const how = isKnown ? "" : ` (CRC-16/${reading.toUpperCase()})`;
      const exchange = await this.send(this.frame(this.payload(contract.probe.route), reading), {
        asked: `${contract.probe.route}, to see if ${contract.service} is there${how}`,
        waitMs: this.pace.presenceMs,
        isSeveral: true,
        isFirst: true,
      });
      const [answer] = exchange.answers;
      heard.push(exchange);
      if (answer === undefined) continue;
      // The answers to both may come late.
      if (heard.length > 1) await wire.listen(contract.framing, this.silentMs);
      if (answer.status !== "error") return { answer };
      const why = `It answers ${contract.probe.route} with an error (code ${answer.code}): ${contract.service} isn't there, or can't work`;
      return { absent: unseen(why) };
    }
    return absentOf(heard, this.pace.presenceMs * readings.length);
  }

  /**
   * Asks until there is an answer, as after an opening: so many times, so many milliseconds apart.
   * @returns how many requests it took; undefined if none was answered.
   */
  async askUntilAnswered(times: number, waitMs: number): Promise<number | undefined> {
    const { contract, wire } = this;
    const { route } = contract.probe;
    for (let count = 1; count <= times; count++) {
      const { answers } = await this.send(this.frame(this.payload(route)), { asked: route, waitMs, isSeveral: true });
      if (answers.length === 0) continue;
      if (count > 1) await wire.listen(contract.framing, this.silentMs);
      return count;
    }
    return undefined;
  }

  /** A request's payload. A fiscal one is signed. */
  payload(route: string, json?: string, form: FormChange = {}): readonly Buffer[] {
    const { contract } = this;
    if (contract.envelope === "text") return questionToLine(contract, route, undefined, json);
    const data = form.data ?? Buffer.from(json ?? "{}").toString("base64");
    const sign = form.sign ?? signOf(data, this.merchantId ?? "");
    return toLine(contract, route, [Buffer.from(`data=${data}${sign === "" ? "" : `&sign=${sign}`}`)], undefined);
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

  /**
   * Asks, and returns the answer.
   * @throws CheckEnd without an answer: broken if the service answers other questions all the same.
   */
  async ask(route: string, json?: JsonObject | string, form?: FormChange): Promise<Answer> {
    const text = json === undefined || typeof json === "string" ? json : JSON.stringify(json);
    const asked = text === undefined ? route : `${route} ${text}`;
    return this.askRaw(this.frame(this.payload(route, text, form)), { asked, waitMs: this.answerMs(route) });
  }

  /** Asks with a frame of its own. */
  async askRaw(frame: Buffer, saying: Saying): Promise<Answer> {
    await this.mustBeThere();
    const exchange = await this.send(frame, saying);
    const [answer] = exchange.answers;
    if (answer !== undefined) return answer;
    throw new CheckEnd(await this.#unanswered(exchange, saying.waitMs));
  }

  /** Sends anything, and returns what came of it. */
  async send(bytes: Buffer, { asked, waitMs, isSeveral = false, isFirst = false }: Saying): Promise<Exchange> {
    if (!isFirst) await this.mustBeThere();
    const { contract, wire } = this;
    const sentMs = nowMs();
    this.note("bridge", `asks ${this.#shown(asked)}`);
    const heard = await wire.send(bytes, contract.framing, waitMs);
    if (wire.lost !== undefined) throw new CheckEnd(unseen(`The line was lost: ${wire.lost}`));
    if (heard.isStuck) throw new CheckEnd(unseen("The line takes no bytes: look at the flow control and the cable"));
    const answers = heard.frames.map(({ payload, atMs }) => answerOf(wholeOf(payload), atMs - sentMs));
    for (const { payload, ms } of answers) {
      this.note("terminal", `answers in ${Math.round(ms)} ms: ${this.#shown(payload.toString("utf8"))}`);
      this.#slowestMs = Math.max(this.#slowestMs, ms);
    }
    if (heard.strayBytes > 0) this.note("terminal", `sends ${heard.strayBytes} bytes that are no frame: ${heard.strayHead}`);
    if (answers.length === 0 && heard.strayBytes === 0)
      this.note("terminal", `says nothing for ${Math.round(nowMs() - sentMs)} ms`);
    const exchange = { ...heard, asked, answers, isSeveral };
    this.exchanges.push(exchange);
    return exchange;
  }

  /** Judges a silence: only a service that answers other questions has refused this one by it. */
  async #unanswered({ asked, strayBytes, strayHead, isChecksumWrong }: Exchange, waitMs: number): Promise<Finding> {
    const came = isChecksumWrong
      ? "answered with a wrong checksum"
      : strayBytes > 0
        ? `answered ${strayBytes} bytes that are no whole frame (${strayHead})`
        : `said nothing within ${waitMs / 1_000} s`;
    const { route } = this.contract.probe;
    const again = await this.send(this.frame(this.payload(route)), {
      asked: `${route}, to see if it is still there`,
      waitMs: this.answerMs(route),
    });
    const what = `Asked ${this.#shown(asked)}, the terminal ${came}`;
    if (again.answers.length > 0) return broken(what);
    const gone = unseen(`${what}, and answers nothing any more`);
    this.#presence = { absent: gone };
    return gone;
  }

  #shown(text: string): string {
    const { length } = text;
    return maskCardNumbers(printable(length > shownMax ? `${text.slice(0, shownMax)}...` : text));
  }
}

/** What a fiscal form has in place of its own data and sign; an empty sign is left out. */
interface FormChange {
  readonly data?: string;
  readonly sign?: string;
}

function answerOf(payload: Buffer, ms: number): Answer {
  const json = (isUtf8(payload) ? parseObject(payload.toString("utf8")) : undefined) ?? {};
  return { payload, json, status: json["status"], code: looseInteger(json["code"]), ms };
}

/** Without a whole frame there is a terminal only if its words can be read: at a wrong speed there are bytes, too. */
function absentOf(heard: readonly Exchange[], waitMs: number): Presence {
  const spoken = heard.find(({ isReadable }) => isReadable);
  const bytes = heard.reduce((sum, { strayBytes }) => sum + strayBytes, 0);
  if (spoken !== undefined) {
    const { isChecksumWrong, strayHead } = spoken;
    const why = isChecksumWrong
      ? "Its answers have a wrong checksum, by either reading"
      : `Its answers are no whole frames: they begin with ${strayHead}`;
    return { absent: unseen(why), garbled: isChecksumWrong ? "checksum" : "frame" };
  }
  if (heard.some(({ isEcho }) => isEcho)) {
    return { absent: unseen("What is sent comes back, and nothing else: the line echoes, and no terminal answers") };
  }
  const came =
    bytes === 0
      ? `Nothing was answered within ${waitMs / 1_000} s`
      : `${bytes} bytes came that are no frame: the speed may be another one`;
  return { absent: unseen(`${came}: posline doctor looks for the cause`) };
}

/** A field of an answer's data. */
export function dataOf({ json }: Answer): JsonObject {
  return isObject(json["data"]) ? json["data"] : {};
}
