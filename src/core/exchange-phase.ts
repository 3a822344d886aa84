/** How far an exchange has come, as those who look at a line say it to those who watch posline. */

/** A step of an exchange on its line, before its end. What only reads may be `sent` once more, after a corrupt reply. */
export type ExchangePhase = "waiting" | "sent" | "written" | "replying";

/** Which exchange. */
export interface ExchangeName {
  readonly requestId: string;
  /** As the call has it. */
  readonly callId?: string | undefined;
  readonly service: string;
  readonly line: string;
  readonly route: string;
  /** posline asks by itself. */
  readonly background?: boolean;
}

/** The parts of an exchange's time on the line, in ms; together they are its `lineMs`. */
export interface ExchangeParts {
  /** Its bytes on the wire. */
  readonly requestMs: number;
  /** From there to the first byte of the reply; to the end, where none came. */
  readonly terminalMs: number;
  /** The reply on the wire. */
  readonly replyMs: number;
}
