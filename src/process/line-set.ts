import { isDeepStrictEqual } from "node:util";
import type { LineConfig } from "../config/config.ts";
import type { ContractName } from "../core/call.ts";
import { within } from "../core/clock.ts";
import { OpenError, type OpenTransport } from "../device/transport.ts";
import { type Owed, OwedCalls } from "../recovery/owed-calls.ts";
import type { Served, SharedLine } from "./served.ts";

/**
 * The lines of a process, by name. A new configuration takes the place of the old one line by line: a line that it doesn't change goes
 * on undisturbed; one that it changes, or takes away, ends its exchange in flight under the old settings, and its
 * successor doesn't open the device before that.
 */

/** Milliseconds that what is in flight may take to end when the process is to stop; then its outcome is unknown. */
const stopGraceMs = 60_000;

/**
 * Milliseconds that a line's successor waits for it before it says why it isn't open: an idle line has given its device back by then,
 * and nobody needs to hear of it.
 */
const handOverMs = 1_000;

/** What a line runs over: a device, or the emulator on a far end that ends with it. */
export interface LineTransport {
  readonly open: OpenTransport;
  readonly end?: () => Promise<void>;
}

export type TransportOf = (shared: SharedLine) => LineTransport;

/** What runs on a line. */
export interface OnLine {
  start(): void;
  /**
   * Lets the exchange in flight end, and releases the device; waiting calls are refused with `why`.
   * @param graceMs Milliseconds for that, beside its own timeouts. If called again, the earlier deadline wins.
   */
  stop(why: string, graceMs: number): Promise<void>;
  /** The real node that it had open last. */
  readonly lastDevice?: string | undefined;
  /** Who owes a call's answer, which the line that follows it on the same device must know; absent where it never had the device. */
  readonly owed?: Owed | undefined;
}

/** What a line's maker is given by the set. */
export interface Place {
  /** Opens no device while the line's predecessor has it. */
  open(open: OpenTransport): OpenTransport;
  /**
   * Whether the line is the one of its name that runs. What ends while another has its place, or was made in vain, would be taken for that
   * other one's state.
   */
  readonly isCurrent: boolean;
  /** Whose calls had no answer on the lines that had its device before. */
  readonly owing: readonly ContractName[];
}

export interface LineSetOptions<L extends OnLine> {
  make(shared: SharedLine, place: Place): L;
  /** Whose calls had no answer at a device, as far as that outlasts a process. */
  owing?(config: LineConfig): readonly ContractName[];
  /** The settings of its services that a line can't change while it runs. */
  lasting(served: Served): unknown;
}

interface Running<L> {
  readonly shared: SharedLine;
  readonly onLine: L;
  /** The line was ended: it opens no device any more. */
  hasEnded: boolean;
}

/** The lines of a configuration, of which some may run already. */
export type PreparedLines<L> = ReadonlyMap<string, Running<L>>;

export class LineSet<L extends OnLine> {
  readonly #options: LineSetOptions<L>;
  #running: PreparedLines<L> = new Map();
  /** Lines whose place was taken, or that are to stop, until they have ended. */
  readonly #ending = new Map<string, { readonly all: readonly Running<L>[]; readonly ended: Promise<void> }>();
  readonly #owed = new OwedCalls();

  constructor(options: LineSetOptions<L>) {
    this.#options = options;
  }

  get all(): readonly L[] {
    return [...this.#running.values()].map(({ onLine }) => onLine);
  }

  /** Makes the lines of a configuration; those that run already, and stay as they are, are among them. */
  prepare(lines: readonly SharedLine[]): PreparedLines<L> {
    return new Map(
      lines.map((shared) => {
        const running = this.#running.get(shared.name);
        return [shared.name, running !== undefined && this.#isSame(running.shared, shared) ? running : this.#make(shared)];
      }),
    );
  }

  /** Ends prepared lines that won't be used, for a reason that is logged. */
  async discard(prepared: PreparedLines<L>, why: string): Promise<void> {
    const made = [...prepared].filter(([name, running]) => this.#running.get(name) !== running);
    await Promise.all(made.map(([, { onLine }]) => onLine.stop(why, 0)));
  }

  /** Lets them take the place of those that run. */
  take(prepared: PreparedLines<L>): void {
    const before = this.#running;
    this.#running = prepared;
    for (const [name, running] of before) {
      if (prepared.get(name) === running) continue;
      // The exchange in flight has timeouts of its own, and there is no hurry.
      this.#end(name, running, "the configuration was changed", Number.POSITIVE_INFINITY);
    }
    for (const [name, running] of prepared) if (before.get(name) !== running) running.onLine.start();
  }

  async stop(): Promise<void> {
    const why = "posline is shutting down";
    for (const { all } of this.#ending.values()) for (const { onLine } of all) void onLine.stop(why, stopGraceMs);
    for (const [name, running] of this.#running) this.#end(name, running, why, stopGraceMs);
    await Promise.all([...this.#ending.values()].map(({ ended }) => ended));
  }

  #isSame(one: SharedLine, other: SharedLine): boolean {
    const lasting = ({ served }: SharedLine) => served.map((each) => [each.service, this.#options.lasting(each)]);
    return isDeepStrictEqual(one.config, other.config) && isDeepStrictEqual(lasting(one), lasting(other));
  }

  #make(shared: SharedLine): Running<L> {
    const isCurrent = () => this.#running.get(shared.name) === running;
    const owing = () => [...this.#owingAt(placesOf(running)), ...(this.#options.owing?.(shared.config) ?? [])];
    const place: Place = {
      open: (open) => async (handler) => {
        await this.#handedOver(shared.name);
        if (this.#ending.has(shared.name)) {
          throw new OpenError("the previous exchange is still finishing under the old configuration: wait for it");
        }
        if (running.hasEnded) throw new OpenError("the line was given up while it waited for the device");
        return open(handler);
      },
      get isCurrent() {
        return isCurrent();
      },
      get owing() {
        return owing();
      },
    };
    const running: Running<L> = { shared, onLine: this.#options.make(shared, place), hasEnded: false };
    return running;
  }

  /** Also of those lines that have given their device back, and have not quite ended. */
  #owingAt(places: readonly string[]): readonly ContractName[] {
    const ending = [...this.#ending.values()].flatMap(({ all }) => all);
    const there = ending.filter((each) => placesOf(each).some((place) => places.includes(place)));
    return [...this.#owed.at(places), ...there.flatMap(({ onLine }) => onLine.owed?.owing ?? [])];
  }

  /** Waits until a line's predecessor has ended, for a moment at most. */
  async #handedOver(name: string): Promise<void> {
    const ending = this.#ending.get(name);
    if (ending !== undefined) await within(handOverMs, ending.ended);
  }

  #end(name: string, running: Running<L>, why: string, graceMs: number): void {
    running.hasEnded = true;
    const { onLine: line } = running;
    const before = this.#ending.get(name);
    const ended = Promise.all([before?.ended, line.stop(why, graceMs)]).then(() => {
      // A line that never had the device knows nothing of it.
      if (line.owed !== undefined) this.#owed.learn(placesOf(running), line.owed);
      if (this.#ending.get(name)?.ended === ended) this.#ending.delete(name);
    });
    this.#ending.set(name, { all: [...(before?.all ?? []), running], ended });
  }
}

/** By what its device is known again. */
function placesOf({ shared: { config }, onLine: { lastDevice } }: Running<OnLine>): readonly string[] {
  return lastDevice === undefined || lastDevice === config.path ? [config.path] : [config.path, lastDevice];
}
