import { isDeepStrictEqual } from "node:util";
import { type Decision, decisionOf } from "../../capture/decision.ts";
import {
  type RecordedCall,
  type RecordedEvent,
  type RecordedFrame,
  type Recording,
  RecordingError,
  type RecordingHead,
} from "../../capture/recording.ts";
import { contracts } from "../../contract/contracts.ts";
import { Fault } from "../../core/fault.ts";
import { Presence } from "../../core/presence.ts";
import { depthMax, entriesMax, notAnObject } from "../../envelope/bounded-json.ts";
import { answersOf } from "../../line/caller.ts";
import { LineEngine, type LineEngineOptions } from "../../line/engine.ts";
import type { LineEvent } from "../../line/events.ts";
import { Exchange } from "../../line/exchange.ts";
import type { LineService } from "../../recovery/standing.ts";
import type { Decoded } from "../../wire/decoded.ts";

/**
 * Gives a recording to a line's engine of its own, at the recorded moments, and compares what it decides with what was decided then.
 * No device, no timer and no terminal is needed, and an incident of hours takes milliseconds.
 */

/** An event of a recording, given to the engine. */
export interface ReplayStep {
  /** Its place among the recording's entries, from 1. */
  readonly number: number;
  readonly event: RecordedEvent;
  /** What the engine decides now; undefined where its state isn't known, since the beginning of the recording is lost. */
  readonly decided: readonly Decision[] | undefined;
  /** What is otherwise than it was then, as a sentence; undefined where all is the same. */
  readonly difference: string | undefined;
}

/** What the frame of a request that nobody reads is made of. */
const noBytes = Buffer.alloc(0);

/** Replays a recording, event by event, up to the first difference. */
export function* replay({ head, entries }: Recording): Generator<ReplayStep> {
  let player: Player | undefined;
  for (const [index, entry] of entries.entries()) {
    if (entry.at === "gap") player = undefined;
    else if (entry.at === "rest") {
      player ??= playerOf(head, entry.rest ?? undefined, index + 1);
    } else {
      const number = index + 1;
      const next = entries[index + 1];
      // The state that was noted behind an event must be the one that it led to.
      const rest = next?.at === "rest" ? next.rest : undefined;
      const step: ReplayStep =
        player === undefined
          ? { number, event: entry, decided: undefined, difference: undefined }
          : { number, event: entry, ...player.step(entry, rest ?? undefined) };
      yield step;
      if (step.difference !== undefined) return;
    }
  }
}

/** @throws RecordingError where the state that was noted isn't one. */
function playerOf(head: RecordingHead, rest: LineEngineOptions["rest"], number: number): Player {
  try {
    return new Player(head, rest);
  } catch (error) {
    throw new RecordingError(`Cannot replay: entry ${number} is not a state of a line's engine: ${String(error)}`);
  }
}

class Player {
  readonly #head: RecordingHead;
  readonly #services: readonly LineService[];
  readonly #engine: LineEngine;
  readonly #calls = new Map<number, Exchange>();

  constructor(head: RecordingHead, rest: LineEngineOptions["rest"]) {
    this.#head = head;
    this.#services = head.services.map(({ service, contract, replyBytesMax, probeBytes, secondBytes }) => ({
      service,
      framing: contracts[contract].framing,
      replyBytesMax,
      probe: probeBytes === null ? undefined : [Buffer.alloc(probeBytes)],
      second: secondBytes === null ? undefined : [Buffer.alloc(secondBytes)],
      ...answersOf(contracts[contract]),
    }));
    this.#engine = new LineEngine({ name: head.line, config: head.config, services: this.#services, rest });
  }

  /** @param rest The state that was noted behind the event; undefined where none was. */
  step(event: RecordedEvent, rest: LineEngineOptions["rest"]): Pick<ReplayStep, "decided" | "difference"> {
    let decided: readonly Decision[];
    try {
      for (const call of event.left ?? []) this.#calls.get(call)?.request.caller.leave();
      const input = this.#eventOf(event);
      if (input.at === "call" && event.left?.includes(input.exchange.recordedAs)) input.exchange.request.caller.leave();
      decided = this.#engine.handle(input, event.t).map((effect) => {
        if (effect.do === "end") this.#calls.delete(effect.exchange.recordedAs);
        return decisionOf(effect);
      });
    } catch (error) {
      return { decided: [], difference: `the engine fails: ${String(error)}` };
    }
    if (!isDeepStrictEqual(decided, event.decided)) return { decided, difference: "it decides otherwise than it did then" };
    const isSameRest = rest === undefined || isDeepStrictEqual(plain(this.#engine.rest), plain(rest));
    return { decided, difference: isSameRest ? undefined : "its state is another than it was then" };
  }

  #eventOf(event: RecordedEvent): LineEvent {
    switch (event.at) {
      case "call": {
        const exchange = this.#exchangeOf(event);
        this.#calls.set(event.call, exchange);
        return { at: "call", exchange };
      }
      case "recorded":
      case "caller gone":
        return { at: event.at, exchange: this.#calls.get(event.call) ?? this.#ended() };
      case "record failed": {
        const { kind, message, reason } = event.fault;
        const exchange = this.#calls.get(event.call) ?? this.#ended();
        return { at: "record failed", exchange, fault: new Fault(kind, message, { reason }) };
      }
      case "received":
        return {
          at: "received",
          receiving: event.receiving,
          items: event.items.map((item): Decoded => (item.kind === "discard" ? item : this.#frameOf(item))),
        };
      default:
        return event;
    }
  }

  #exchangeOf(call: RecordedCall): Exchange {
    const { service, route, requestId, framing, replyTimeoutMs, adviceWhenUnknown } = call;
    const { urgent, background, repeatable, shapedAs } = call;
    const request = {
      ...{ service, route, requestId, framing, replyTimeoutMs, adviceWhenUnknown, urgent, background, repeatable, shapedAs },
      payload: [],
      caller: new Presence(),
      beforeSend: call.toRecord ? async () => {} : undefined,
    };
    const { cameMs, waitUntilMs, frameBytes } = call;
    const exchange = new Exchange(this.#head.line, request, [Buffer.alloc(frameBytes)], { cameMs, waitUntilMs });
    exchange.recordedAs = call.call;
    return exchange;
  }

  /** Stands for a call that has ended: what comes of it later decides nothing. */
  #ended(): Exchange {
    const request = {
      ...({ service: "", route: "", requestId: "", framing: "length", replyTimeoutMs: 0, adviceWhenUnknown: "" } as const),
      ...{ payload: [], urgent: false, background: false, repeatable: false, shapedAs: undefined, caller: new Presence() },
    };
    return new Exchange(this.#head.line, request, [noBytes], { cameMs: 0, waitUntilMs: 0 });
  }

  #frameOf(frame: RecordedFrame): Decoded {
    const { kind, framing, payloadBytes, wireBytes, isEcho } = frame;
    return { kind, framing, payloadBytes, wireBytes, payload: payloadOf(frame), ...(isEcho && { isEcho }) };
  }
}

function payloadOf({ text, base64, like, unread }: RecordedFrame): readonly Buffer[] {
  if (text !== undefined) return [Buffer.from(text)];
  if (base64 !== undefined) return [Buffer.from(base64, "base64")];
  if (like !== undefined) return [Buffer.from(JSON.stringify(like))];
  if (unread === undefined || unread === notAnObject) return [Buffer.from("?")];
  return [Buffer.from(unread.startsWith("nested") ? "[".repeat(depthMax + 1) : ",".repeat(entriesMax + 1))];
}

/** As it is in a file: without what is undefined. */
const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
