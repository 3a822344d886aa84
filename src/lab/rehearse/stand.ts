import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type ContractName, contractNames } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import { readJournal } from "../../journal/reader.ts";
import type { World } from "../emulator/world.ts";
import type { Moment } from "../report/judgement.ts";
import type { Cable } from "./cable.ts";
import { Posline } from "./posline.ts";
import { type AmountName, type DeedStep, deeds, neededServices, type Scenario } from "./scenario.ts";
import { Terminal } from "./terminal.ts";
import type { Order, TillRun } from "./till.ts";
import { type AskResult, amountText, type ResultHeard } from "./verdict.ts";

/** One scenario played: a terminal, posline and the till, from the first deed to the three ledgers. */

/** Runs the till for one deed, with the places where it finds posline. */
export type Till = (order: Order, env: Readonly<Record<string, string>>) => TillRun;

export interface StandOptions {
  readonly scenario: Scenario;
  readonly till: Till;
  /** The shop that the terminal stands in. */
  readonly world: World;
  readonly program: readonly string[];
  /** What its keys begin with: no other rehearsal has it. */
  readonly keys: string;
  /** Origins of pages that may call posline. */
  readonly origins: readonly string[];
  readonly amounts: Readonly<Record<AmountName, bigint>>;
  /** From the till to posline. */
  readonly ways: Cables;
  /** Where a till may send the word of a deed, by its key. */
  readonly wordUrl: (key: string) => string;
  /** Told of each moment when it comes. */
  readonly noted?: ((moment: Moment) => void) | undefined;
}

export interface Played {
  readonly results: readonly AskResult[];
  readonly moments: readonly Moment[];
  readonly tookMs: number;
}

/** From a till to posline's services: they begin at the same ports for as long as a rehearsal goes on. */
export type Cables = Readonly<Record<ContractName, Cable>>;

/** The merchant's id of a rehearsal, which its till signs with. */
export const merchantId = "MERCHANT-1";

/** Milliseconds from a till's death to its next run. */
const restartMs = 300;

/** Milliseconds without a network: longer than a till that tries again three times may take for the end. */
const networkAwayMs = 12_000;

/** Milliseconds after a till has ended in which what it left behind may still come. */
const settleMs = 250;

/** Plays a scenario. Nothing of it is left running or lying about. */
export async function play(options: StandOptions): Promise<Played> {
  const stand = new Stand(options);
  open.add(stand);
  try {
    return await stand.play();
  } finally {
    await stand.close();
    open.delete(stand);
  }
}

const open = new Set<Stand>();

/** Ends at once all that is being played: the process is about to end. */
export function endPlays(): void {
  for (const stand of open) stand.end();
}

class Stand {
  readonly #options: StandOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "posline-rehearsal-"));
  readonly #moments: Moment[] = [];
  readonly #startMs = nowMs();
  readonly #running = new Set<TillRun>();
  #terminal: Terminal | undefined;
  #posline: Posline | undefined;

  constructor(options: StandOptions) {
    this.#options = options;
  }

  async play(): Promise<Played> {
    const { scenario, world, program, origins } = this.#options;
    const terminal = await Terminal.open({ world, saw: (text) => this.#note("terminal", text) });
    this.#terminal = terminal;
    const posline = new Posline({
      folder: this.#folder,
      program,
      line: terminal.path,
      merchantId,
      settings: Object.fromEntries(neededServices(scenario).map((service) => [service, scenario.settings])),
      origins,
      saw: (text) => this.#note("bridge", text),
    });
    this.#posline = posline;
    await posline.start();
    this.#lead(posline);
    await posline.ready();
    const asked: Omit<AskResult, "amount" | "began">[] = [];
    const marks = [terminal.mark()];
    for (const step of scenario.steps) {
      if (typeof step === "number") {
        terminal.emulator.advance(step);
        this.#note("rehearsal", `a day later: the terminal's clock goes on by ${step / 3_600_000} h`);
        continue;
      }
      asked.push(await this.#ask(step, terminal, posline));
      marks.push(terminal.mark());
    }
    await posline.stop();
    await this.#noteSendings();
    const last = marks.length - 1;
    marks[last] = terminal.mark();
    terminal.endAll();
    const results = asked.map((result, index): AskResult => {
      const began = terminal.since(marks[index] ?? new Map(), marks[index + 1] ?? new Map(), this.#startMs);
      return { ...result, amount: this.#amountOf(result.ask), began };
    });
    const moments = this.#moments.toSorted((one, other) => one.atMs - other.atMs);
    return { results, moments: withoutRepeats(moments), tookMs: nowMs() - this.#startMs };
  }

  /** Ends what runs, and removes what was written. */
  end(): void {
    for (const run of this.#running) run.kill();
    this.#posline?.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.end();
    await this.#terminal?.stop();
  }

  async #ask(ask: DeedStep, terminal: Terminal, posline: Posline) {
    const { trouble } = ask;
    let killing: Promise<void> = Promise.resolve();
    const runs = Array.from({ length: ask.twice === true ? 2 : 1 }, () => this.#runOf(ask));
    posline.look();
    const came =
      trouble === undefined
        ? () => true
        : terminal.trouble(ask, trouble, () => {
            if (trouble.kind === "bridge-killed") {
              killing = posline.kill().then(() => this.#lead(posline));
              // Awaited once the till has ended; until then it may fail.
              killing.catch(() => {});
            } else if (trouble.kind === "connection-cut") killing = this.#cutConnections();
            else for (const run of runs) run.killAndRepeat();
          });
    const said = await Promise.all(runs.map((run) => run.begin()));
    await killing;
    await pause(settleMs);
    const { wasHeldUp, questionsPerSecond, twice } = posline.look();
    const called = [...terminal.called, ...twice];
    const untested = this.#untested(ask, came(), wasHeldUp, called);
    terminal.calm();
    return { ask, said, untested, called, questionsPerSecond };
  }

  #lead(posline: Posline): void {
    for (const name of contractNames) this.#options.ways[name].lead(posline.ports[name]);
  }

  async #cutConnections(): Promise<void> {
    this.#note("rehearsal", `the till's network is gone for ${networkAwayMs / 1_000} s`);
    for (const name of contractNames) this.#options.ways[name].cut(networkAwayMs);
    await pause(networkAwayMs);
  }

  /** What posline's journal says that it sent. */
  async #noteSendings(): Promise<void> {
    const startedAt = Date.now() - (nowMs() - this.#startMs);
    const { records } = await readJournal(this.#folder);
    for (const { record } of records) {
      if (record.kind !== "sent") continue;
      const { route, key, amount, timeMs } = record;
      const of = amount !== undefined && /^\d+$/.test(amount) ? ` of ${amountText(BigInt(amount))}` : "";
      this.#moments.push({
        atMs: timeMs - startedAt,
        who: "bridge",
        text: `sends ${route}${key === undefined ? "" : ` ${key}`}${of}`,
      });
    }
  }

  /** Why the till never met what was to go wrong; undefined if it did. */
  #untested({ deed, trouble, at, seenBy }: DeedStep, came: boolean, wasHeldUp: boolean, called: readonly string[]) {
    if ((trouble?.kind === "cable" || trouble?.kind === "silence") && !wasHeldUp) {
      return "The till made no call while the line was out";
    }
    if (!came) return `No ${at ?? deeds[deed].routes.join(" or ")} came to the terminal, so nothing went wrong with it`;
    const isSeen = seenBy === undefined || called.includes(`${deeds[deed].contract} ${seenBy}`);
    return isSeen ? undefined : `The till made no call of ${seenBy}`;
  }

  /** A run of the till, and another one after it was killed. */
  #runOf(ask: DeedStep) {
    const { till, keys } = this.#options;
    const order: Order = {
      do: ask.deed,
      key: keys + ask.key,
      amount: String(this.#amountOf(ask)),
      of: ask.of === undefined ? "" : keys + ask.of,
    };
    let run: TillRun | undefined;
    const begin = (resolve: (said: ResultHeard) => void, reject: (error: unknown) => void) => {
      this.#note("till", `is asked for a ${ask.deed} of ${amountText(this.#amountOf(ask))} with key ${order.key}`);
      run = till(order, { ...this.#environment(order.key), ...environmentOf(ask) });
      const own = run;
      this.#running.add(own);
      own.ended.then(({ word, text, how }) => {
        this.#running.delete(own);
        this.#note("till", how === "stopped" ? "does not end, and is ended" : `says ${text}`);
        resolve({ atMs: nowMs() - this.#startMs, word, text, how });
      }, reject);
    };
    let again = () => {};
    return {
      begin: () =>
        new Promise<ResultHeard>((resolve, reject) => {
          again = () => begin(resolve, reject);
          again();
        }),
      killAndRepeat: () => {
        if (run === undefined) return;
        run.kill();
        this.#running.delete(run);
        this.#note("till", "is killed");
        setTimeout(() => {
          if (open.has(this)) again();
        }, restartMs);
      },
    };
  }

  #environment(key: string): Readonly<Record<string, string>> {
    const { fiscal, bank, qr } = this.#options.ways;
    return {
      POSLINE_WORD_URL: this.#options.wordUrl(key),
      POSLINE_BANK_URL: `http://127.0.0.1:${bank.port}`,
      POSLINE_FISCAL_URL: `http://127.0.0.1:${fiscal.port}`,
      POSLINE_QR_URL: `http://127.0.0.1:${qr.port}`,
      POSLINE_MERCHANT_ID: merchantId,
      POSLINE_CURRENCY: Object.keys(this.#options.world.bank.currencies)[0] ?? "",
    };
  }

  #amountOf({ amount = "first" }: DeedStep): bigint {
    return this.#options.amounts[amount];
  }

  #note(who: Moment["who"], text: string): void {
    const moment = { atMs: nowMs() - this.#startMs, who, text };
    this.#moments.push(moment);
    this.#options.noted?.(moment);
  }
}

/** Of what came many times in a row, a till's polling mostly, the first and the last. */
function withoutRepeats(moments: readonly Moment[]): readonly Moment[] {
  const isSame = (one: Moment, other?: Moment) => one.who === other?.who && one.text === other.text;
  return moments.filter((each, index) => !isSame(each, moments[index - 1]) || !isSame(each, moments[index + 1]));
}

const environmentOf = ({ article }: DeedStep): Readonly<Record<string, string>> =>
  article === undefined ? {} : { POSLINE_ITEM: article.name, POSLINE_QUANTITY: String(article.quantity) };
