import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";

/** A service on a line, as far as recovery needs it. */
export interface LineService {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** Bytes of the largest reply that is taken for one of its requests. */
  readonly replyBytesMax: number;
  /** The probe, framed and ready to send; undefined when there is none, and only silence settles the service. */
  readonly probe: readonly Buffer[] | undefined;
  /** Whether a reply can only be the answer to this service's probe. */
  isProbeAnswer(reply: Readonly<Record<string, unknown>>): boolean;
}
