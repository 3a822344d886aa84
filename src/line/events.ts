import type { ServiceName } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Cause } from "../device/open-errors.ts";
import type { RecoveryState } from "../recovery/recovery.ts";
import type { LivenessSnapshot } from "../trouble/liveness.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import type { Ending, Exchange } from "./exchange.ts";
import type { Receiving } from "./frame-reader.ts";
import type { LineState } from "./states.ts";

/** Events that a line's engine is given, effects that it returns, and its state at rest. */

/** An event on a line. */
export type LineEvent =
  /** The device opened. Bytes received before `drained` may be older than the opening. */
  | {
      readonly at: "opened";
      /** Services that owed a call's answer on the line that had the device before; absent if there was none, or if it is known already. */
      readonly owing?: readonly ServiceName[] | undefined;
      /** Seed of this opening's drawn questions, 32 bits; if absent, the draws go on from the last one. */
      readonly seed?: number | undefined;
    }
  /** The silence came that an opening begins with: from now on the line may be written. */
  | { readonly at: "drained" }
  /** The device could not be opened, and is tried again. */
  | { readonly at: "open failed"; readonly reason: string }
  /** The device is lost. `nothingWritten`: the kernel accepted no byte of the write under way. */
  | { readonly at: "lost"; readonly reason: string; readonly nothingWritten: boolean; readonly discards: readonly Discard[] }
  /** Bytes came, or pending ones have had their time. `items` are the frames and discards they became, often none yet. */
  | { readonly at: "received"; readonly items: readonly Decoded[]; readonly receiving: Receiving }
  /** The kernel accepted the last byte of the write. */
  | { readonly at: "wrote" }
  /** A call comes. */
  | { readonly at: "call"; readonly exchange: Exchange }
  /** The record that must precede a call's first byte is written, or failed. */
  | { readonly at: "recorded"; readonly exchange: Exchange }
  | { readonly at: "record failed"; readonly exchange: Exchange; readonly fault: Fault }
  /** The client that waited for a call has disconnected. */
  | { readonly at: "caller gone"; readonly exchange: Exchange }
  /** The line is to stop for good. An exchange in flight may end within `graceMs`; of two calls the earlier deadline counts. */
  | { readonly at: "stop"; readonly graceMs: number; readonly why: string }
  /** Time went on: `nextDueMs` has come. */
  | { readonly at: "tick" };

/** A line's own report, for log and status. */
export type LineReported =
  | { readonly is: "state"; readonly state: LineState; readonly reason: string }
  | { readonly is: "discard"; readonly discard: Discard }
  | { readonly is: "late"; readonly frame: Frame }
  /** The written frame came back; and, once an opening, why that may be. */
  | { readonly is: "echo"; readonly frame: Frame }
  | { readonly is: "echoes"; readonly cause: Cause }
  | { readonly is: "probe answered"; readonly service: ServiceName; readonly answer: JsonObject }
  | { readonly is: "unheard"; readonly service: ServiceName; readonly cause: Cause }
  | { readonly is: "heard again"; readonly service: ServiceName };

/** An effect to carry out, in the order given. */
export type LineEffect =
  | {
      readonly do: "write";
      readonly frame: readonly Buffer[];
      /** The service that is asked, and the call that asks; undefined for the line's own probe. */
      readonly service: ServiceName;
      readonly exchange: Exchange | undefined;
    }
  /** The call's record is to be written before its first byte; `recorded` or `record failed` follows. */
  | { readonly do: "record"; readonly exchange: Exchange }
  | { readonly do: "end"; readonly exchange: Exchange; readonly ending: Ending }
  | { readonly do: "report"; readonly what: LineReported }
  /** The line has stopped: the device is to be given back. */
  | { readonly do: "close" };

/**
 * An engine at rest, as data: nothing is in flight, nothing waits, and it isn't stopping. With the same options, another engine goes on
 * from it with the same decisions.
 */
export interface EngineRest {
  readonly state: LineState;
  readonly reason: string;
  readonly wasTried: boolean;
  readonly isDrained: boolean;
  readonly isWriting: boolean;
  readonly receiving: Receiving;
  readonly lastBusyMs: number;
  readonly babblesSinceMs?: number | undefined;
  readonly pausesUntilMs: number;
  readonly recovery: RecoveryState;
  readonly liveness: LivenessSnapshot;
}
