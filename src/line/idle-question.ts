import { Presence } from "../core/presence.ts";
import type { LineService } from "../recovery/standing.ts";
import type { LineRequest } from "./exchange.ts";
import { probeReplyMs } from "./limits.ts";

/** Who waits for an idle line's own question. */
const nobody = new Presence();

/** What an idle line asks a service: its probe, for which nobody waits. */
export function idleQuestion({ service, framing }: LineService): LineRequest {
  return {
    service,
    route: "",
    requestId: "",
    framing,
    payload: [],
    replyTimeoutMs: probeReplyMs,
    urgent: false,
    background: true,
    repeatable: false,
    shapedAs: "probe",
    adviceWhenUnknown: "",
    caller: nobody,
  };
}

export function isIdleQuestion({ caller }: LineRequest): boolean {
  return caller === nobody;
}
