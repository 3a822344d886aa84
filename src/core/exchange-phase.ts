import type { Amount } from "./call.ts";

/** The progress of an exchange, as those who look at a line say it to those who watch posline. */

/** A step of an exchange on its line, before its end. A request that only reads may be `sent` once more, after a corrupt reply. */
export type ExchangePhase = "waiting" | "sent" | "written" | "replying";

/** The names of an exchange. */
export interface ExchangeName {
  readonly requestId: string;
  /** The call's `callId`. */
  readonly callId?: string | undefined;
  readonly service: string;
  readonly line: string;
  readonly route: string;
  readonly key?: string | undefined;
  readonly amount?: Amount | undefined;
  /** The call's `about`. */
  readonly about?: string | undefined;
  /** True if posline asks by itself. */
  readonly background?: boolean;
}

/** The parts of an exchange's time on the line, in ms; together they are its `lineMs`. */
export interface ExchangeParts {
  /** Milliseconds of the request on the wire. */
  readonly requestMs: number;
  /** Milliseconds from there to the first byte of the reply; to the end, if none came. */
  readonly terminalMs: number;
  /** Milliseconds of the reply on the wire. */
  readonly replyMs: number;
}
