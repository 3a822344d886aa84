import { Presence } from "../core/presence.ts";
import type { LineService } from "../recovery/standing.ts";
import type { LineRequest } from "./exchange.ts";
import { probeReplyMs } from "./limits.ts";

/** The caller of an idle line's own question: nobody waits for it. */
const nobody = new Presence();

/** The request that an idle line sends to a service: its probe. */
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
