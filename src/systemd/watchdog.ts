/**
 * The watchdog (sd_watchdog_enabled(3)): systemd restarts a service whose pings stay out. A ping from a bare
 * timer would prove that timers run, so each one asks first whether the service makes progress.
 */

/** Pings in the time that systemd waits: one may be lost, and one be late on a busy box. */
const pingsPerPeriod = 3;

export interface WatchdogOptions {
  /** Milliseconds that systemd waits. */
  readonly periodMs: number;
  /** Names what is stalled; undefined while everything makes progress. */
  readonly stalled: () => string | undefined;
  readonly ping: () => void;
  /** Called when something becomes stalled, and pings stop; with undefined when they resume. */
  readonly changed: (stalled: string | undefined) => void;
}

/** Milliseconds that systemd waits for this process; undefined when it doesn't. */
export function watchdogPeriodMs({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv, pid = process.pid): number | undefined {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return undefined;
  const periodMs = Number(WATCHDOG_USEC) / 1_000;
  return periodMs > 0 && Number.isFinite(periodMs) ? periodMs : undefined;
}

/** Pings until `stop()` is called. */
export function startWatchdog({ periodMs, stalled, ping, changed }: WatchdogOptions): { stop(): void } {
  let before: string | undefined;
  const look = () => {
    const now = stalled();
    if ((now === undefined) !== (before === undefined)) changed(now);
    before = now;
    if (now === undefined) ping();
  };
  look();
  const timer = setInterval(look, periodMs / pingsPerPeriod);
  // The servers keep the process alive; this timer alone must not.
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
