import type { JsonObject } from "../../core/json-object.ts";
import type { ServiceAnswer } from "./answer.ts";
import type { EmulatedOutcome } from "./faults/magic-amounts.ts";
import type { LedgerEntry } from "./ledger.ts";

/** An emulated service's surroundings: time, outcomes, and where to report a change. */
export interface ServiceContext {
  /** The emulator's time, which a test may drive. */
  now(): Date;
  /**
   * The outcome of an operation that begins now: asked once, when something new is begun, and not for a resend of what is known. undefined:
   * it goes well.
   * @param amount Minor units.
   */
  outcomeOf(route: string, amount: bigint): EmulatedOutcome | undefined;
  /** Called when the service's memory has changed. */
  changed(): void;
}

/** An emulated service. Its memory is plain data, so that it can be kept in a file and looked at. */
export interface EmulatedService<Saved extends JsonObject = JsonObject> {
  /** Answers a request to one of its contract's routes; it is carried out when this returns. */
  answer(route: string, body: JsonObject): ServiceAnswer;
  /** What it has done so far with money, paper and the drawer, the oldest first. */
  ledger(): readonly LedgerEntry[];
  /** The service's memory, as JSON whose integers are all bigints, so that it is the same once it was read from a file. */
  saved(): Saved;
  /** Takes back the result of `saved`, as it was read from a file. Nothing is checked: the file's digest says that it is that. */
  restore(saved: Saved): void;
  /** Forgets everything, as after a factory reset. */
  reset(): void;
}

/** How many operations a service remembers: days of a busy till, at about 1 kB each some megabytes. The oldest are forgotten. */
export const rememberedMax = 4096;

/**
 * Bytes of JSON of these operations at most: `rememberedMax` of the usual size, and far fewer of the largest, since an id may be as long as
 * a request.
 */
export const rememberedBytesMax = 16 * 1024 * 1024;
