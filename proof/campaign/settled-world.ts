import { setTimeout as sleep } from "node:timers/promises";
import { settlingRulesOf } from "../../src/contract/settling.ts";
import { isOperationEnd } from "../../src/core/followed.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { parseFaultChance } from "../../src/lab/emulator/faults/wire-fault.ts";
import { TerminalLine } from "../../src/lab/rehearse/terminal-line.ts";
import type { HttpAnswer } from "../../test/support/bridge-process.ts";
import { UnpluggableTty } from "../../test/support/unpluggable-tty.ts";
import { SettledBox } from "./settled-box.ts";
import { type Change, lines, reloadsOf } from "./settled-setup.ts";
import { type Named, SettledTerminal, type Standing, servicesOf } from "./settled-terminal.ts";
import { cutsOf, killGapsOf, type Script, type Sending, scriptsOf, sendingOf } from "./settled-till.ts";

/**
 * One world of followed operations: posline as a process, two lines of ptys or over TCP, a terminal at the end of each, tills that crash
 * and try again, and reloads, kill -9 and cut connections in between. What a word says is compared with the terminal's ledger at the moment
 * when it comes.
 */

export interface WorldOptions {
  readonly seed: number;
  readonly operations: number;
  /** Tills of each line, each with one operation at a time. */
  readonly tills: number;
  /** Whether posline is killed now and then; else each reload is waited for until the box is ready again. */
  readonly isKilled: boolean;
  /** Whether its lines are connections over TCP, which are cut now and then; else they are ptys. */
  readonly isOverTcp: boolean;
  /** No operation is begun after so many milliseconds. */
  readonly beginMs: number;
  /** Milliseconds for which a till tries, and for which it tries once more when nothing is killed any more. */
  readonly patienceMs: number;
  readonly lastPatienceMs: number;
}

/** What a world found. */
export interface WorldResult {
  readonly seed: number;
  operations: number;
  /** Calls of tills. */
  calls: number;
  /** Operations that arrived at a terminal, each time. */
  arrivals: number;
  kills: number;
  cuts: number;
  /** Milliseconds for which a call took longer than it waits, and for which the box wasn't ready after a reload, at most. */
  longestMs: number;
  notReadyMs: number;
  /** Reloads, by what became of them. */
  readonly reloads: Map<string, number>;
  /** How often each word was answered. */
  readonly words: Map<string, number>;
  /** What broke a promise, in words. */
  readonly broken: string[];
  /** Reasons for which the journal has operations as unknown in the end, with their number. */
  readonly unknown: Map<string, number>;
  /** Operations of tills without a final word in the end, by why. */
  readonly open: Map<string, number>;
}

/** Of all answers, also to questions and probes. Few enough that a line is mostly at work. */
const chances = [
  ...["corrupt=0.01", "no-answer=0.01", "truncated=0.01", "wrong-length=0.005", "late:1500=0.01", "after-next=0.005"],
  ...["twice=0.01", "noise=0.01", "pieces:50=0.01", "unplug:500=0.005", "reserved-crc=0.01"],
];

/** So much rarer are they over TCP: each cut is followed by a dozen questions that must all go well before the next operation. */
const rarer = 8;

/**
 * Milliseconds beside what a call waits for, in which it is answered. A follow-up takes the longest: the turn of the question before it (30 s),
 * two questions more (15 s), its own turn (15 s), its reply and its record, on a busy machine.
 */
const callMsMax = 75_000;

/** Milliseconds in which the box is ready again: the longest recovery that docs/limits.md has of terminals that answer at once. */
const readyMsMax = 360_000;

/** Milliseconds until the bank's "there is none" proves something (`absentsAfterMs`), with the questions that are needed. */
const absenceMs = 45_000;

/** Standings of what was carried out. */
const isDone = (standing: Standing) => standing === "approved" || standing === "closed" || standing === "unprinted";

/** An operation with what its tills learned. */
interface Operation {
  readonly script: Script;
  readonly sending: Sending;
  word: string;
  /** That word was given to a call that wasn't sent. */
  isUnsent: boolean;
  /** The answer's own text for the case that no word came. */
  said: string;
  /** It was called while its service may have had the other line's terminal. */
  wasMoved: boolean;
}

export class World {
  readonly #options: WorldOptions;
  readonly #result: WorldResult;
  readonly #operations: Operation[] = [];
  readonly #terminals: SettledTerminal[] = [];

  constructor(options: WorldOptions) {
    this.#options = options;
    const counts = { operations: 0, calls: 0, arrivals: 0, kills: 0, cuts: 0, longestMs: 0, notReadyMs: 0 };
    const maps = { reloads: new Map(), words: new Map(), unknown: new Map(), open: new Map() };
    this.#result = { seed: options.seed, ...counts, ...maps, broken: [] };
  }

  async run(): Promise<WorldResult> {
    const { seed, isOverTcp } = this.#options;
    const wires = isOverTcp ? await Promise.all(lines.map(() => TerminalLine.open())) : [];
    const box = await SettledBox.create(wires.map(({ path }) => path));
    try {
      const faults = chances.map(parseFaultChance);
      const all = isOverTcp ? faults.map((each) => ({ ...each, share: each.share / rarer })) : faults;
      for (const line of lines) {
        const standing = (named: Named) => this.#standing(named);
        const wire = wires[line - 1];
        const path = wire?.path ?? box.tty(line);
        const device = wire ?? new UnpluggableTty(path);
        const options = { path, device, services: servicesOf(line), seed: seed + line, chances: all, standing };
        this.#terminals.push(new SettledTerminal(options));
      }
      await box.start();
      const over = new AbortController();
      const mishaps = [this.#reloadAgainAndAgain(box, over.signal)];
      if (this.#options.isKilled) mishaps.push(this.#killAgainAndAgain(box, over.signal));
      if (isOverTcp) mishaps.push(this.#cutAgainAndAgain(wires, over.signal));
      await this.#tillsDo(box);
      over.abort();
      await Promise.all(mishaps);
      await this.#reload(box, [{ what: "all" }]);
      await this.#settleLast(box);
      await this.#becomesReady(box);
      await this.#judgeEnd(box);
      return this.#result;
    } finally {
      await box.end();
      for (const terminal of this.#terminals) await terminal.end();
    }
  }

  async #killAgainAndAgain(box: SettledBox, signal: AbortSignal): Promise<void> {
    for (const gapMs of killGapsOf(this.#options.seed)) {
      await sleep(gapMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await box.kill();
      this.#result.kills++;
      await box.start();
    }
  }

  async #cutAgainAndAgain(wires: readonly TerminalLine[], signal: AbortSignal): Promise<void> {
    for (const { gapMs, line, afterMs, awayMs } of cutsOf(wires.length, this.#options.seed)) {
      await sleep(gapMs, undefined, { signal }).catch(() => {});
      await this.#arrival(line, signal);
      if (afterMs > 0) await sleep(afterMs);
      if (signal.aborted) return;
      const wire = wires[line - 1];
      if (awayMs === 0) wire?.cut();
      else wire?.unplug(awayMs);
      this.#result.cuts++;
    }
  }

  /** Waits for the next operation that arrives at a line's terminal. */
  async #arrival(line: number, signal: AbortSignal): Promise<void> {
    const terminal = this.#terminals[line - 1];
    if (terminal === undefined || signal.aborted) return;
    await new Promise<void>((resolve) => {
      signal.onabort = () => resolve();
      terminal.onArrival = resolve;
    });
  }

  async #reloadAgainAndAgain(box: SettledBox, signal: AbortSignal): Promise<void> {
    for (const { gapMs, changes } of reloadsOf(this.#options.seed)) {
      await sleep(gapMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      if (!box.isUp) continue;
      await this.#reload(box, changes);
      if (!this.#options.isKilled) await this.#becomesReady(box);
    }
  }

  async #reload(box: SettledBox, changes: readonly Change[]): Promise<void> {
    const { reloads, broken } = this.#result;
    try {
      const end = await box.reload(changes);
      const name = `${changes.length > 1 ? "two in one moment" : changes[0]?.what} ${end}`;
      reloads.set(name, (reloads.get(name) ?? 0) + 1);
    } catch (error) {
      broken.push(`a reload was not as it should be: ${String(error)}`);
    }
  }

  async #tillsDo(box: SettledBox): Promise<void> {
    const { operations, seed, tills, beginMs, patienceMs } = this.#options;
    const scripts = scriptsOf(operations, lines.length, seed).entries();
    const untilMs = performance.now() + beginMs;
    const till = async () => {
      // All tills take from the same list.
      for (const [index, script] of scripts) {
        if (performance.now() > untilMs) return;
        const operation = this.#begin(script, index);
        await this.#follow(box, operation, patienceMs);
      }
    };
    await Promise.all(Array.from({ length: tills * lines.length }, till));
  }

  #begin(script: Script, index: number): Operation {
    const terminal = this.#terminalOf(script);
    const needsSale = script.kind.startsWith("refund");
    const key = `ORIGINAL-${index}`;
    const rrn = needsSale ? terminal.soldBefore(script.line === 1 ? "bank" : `bank-${script.line}`, key) : "";
    const operation = {
      script,
      sending: sendingOf(script, index, { key, rrn }),
      word: "",
      isUnsent: false,
      said: "",
      wasMoved: false,
    };
    this.#operations.push(operation);
    this.#result.operations++;
    return operation;
  }

  /** The terminal that its service has in the beginning, and in the end. */
  #terminalOf({ line }: Script): SettledTerminal {
    const terminal = this.#terminals[line - 1];
    if (terminal === undefined) throw new Error(`there is no line ${line}`);
    return terminal;
  }

  /** The terminal that has it, where one does. */
  #holderOf(named: Named): SettledTerminal | undefined {
    return this.#terminals.find((terminal) => terminal.standing(named) !== "absent");
  }

  /** What the terminals have of an operation. */
  #standing(named: Named): Standing {
    return this.#holderOf(named)?.standing(named) ?? "absent";
  }

  /** Sends the same call until its word is final, as docs/settling.md has it, or the till's patience ends. */
  async #follow(box: SettledBox, operation: Operation, patienceMs: number): Promise<void> {
    const { script } = operation;
    const untilMs = performance.now() + patienceMs;
    let tries = script.tries;
    for (let n = 0; performance.now() < untilMs; n++) {
      const leaveMs = script.leavesMs[n];
      const waitS = n === 0 && script.isPlainFirst ? undefined : script.waitS;
      const calls = [this.#call(box, operation, waitS, leaveMs)];
      if (n === 0 && script.isDouble) calls.push(this.#call(box, operation, waitS, undefined));
      await Promise.all(calls);
      const { word, isUnsent } = operation;
      if (isOperationEnd(word) && (word !== "failed" || (!isUnsent && --tries <= 0))) return;
      if (word === "unknown" && n > 2 && this.#cannotTell(operation) !== undefined) return;
      await sleep(box.has(operation.sending.service) ? script.gapMs : 50);
    }
  }

  async #call(box: SettledBox, operation: Operation, waitS: number | undefined, leaveMs: number | undefined): Promise<void> {
    const { service, contract, route, body } = operation.sending;
    if (!box.has(service)) return;
    this.#result.calls++;
    const begunMs = performance.now();
    const wasMoved = box.isMoved(contract);
    const boundMs = 1_000 * (waitS ?? 0) + callMsMax;
    const answer = await box.post(service, route, body, waitS, leaveMs ?? boundMs);
    if (wasMoved || box.isMoved(contract)) operation.wasMoved = true;
    const tookMs = performance.now() - begunMs;
    this.#result.longestMs = Math.max(this.#result.longestMs, tookMs - 1_000 * (waitS ?? 0));
    if (tookMs >= boundMs) this.#result.broken.push(`${nameOf(operation)} was not answered in ${boundMs} ms`);
    // What failed before may have been sent again now.
    if (answer === undefined && operation.word === "failed") operation.word = "";
    if (answer === undefined) return;
    const word = answer.headers["x-posline-result"] ?? "";
    operation.said = `${answer.status} ${answer.text}`;
    if (waitS === undefined) return;
    const shown = word === "" ? "(none)" : word;
    this.#result.words.set(shown, (this.#result.words.get(shown) ?? 0) + 1);
    // Of two calls at once the one that knows more counts.
    if (!isOperationEnd(operation.word) || isOperationEnd(word) || operation.word === "failed") {
      operation.word = word;
      operation.isUnsent = answer.headers["x-posline-outcome"] === "not-sent";
    }
    this.#judge(operation, word, answer);
  }

  /** Whether a word is true at the moment when it comes. */
  #judge(operation: Operation, word: string, { text }: HttpAnswer): void {
    const { sending } = operation;
    const standing = this.#standing(sending);
    const isTrue = truths[word]?.includes(standing) ?? true;
    const name = nameOf(operation);
    if (!isTrue) this.#result.broken.push(`${name} was answered ${word}, and the terminal has it as ${standing}: ${text}`);
    // Where the journal has the word and the question went wrong, no answer of the terminal's is shown.
    const isShown = /"(?:data|documentID)"/.test(text);
    if (!isDone(standing) || !isOperationEnd(word) || !isShown) return;
    const own = String(this.#holderOf(sending)?.numberOf(sending));
    if (!text.includes(own)) this.#result.broken.push(`${name}: ${word} stands beside another's answer than ${own}: ${text}`);
  }

  /** After a reload its lines may have to be opened anew, and to prove themselves clean. */
  async #becomesReady(box: SettledBox): Promise<void> {
    const begunMs = performance.now();
    let why: string | undefined = "";
    while (why !== undefined && performance.now() - begunMs < readyMsMax) {
      await sleep(100);
      why = await box.notReady();
    }
    this.#result.notReadyMs = Math.max(this.#result.notReadyMs, performance.now() - begunMs);
    if (why !== undefined) this.#result.broken.push(`it is not ready ${readyMsMax} ms after a reload: ${why}`);
  }

  /** With nothing killed any more, each till sends its call again until it knows. */
  async #settleLast(box: SettledBox): Promise<void> {
    for (const terminal of this.#terminals) terminal.calm();
    const { lastPatienceMs } = this.#options;
    const open = this.#operations.filter(
      (operation) => !isOperationEnd(operation.word) && this.#needsTime(operation) === undefined,
    );
    await Promise.all(
      open.map(async (operation) => {
        const script = {
          ...operation.script,
          leavesMs: [],
          gapMs: 500,
          waitS: 3,
          isPlainFirst: false,
          isDouble: false,
          tries: 1,
        };
        const last = { ...operation, script };
        await this.#follow(box, last, lastPatienceMs);
        operation.word = last.word;
        operation.said = last.said;
        operation.wasMoved = last.wasMoved;
      }),
    );
  }

  /** What the journal says in the end, and how often each operation arrived. */
  async #judgeEnd(box: SettledBox): Promise<void> {
    const { broken, open } = this.#result;
    for (const operation of this.#operations) {
      const { sending, word, said } = operation;
      if (isOperationEnd(word)) continue;
      const standing = this.#standing(sending);
      const why = this.#cannotTell(operation) ?? this.#needsTime(operation);
      const name = nameOf(operation);
      if (why === undefined) broken.push(`${name} never ended (${word}), and the terminal has it as ${standing}: ${said}`);
      else open.set(why, (open.get(why) ?? 0) + 1);
    }
    for (const terminal of this.#terminals) {
      this.#result.arrivals += terminal.arrivals.length;
      for (const { contract, route, key, before } of terminal.arrivals) {
        if (before !== "absent") broken.push(`${contract} ${route} ${key} was sent again, and a terminal had it as ${before}`);
      }
    }
    for (const listed of await box.unknown()) this.#judgeUnknown(listed);
    const records = await box.operations();
    for (const operation of this.#operations) this.#judgeRecords(operation, records);
  }

  /**
   * By contract there may be no question that names it: the name stood in an answer that was lost, or it names the sale too, as it does
   * where nobody asked before the sending.
   */
  #cannotTell({ script, sending, wasMoved }: Operation): string | undefined {
    const { kind, isPlainFirst } = script;
    const holder = this.#holderOf(sending);
    // Of what the other terminal was asked, and may never have got, nothing proves that there is none.
    if (wasMoved && holder !== this.#terminalOf(script))
      return "moved: it went to a terminal that its service doesn't have any more";
    const isPaid = this.#standing(sending) === "approved";
    if (kind === "qr-palm" && !isPaid) return "qr: an error proves nothing of a payment whose start was not answered";
    if (kind === "qr") return "qr: its trans was in an answer that was lost";
    const isShared = kind === "refund-shared" || (kind === "refund" && isPlainFirst);
    return isShared ? "refund: its key may be the sale's" : undefined;
  }

  /** Only time is missing, in a world that has none. */
  #needsTime({ sending }: Operation): string | undefined {
    const standing = this.#standing(sending);
    const isShort = this.#options.lastPatienceMs < absenceMs;
    return isShort && sending.contract === "bank" && standing === "absent"
      ? "bank: there is none, which takes 30 s to be proven"
      : undefined;
  }

  #judgeUnknown(listed: JsonObject): void {
    const { broken, unknown } = this.#result;
    const operation = this.#operations.find(({ sending }) => isOf(sending, listed));
    const { cannotAsk } = listed;
    const cannotTell = operation === undefined ? undefined : this.#cannotTell(operation);
    const needsTime = operation === undefined ? undefined : this.#needsTime(operation);
    // It may be asked for a day, and yet no answer proves anything.
    const known = typeof cannotAsk === "string" ? cannotAsk : cannotTell;
    const reason = cannotTell === undefined ? needsTime : known;
    if (reason !== undefined) unknown.set(reason, (unknown.get(reason) ?? 0) + 1);
    else broken.push(`the journal has as unknown, though a question could tell: ${JSON.stringify(listed)}`);
  }

  /** Each sending but the last must be proven to have come to nothing, and what is settled must be so. */
  #judgeRecords(operation: Operation, records: readonly JsonObject[]): void {
    const { broken } = this.#result;
    const { sending } = operation;
    const name = nameOf(operation);
    const sent = records.filter((row) => row["outcome"] !== "not-sent" && isOf(sending, row));
    const rules = settlingRulesOf(sending.contract, sending.route);
    for (const { result, outcome, code } of sent.slice(0, -1)) {
      // What was answered without being followed has no result: its code may say that nothing was begun.
      const isRefused = outcome === "answered" && typeof code === "number" && rules?.refusals.includes(code) === true;
      if (result !== "failed" && !isRefused)
        broken.push(`${name} was sent again, and the journal had it as ${String(outcome)} ${String(result)}`);
    }
    const arrivals = this.#terminals.flatMap((terminal) => terminal.arrivals.filter((each) => isSame(sending, each)));
    if (arrivals.length > sent.length)
      broken.push(`${name} arrived ${arrivals.length} times, and the journal has ${sent.length}`);
    const last = sent.at(-1);
    const result = last?.["result"];
    const standing = this.#standing(sending);
    if (typeof result === "string" && truths[result]?.includes(standing) !== true) {
      broken.push(`${name} is settled as ${result}, and the terminal has it as ${standing}`);
    }
  }
}

/** With the digits of its amount. */
const nameOf = ({ script: { ending }, sending: { service, route, key } }: Operation) =>
  `${service} ${route} ${key} (${ending})`;

const isSame = (one: Named, other: Named) =>
  one.contract === other.contract && one.route === other.route && one.key === other.key;

/** Whether a record names this operation. */
function isOf({ service, route, key }: Sending, record: JsonObject): boolean {
  return record["service"] === service && record["route"] === route && record["key"] === key;
}

/** What the terminal may have of an operation when a word comes. */
const truths: Readonly<Record<string, readonly Standing[]>> = {
  approved: ["approved"],
  closed: ["closed"],
  unprinted: ["unprinted"],
  reversed: ["reversed"],
  // What was refused before it began isn't there.
  declined: ["declined", "absent"],
  failed: ["absent"],
};
