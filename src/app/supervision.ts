import type { Log } from "../core/log.ts";
import { printable } from "../core/shell-text.ts";
import { type Environment, type ListeningSocket, passedDescriptors, socketAt } from "../systemd/descriptors.ts";
import { type Notifier, notifier } from "../systemd/notifier.ts";
import { startWatchdog, watchdogPeriodMs } from "../systemd/watchdog.ts";

/**
 * A process under systemd: the sockets it was given, and what it tells: that it is ready, how it does, that it reloads or stops, and
 * to the watchdog that it makes progress. Started by hand, all of this is nothing.
 */

/** Milliseconds between a change and the telling of it: an adapter that comes and goes must not start a process for each. */
const statusWaitMs = 200;

/** What runs, as far as its supervisor may know. */
export interface Supervised {
  /** How it does, in a line: "2 lines up, 1 recovering". */
  summary?(): string;
  /** Calls back whenever the summary may have changed. */
  onChange?(changed: () => void): void;
  /** What stands still and must not; undefined when all makes progress. An unplugged terminal is no standstill. */
  stalled?(): string | undefined;
}

export class Supervision {
  /** What systemd listens on for this process. */
  readonly sockets: readonly ListeningSocket[];
  readonly #log: Log;
  readonly #notifier: Notifier;
  readonly #periodMs: number | undefined;
  #supervised: Supervised = {};
  #stopping = false;
  #told = "";
  #note = "";
  #timer: NodeJS.Timeout | undefined;
  #watchdog: { stop(): void } | undefined;

  /** @throws Error when what systemd passed can't be taken over. */
  constructor(env: Environment, log: Log) {
    const { notify, sockets } = passedDescriptors(env);
    this.sockets = sockets.map(socketAt);
    this.#log = log;
    this.#notifier = notifier(env, notify, (error) => log.process("warn", "systemd could not be told", { error }));
    this.#periodMs = this.#notifier.listens ? watchdogPeriodMs(env) : undefined;
  }

  /** It serves now; from here on it is watched. */
  async ready(supervised: Supervised): Promise<void> {
    this.#supervised = supervised;
    this.#told = this.#summary();
    supervised.onChange?.(() => this.#changed());
    await this.#notifier.tell(["READY=1", `STATUS=${this.#told}`]);
    if (this.#periodMs === undefined) return;
    this.#watchdog = startWatchdog({
      periodMs: this.#periodMs,
      stalled: () => supervised.stalled?.(),
      ping: () => void this.#notifier.tell(["WATCHDOG=1"]),
      told: (stalled) => {
        if (stalled === undefined) this.#log.process("warn", "what stood still goes on: systemd's watchdog is told so");
        else this.#log.process("error", "systemd's watchdog isn't told that all is well", { error: stalled });
      },
    });
  }

  /** It takes another configuration, until `reloaded`. */
  async reloading(): Promise<void> {
    // systemd orders it by its own clock, which is the one that Node counts by.
    await this.#notifier.tell(["RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`, "STATUS=reloading"]);
  }

  /** @param refused True when the configuration could not be taken: `systemctl reload` succeeds all the same. */
  async reloaded(refused: boolean): Promise<void> {
    this.#note = refused ? "; the last reload was refused, the log says why" : "";
    this.#told = this.#summary();
    await this.#notifier.tell(["READY=1", `STATUS=${this.#told}`]);
  }

  /** It ends what is in flight; this may take longer than the watchdog waits, so that one is still told. */
  async stopping(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    await this.#notifier.tell(["STOPPING=1", "STATUS=stopping: what is in flight may end"]);
  }

  /** It has stopped, or never came to serve: nothing is told any more, and what nobody took over is let go of. */
  end(): void {
    this.#watchdog?.stop();
    for (const { holder } of this.sockets) holder.destroy();
  }

  #changed(): void {
    if (this.#stopping) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const summary = this.#summary();
      if (summary === this.#told) return;
      this.#told = summary;
      void this.#notifier.tell([`STATUS=${summary}`]);
    }, statusWaitMs);
  }

  /** systemd takes lines: a name from a configuration must not add one. */
  #summary(): string {
    const summary = this.#supervised.summary?.() ?? "running";
    return printable(`${summary}${this.#note}`);
  }
}
