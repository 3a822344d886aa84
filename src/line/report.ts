import type { ServiceName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Cause } from "../device/open-errors.ts";
import type { Discard, Frame } from "../wire/decoded.ts";
import type { LineState } from "./states.ts";

/** What a line tells of itself, for the log and the status. */
export interface LineReport {
  state(state: LineState, reason: string): void;
  /** Bytes that became no frame. */
  discard(discard: Discard): void;
  /** A whole frame that was given to nobody. */
  late(frame: Frame): void;
  /** A service's barrier was answered: what it says that it has on offer, as parsed. A terminal's own word, of any size. */
  barrier(service: ServiceName, answer: JsonObject): void;
  /** A service has not answered for a while; the likeliest cause, and what to do. */
  unheard(service: ServiceName, cause: Cause): void;
  /** A service that was reported as unheard answers. */
  heardAgain(service: ServiceName): void;
}
