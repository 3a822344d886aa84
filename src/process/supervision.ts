import type { Log } from "../core/log.ts";
import { printable } from "../core/shell-text.ts";
import { type ListeningSocket, passedDescriptors, socketAt } from "../systemd/descriptors.ts";
import { type Notifier, notifier } from "../systemd/notifier.ts";
import { startWatchdog, watchdogPeriodMs } from "../systemd/watchdog.ts";

/**
 * A process under systemd: the sockets it was passed, and its notifications: ready, status, reloading, stopping, and the watchdog's
 * pings while it makes progress. Started by hand, none of this happens.
 */

/** Milliseconds between a change and its notification: an adapter that comes and goes must not start a process for each. */
const statusWaitMs = 200;

/** What a supervised process shows to its supervisor. */
export interface Supervised {
  /** Its status in one line: "2 lines up, 1 recovering". */
  summary?(): string;
  /** Calls back whenever the summary may have changed. */
  onChange?(changed: () => void): void;
  /** What is stalled; undefined when everything makes progress. An unplugged terminal doesn't count. */
  stalled?(): string | undefined;
}

export class Supervision {
  /** What systemd listens on for this process. */
  readonly sockets: readonly ListeningSocket[];
  /** The descriptor of the Unix socket for unmasked taps, where systemd opened it. */
  readonly tap: number | undefined;
  readonly #log: Log;
  readonly #notifier: Notifier;
  readonly #periodMs: number | undefined;
  #supervised: Supervised = {};
  #stopping = false;
  #sentStatus = "";
  #note = "";
  #timer: NodeJS.Timeout | undefined;
  #watchdog: { stop(): void } | undefined;

  /** @throws Error when systemd's sockets can't be taken over. */
  constructor(env: NodeJS.ProcessEnv, log: Log) {
    const { notify, tap, sockets } = passedDescriptors(env);
    this.tap = tap;
    this.sockets = sockets.map(socketAt);
    this.#log = log;
    this.#notifier = notifier(env, notify, (error) => log.process("warn", "systemd could not be notified", { error }));
    this.#periodMs = this.#notifier.listens ? watchdogPeriodMs(env) : undefined;
  }

  /** posline serves now; from here on its supervisor watches it. */
  async ready(supervised: Supervised): Promise<void> {
    this.#supervised = supervised;
    this.#sentStatus = this.#summary();
    supervised.onChange?.(() => this.#changed());
    await this.#notifier.tell(["READY=1", `STATUS=${this.#sentStatus}`]);
    if (this.#periodMs === undefined) return;
    this.#watchdog = startWatchdog({
      periodMs: this.#periodMs,
      stalled: () => supervised.stalled?.(),
      ping: () => void this.#notifier.tell(["WATCHDOG=1"]),
      changed: (stalled) => {
        if (stalled === undefined) this.#log.process("warn", "line engine makes progress again: watchdog pings resumed");
        else this.#log.process("error", "watchdog ping withheld: systemd will restart posline", { error: stalled });
      },
    });
  }

  /** posline applies another configuration, until `reloaded`. */
  async reloading(): Promise<void> {
    // systemd orders it by its own clock, which is the one that Node counts by.
    await this.#notifier.tell(["RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`, "STATUS=reloading"]);
  }

  /** @param refused True when the configuration could not be applied: `systemctl reload` succeeds all the same. */
  async reloaded(refused: boolean): Promise<void> {
    this.#note = refused ? "; the last reload was refused, the log says why" : "";
    this.#sentStatus = this.#summary();
    await this.#notifier.tell(["READY=1", `STATUS=${this.#sentStatus}`]);
  }

  /** posline waits for exchanges in flight; this may take longer than the watchdog's period, so the pings go on. */
  async stopping(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    await this.#notifier.tell(["STOPPING=1", "STATUS=stopping: waiting for the exchange in flight"]);
  }

  /** posline has stopped, or never served: no more notifications, and unused sockets are closed. */
  end(): void {
    this.#watchdog?.stop();
    for (const { holder } of this.sockets) holder.destroy();
  }

  #changed(): void {
    if (this.#stopping) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const summary = this.#summary();
      if (summary === this.#sentStatus) return;
      this.#sentStatus = summary;
      void this.#notifier.tell([`STATUS=${summary}`]);
    }, statusWaitMs);
  }

  /** systemd takes lines: a name from a configuration must not add one. */
  #summary(): string {
    const summary = this.#supervised.summary?.() ?? "running";
    return printable(`${summary}${this.#note}`);
  }
}
