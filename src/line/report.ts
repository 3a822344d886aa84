import type { Discard, Frame } from "../wire/decoded.ts";
import type { LineState } from "./states.ts";

/** What a line tells of itself, for the log and the status. */
export interface LineReport {
  state(state: LineState, reason: string): void;
  /** Bytes that became no frame. */
  discard(discard: Discard): void;
  /** A whole frame that was given to nobody. */
  late(frame: Frame): void;
}
