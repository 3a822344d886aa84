import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";

export type BarrierJudge = (reply: Readonly<Record<string, unknown>>) => boolean;

/** A service on a line, as far as recovery needs it. */
export interface Peer {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** Bytes of the largest reply that is taken for one of its requests. */
  readonly replyBytesMax: number;
  /** The barrier, framed and ready to send; undefined when there is none, and only silence settles the service. */
  readonly barrier: readonly Buffer[] | undefined;
  /** Whether a reply can only be the answer to this service's barrier. */
  readonly isBarrierAnswer: BarrierJudge;
}
