import type { Reply } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import type { LineEffect, LineEvent } from "../line/events.ts";
import type { Exchange } from "../line/exchange.ts";
import type { LineObserve } from "../line/line.ts";
import type { Discard, Frame } from "../wire/decoded.ts";
import type { CapturedFrame } from "./captured-frame.ts";
import { maskPayload, maskUnframed } from "./mask.ts";

/**
 * The tap: what goes over the lines of a running posline, for those who watch. While nobody does, it looks at nothing. It copies a
 * payload at once, since its memory is used again, and masks and passes it on later.
 */

/** A line, as far as the tap must know it. */
export interface TappedLine {
  readonly name: string;
  /** Texts that are masked wherever they stand. */
  readonly secrets: readonly string[];
}

export interface TapWatcher {
  /** Whether it sees the bytes as they are. */
  readonly unmasked: boolean;
  /** Takes frames in their order; must not throw. */
  take(frames: readonly CapturedFrame[]): void;
}

/** A frame that waits to be masked, with the secrets of its line. */
interface Seen {
  readonly frame: CapturedFrame;
  readonly secrets: readonly string[];
}

/** Milliseconds for which frames are gathered before they are masked and passed on: a piece for each would cost the tills more. */
const gatherMs = 20;

/** Bytes that are gathered at most: a large reply goes on at once. */
const gatheredBytesMax = 256 * 1024;

/** Milliseconds by which the wall clock may drift before the times of frames follow it. */
const driftMsMax = 5;

export class LineTap {
  readonly #watchers = new Set<TapWatcher>();
  #seen: Seen[] = [];
  #seenBytes = 0;
  #gathering: NodeJS.Timeout | undefined;
  #isHurried = false;
  /** From `nowMs` to the wall clock. */
  #offsetMs = Number.NEGATIVE_INFINITY;

  /** @returns ends the watching. */
  add(watcher: TapWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** A line begins. */
  watch({ name, secrets }: TappedLine): LineObserve {
    /** What was written last. */
    let written: (LineEffect & { do: "write" }) | undefined;
    return (event, effects, now) => {
      if (this.#watchers.size === 0) {
        written = undefined;
        return;
      }
      const see = (frame: Omit<CapturedFrame, "timeMs" | "line" | "masked">) =>
        this.#see({ frame: { ...frame, timeMs: this.#wallMs(now), line: name, masked: false }, secrets });
      const ended = endingsIn(effects);
      for (const item of itemsOf(event)) {
        if (item.kind === "discard") see(discarded(item));
        else if (isLate(item, effects)) see(received(item, { role: "late" }));
        else see(answer(item, written, ended));
      }
      for (const effect of effects) {
        if (effect.do === "write") {
          written = effect;
          see(sent(effect));
        }
      }
      for (const [exchange, fault] of ended.faults) see(failed(exchange, fault));
    };
  }

  #see(seen: Seen): void {
    this.#seen.push(seen);
    this.#seenBytes += seen.frame.payload.length;
    this.#gathering ??= setTimeout(() => this.#passOn(), gatherMs).unref();
    if (this.#seenBytes < gatheredBytesMax || this.#isHurried) return;
    this.#isHurried = true;
    setImmediate(() => this.#passOn());
  }

  #passOn(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#isHurried = false;
    this.#seenBytes = 0;
    const seen = this.#seen;
    this.#seen = [];
    const watchers = [...this.#watchers];
    const isMaskedWanted = watchers.some(({ unmasked }) => !unmasked);
    const frames = seen.map(({ frame }) => frame);
    const masked = isMaskedWanted ? seen.map(({ frame, secrets }) => maskedFrame(frame, secrets)) : frames;
    for (const watcher of watchers) watcher.take(watcher.unmasked ? frames : masked);
  }

  /** Times follow the monotonic clock, so that a difference of two is right to the microsecond, and the wall clock where it was set. */
  #wallMs(now: number): number {
    const readMs = nowMs();
    const offsetMs = Date.now() - readMs;
    // A process that is put aside between the two readings has read nothing of the wall clock's.
    const isRead = nowMs() - readMs < driftMsMax || this.#offsetMs === Number.NEGATIVE_INFINITY;
    if (isRead && Math.abs(offsetMs - this.#offsetMs) > driftMsMax) this.#offsetMs = offsetMs;
    return Math.round((now + this.#offsetMs) * 1_000) / 1_000;
  }
}

function maskedFrame(frame: CapturedFrame, secrets: readonly string[]): CapturedFrame {
  const { payload, requestId, role } = frame;
  return {
    ...frame,
    requestId: requestId === undefined ? undefined : maskCardNumbers(requestId),
    payload: role === "discard" ? maskUnframed(payload) : maskPayload([payload], secrets),
    masked: true,
  };
}

/** How exchanges that were sent end with an event. */
interface Endings {
  readonly replies: Map<Reply["payload"], Exchange>;
  readonly faults: Map<Exchange, Fault>;
}

function endingsIn(effects: readonly LineEffect[]): Endings {
  const replies: Endings["replies"] = new Map();
  const faults: Endings["faults"] = new Map();
  for (const effect of effects) {
    if (effect.do !== "end") continue;
    const { exchange, ending } = effect;
    if (!(ending instanceof Fault)) replies.set(ending.payload, exchange);
    else if (exchange.wasSent) faults.set(exchange, ending);
  }
  return { replies, faults };
}

function itemsOf(event: LineEvent): readonly (Frame | Discard)[] {
  if (event.at === "received") return event.items;
  return event.at === "lost" ? event.discards : [];
}

function isLate(frame: Frame, effects: readonly LineEffect[]): boolean {
  if (frame.isEcho === true) return true;
  return effects.some((effect) => effect.do === "report" && effect.what.is === "late" && effect.what.frame === frame);
}

type Known = Pick<CapturedFrame, "role"> &
  Partial<Pick<CapturedFrame, "service" | "route" | "requestId" | "outcome" | "reason">>;
type Timeless = Omit<CapturedFrame, "timeMs" | "line" | "masked">;

function received({ framing, payload, wireBytes }: Frame, known: Known): Timeless {
  return { ...known, direction: "in", framing, wireBytes, checksum: "good", payload: Buffer.concat(payload) };
}

/** A frame that was asked for: by a call, or by the line itself. A reply that can't be used ends its call in the same step. */
function answer(frame: Frame, written: (LineEffect & { do: "write" }) | undefined, ended: Endings): Timeless {
  const replied = ended.replies.get(frame.payload);
  const exchange = replied ?? written?.exchange;
  if (exchange === undefined) return received(frame, { role: "probe answer", service: written?.service });
  const { service, route, requestId } = exchange.request;
  const reply = { role: "reply", service, route, requestId } as const;
  if (replied !== undefined) return received(frame, { ...reply, outcome: "answered" });
  // Without a fault the request is sent once more.
  const fault = ended.faults.get(exchange);
  ended.faults.delete(exchange);
  return received(frame, fault === undefined ? reply : { ...reply, outcome: fault.outcome, reason: fault.reason });
}

function discarded({ reason, wireBytes, head, checksum }: Discard): Timeless {
  const sums = Object.entries(checksum ?? {}).map(([name, sum]) => `${name} ${sum}`);
  return {
    role: "discard",
    direction: "in",
    wireBytes,
    reason,
    checksum: checksum === undefined ? "none" : "wrong",
    framing: checksum === undefined ? undefined : checksum.crc32 === undefined ? "length" : "stx",
    sums: sums.length === 0 ? undefined : sums.join(", "),
    payload: Buffer.from(head, "hex"),
  };
}

function sent({ frame, service, exchange }: LineEffect & { do: "write" }): Timeless {
  const request = exchange?.request;
  return {
    role: request === undefined ? "probe" : "request",
    direction: "out",
    service,
    route: request?.route,
    requestId: request?.requestId,
    framing: frame[0]?.[0] === stx ? "stx" : "length",
    wireBytes: bytesOf(frame),
    checksum: "good",
    // A frame is written as its head, the payload's pieces, and its tail.
    payload: Buffer.concat(frame.slice(1, -1)),
  };
}

const stx = 0x02;

function failed({ request: { service, route, requestId } }: Exchange, { outcome, reason }: Fault): Timeless {
  const payload = Buffer.alloc(0);
  return {
    role: "ended",
    direction: "in",
    service,
    route,
    requestId,
    wireBytes: 0,
    checksum: "none",
    outcome,
    reason,
    payload,
  };
}
