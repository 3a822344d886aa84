import type { ServiceName } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Cause } from "../device/open-errors.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import type { Ending, Exchange } from "./exchange.ts";
import type { Receiving } from "./frame-reader.ts";
import type { LineState } from "./states.ts";

/** What a line's engine is given, and what it says is to be done because of it. */

/** What may happen to a line. */
export type LineEvent =
  /** The device opened; what is received before `drained` may be older than the opening. */
  | {
      readonly at: "opened";
      /** Who owed a call's answer on the line that had the device before; absent where none had, or that is known already. */
      readonly owing?: readonly ServiceName[] | undefined;
      /** What the draws of this opening's questions follow from, 32 bits; where absent, from the last one. */
      readonly seed?: number | undefined;
    }
  /** The silence came that an opening begins with: from now on the line may be written. */
  | { readonly at: "drained" }
  /** It could not be opened, and is tried again. */
  | { readonly at: "open failed"; readonly reason: string }
  /** The device is lost. `nothingWritten`: the kernel accepted no byte of the write under way. */
  | { readonly at: "lost"; readonly reason: string; readonly nothingWritten: boolean; readonly discards: readonly Discard[] }
  /** Bytes came, or what was pending has had its time; `items` is what became of them, often nothing yet. */
  | { readonly at: "received"; readonly items: readonly Decoded[]; readonly receiving: Receiving }
  /** The kernel accepted the last byte of the write. */
  | { readonly at: "wrote" }
  /** A call comes. */
  | { readonly at: "call"; readonly exchange: Exchange }
  /** What must precede a call's first byte is done, or failed. */
  | { readonly at: "recorded"; readonly exchange: Exchange }
  | { readonly at: "record failed"; readonly exchange: Exchange; readonly fault: Fault }
  /** The client that waited for a call has disconnected. */
  | { readonly at: "caller gone"; readonly exchange: Exchange }
  /** It is to stop for good: what is in flight may end within `graceMs`, if that is sooner than what was said before. */
  | { readonly at: "stop"; readonly graceMs: number; readonly why: string }
  /** Time went on: `nextDueMs` has come. */
  | { readonly at: "tick" };

/** What a line reports of itself, for log and status. */
export type LineReported =
  | { readonly is: "state"; readonly state: LineState; readonly reason: string }
  | { readonly is: "discard"; readonly discard: Discard }
  | { readonly is: "late"; readonly frame: Frame }
  /** What was written came back; and that it does, with why, once an opening. */
  | { readonly is: "echo"; readonly frame: Frame }
  | { readonly is: "echoes"; readonly cause: Cause }
  | { readonly is: "probe answered"; readonly service: ServiceName; readonly answer: JsonObject }
  | { readonly is: "unheard"; readonly service: ServiceName; readonly cause: Cause }
  | { readonly is: "heard again"; readonly service: ServiceName };

/** What is to be done, in the order in which it is given. */
export type LineEffect =
  | {
      readonly do: "write";
      readonly frame: readonly Buffer[];
      /** Which service is asked, and by which call; undefined for the line's own probe. */
      readonly service: ServiceName;
      readonly exchange: Exchange | undefined;
    }
  /** What must precede the call's first byte is to be done; `recorded` or `record failed` follows. */
  | { readonly do: "record"; readonly exchange: Exchange }
  | { readonly do: "end"; readonly exchange: Exchange; readonly ending: Ending }
  | { readonly do: "report"; readonly what: LineReported }
  /** The line has stopped: the device is to be given back. */
  | { readonly do: "close" };
