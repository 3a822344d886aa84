import type { LineConfig } from "../../config/config.ts";
import { lineDefaults } from "../../config/limits.ts";
import { contracts, routeOf } from "../../contract/contracts.ts";
import { type Call, type ContractName, contractNames } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import type { LineListener } from "../../line/listener.ts";
import { readOutcome } from "../emulator/control.ts";
import { type EmulatedReply, Emulator } from "../emulator/emulator.ts";
import { parseWireFault } from "../emulator/faults/wire-fault.ts";
import type { LedgerEntry } from "../emulator/ledger.ts";
import { listenAtDevice } from "../emulator/line-endpoint.ts";
import type { World } from "../emulator/world.ts";
import { type DeedStep, deeds, type Trouble } from "./scenario.ts";
import { TerminalLine } from "./terminal-line.ts";
import { amountText, type Began } from "./verdict.ts";

/** The terminal of a rehearsal: the emulator at the end of a cable, with its ledger, and what goes wrong with it. */

export interface TerminalOptions {
  readonly world: World;
  /** Told of each request that moves money, prints or asks about it, with what became of it. */
  readonly saw: (text: string) => void;
}

/** A ledger at one moment: the amount of each entry. */
export type LedgerMark = ReadonlyMap<string, bigint>;

/** Milliseconds by which the terminal's clock is moved on to see how it all ends: longer than anything goes on. */
const endingMs = 3_600_000;

export class Terminal {
  readonly emulator: Emulator;
  readonly #saw: (text: string) => void;
  readonly #line: TerminalLine;
  readonly #listener: LineListener;
  /** When an answer could first tell that an entry began, and that it ended. */
  readonly #times = new Map<string, readonly [begunMs: number, endedMs?: number]>();
  readonly #called = new Set<string>();
  #silentUntilMs = 0;
  /** Called with the next request for a deed, before it is carried out; true: it is lost. */
  #next: { readonly contract: ContractName; readonly routes: readonly string[]; readonly came: () => boolean } | undefined;

  static async open(options: TerminalOptions): Promise<Terminal> {
    return new Terminal(options, await TerminalLine.open());
  }

  private constructor({ world, saw }: TerminalOptions, line: TerminalLine) {
    this.emulator = new Emulator({ plainAmounts: true, world });
    const config: LineConfig = { ...lineDefaults, path: line.path };
    this.#saw = saw;
    this.#line = line;
    this.#listener = listenAtDevice({
      emulator: { answer: (call) => this.#answer(call) },
      config,
      open: line.open,
      unplug: (ms) => line.unplug(ms),
      services: contractNames.map((service) => ({ contract: contracts[service], service })),
    });
  }

  /** The path of the line that leads to it. */
  get path(): string {
    return this.#line.path;
  }

  /**
   * Lets something go wrong with the next deed.
   * @param hurt Called when the deed's request has come, if somebody else is to be hurt then.
   * @returns whether it has come to that.
   */
  trouble({ deed, at }: Pick<DeedStep, "deed" | "at">, trouble: Trouble, hurt: () => void): () => boolean {
    const { contract } = deeds[deed];
    const routes = at === undefined ? deeds[deed].routes : [at];
    let came = false;
    const onNext = (isLost: boolean, then: () => void = () => {}) => {
      this.#next = {
        contract,
        routes,
        came: () => {
          came = true;
          then();
          return isLost;
        },
      };
      return () => came;
    };
    switch (trouble.kind) {
      case "outcome": {
        const outcome = readOutcome(contract, trouble.outcome);
        if (outcome === undefined) throw new RangeError(`Cannot rehearse: ${contract} has no outcome ${trouble.outcome}`);
        return onNext(false, () => this.#force(contract, { outcome }));
      }
      case "fault": {
        const fault = parseWireFault(trouble.fault);
        return onNext(false, () => this.#force(contract, { fault }));
      }
      case "lost":
        return onNext(true);
      case "bridge-killed":
        // Who is killed gets no answer, however fast it would be.
        return onNext(false, () => {
          this.#force(contract, { fault: { kind: "no-answer" } });
          hurt();
        });
      case "till-killed":
      case "connection-cut":
        return onNext(false, hurt);
      case "cable":
        this.#line.unplug(trouble.ms);
        this.#saw(`the cable is out for ${trouble.ms / 1_000} s`);
        return () => true;
      case "silence":
        this.#silentUntilMs = nowMs() + trouble.ms;
        this.#line.unplug(100);
        this.#saw(`the terminal is silent for ${trouble.ms / 1_000} s`);
        return () => true;
    }
  }

  /** What was called since nothing went wrong and does more than read: `bank /sale`. */
  get called(): readonly string[] {
    return [...this.#called];
  }

  /** Lets nothing more go wrong. */
  calm(): void {
    this.#called.clear();
    this.#next = undefined;
    this.emulator.plan.reset();
  }

  mark(): LedgerMark {
    return new Map(this.#entries().map(([id, { amount }]) => [id, amount]));
  }

  /** What began since then, as it ends if nobody does anything more. */
  since(mark: LedgerMark, until: LedgerMark, startMs: number): readonly Began[] {
    return this.#entries().flatMap(([id, entry, service]) => {
      const before = mark.get(id) ?? 0n;
      const after = until.get(id) ?? 0n;
      if (after === before) return [];
      const [begunMs, endedMs = Number.POSITIVE_INFINITY] = this.#times.get(id) ?? [startMs];
      return [{ ...entry, amount: after - before, service, atMs: begunMs - startMs, endedMs: endedMs - startMs }];
    });
  }

  /** Moves its clock on to where all that is in progress has ended. */
  endAll(): void {
    this.emulator.advance(endingMs);
  }

  async stop(): Promise<void> {
    await this.#listener.stop();
    await this.#line.close();
  }

  #entries(): readonly (readonly [id: string, entry: LedgerEntry, service: ContractName])[] {
    const { services } = this.emulator;
    return contractNames.flatMap((service) =>
      services[service].ledger().map((entry) => [`${service} ${entry.id}`, entry, service] as const),
    );
  }

  #force(service: ContractName, effect: Parameters<Emulator["plan"]["force"]>[0]["effect"]): void {
    this.emulator.plan.force({ service, effect });
  }

  #answer(call: Call): EmulatedReply {
    const { contract, route, key } = call;
    const isOperation = (routeOf(contracts[contract], route)?.effect ?? "none") !== "none";
    const isShown = isOperation || key !== undefined;
    const name = `${route}${key === undefined ? "" : ` ${key}`}`;
    if (nowMs() < this.#silentUntilMs) return silence;
    if (isOperation) this.#called.add(`${contract} ${route}`);
    const next = this.#next;
    if (next !== undefined && next.contract === contract && next.routes.includes(route)) {
      this.#next = undefined;
      if (next.came()) {
        this.#saw(`${name}: lost, neither carried out nor answered`);
        return silence;
      }
    }
    const answered = this.emulator.answer(call, "line");
    const began = this.#noteTimes();
    if (!isShown) return answered;
    const { status, code } = answered.reply;
    const fault = answered.fault === undefined ? "" : `, but the answer: ${answered.fault.kind}`;
    this.#saw(`${name}: ${began}${status ?? "answered"}${code === undefined || code === 0 ? "" : ` ${code}`}${fault}`);
    return answered;
  }

  /** Notes when entries of the ledger began and ended, and says which began now. */
  #noteTimes(): string {
    const entries = this.#entries();
    const fresh = entries.filter(([id]) => !this.#times.has(id));
    for (const [id, { end }] of entries) {
      const [begunMs, endedMs] = this.#times.get(id) ?? [nowMs()];
      this.#times.set(id, end === "in progress" ? [begunMs] : [begunMs, endedMs ?? nowMs()]);
    }
    return fresh.map(([, { amount }]) => `begins ${amountText(amount)}; `).join("");
  }
}

/** No answer, and nothing carried out. */
const silence: EmulatedReply = {
  reply: { payload: [Buffer.from("{}")], status: undefined, code: undefined, queueMs: 0, lineMs: 0 },
  fault: { kind: "no-answer" },
};
