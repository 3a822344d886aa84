import type { Contract, Route } from "../contract/contract.ts";
import { adviceWhenUnknown } from "../contract/contracts.ts";
import type { Call, Reply, ServiceName } from "../core/call.ts";
import { Fault, type FaultKind, type FaultReason, faultClasses, nothingSent } from "../core/fault.ts";
import { wholeOf } from "../envelope/json.ts";
import { type ReadReply, readReply } from "../envelope/reply.ts";
import type { UpstreamResponse } from "./caller-request.ts";

/** The messages of one route's faults: each says whether it was sent, and what to do. */
export interface FaultTexts {
  readonly contract: Contract;
  readonly route: Route;
  /** The service's name in the configuration. */
  readonly service: ServiceName;
  /** The fault of a call of which nothing was sent. */
  notSent(reason: FaultReason, state: string): Fault;
  /** The fault of a call that was sent, and of which nobody knows what became. */
  unknown(reason: FaultReason, state: string): Fault;
}

export function faultTexts(contract: Contract, route: Route, { service, key }: Pick<Call, "service" | "key">): FaultTexts {
  const { path } = route;
  const advice = adviceWhenUnknown(contract, route, key);
  return {
    contract,
    route,
    service,
    notSent: (reason, state) => new Fault("unavailable", `Cannot send ${path}: ${state}. ${nothingSent}`, { reason }),
    unknown: (reason, state) =>
      new Fault(reason === "no-reply" ? "timeout" : "broken", `No valid answer to ${path}: ${state}. ${advice}`, { reason }),
  };
}

/**
 * The answer to the till on a line, which has no HTTP status, from an upstream's response: the service's own bytes, or a fault.
 *
 * Passed on byte for byte, except a byte order mark in front, which a till's parser need not know: a JSON object that came with a status of
 * success, whatever it says; an answer of another posline that was sent, since its outcome is believed; and an error in the service's
 * envelope (`status` is "error" and `code` a number) up to the route's `errorStatusMax`, for the contracts leave the HTTP status of errors
 * open. The number tells it from the JSON errors of proxies and frameworks, which stand between and know nothing of the operation: taken
 * for the service's, a proxy's 502 would end a payment that goes on. Some of them write a number as well, so if an error ends a payment (qr
 * /check) the status must agree.
 *
 * A status that says that the request was refused before anybody looked into it counts as not sent, unless the body says success; anything
 * else is unknown.
 */
export function interpretResponse(response: UpstreamResponse, texts: FaultTexts): Pick<Reply, "payload" | "status" | "code"> {
  const { status, compression } = response;
  const payload = withoutMark(response.payload);
  const read = readReply(payload);
  if (typeof read !== "string") {
    const fault = fromPosline(response, read);
    if (fault !== undefined) throw fault;
    const isError = status !== 401 && status <= texts.route.errorStatusMax && isEnvelope(read);
    if (response.outcome === "answered" || isSuccess(status) || isError) {
      return { payload, status: read.status, code: read.code };
    }
  }
  const saysSuccess = typeof read !== "string" && read.status === "success";
  const refused = saysSuccess ? undefined : refusedStatuses[status];
  if (refused !== undefined) {
    const state = refused.state(texts);
    throw new Fault(refused.kind, `Cannot carry out ${texts.route.path}: ${state}. Nothing was carried out`, {
      reason: "upstream-refused",
    });
  }
  if (typeof read === "string" && compression !== undefined) {
    const what = `the upstream's answer is compressed (Content-Encoding ${compression}), which posline doesn't undo`;
    throw texts.unknown("reply-corrupt", `${what}: switch that off there`);
  }
  if (typeof read === "string" && isSuccess(status)) throw texts.unknown("reply-corrupt", `the upstream's answer is ${read}`);
  const elsewhere = status >= 300 && status < 400 ? ", a redirect: set upstream to the address that it leads to" : "";
  throw texts.unknown("reply-corrupt", `the upstream answered with HTTP ${status}${elsewhere}`);
}

const byteOrderMark = Buffer.from("\ufeff");

/** A payload without a byte order mark in front. */
function withoutMark(payload: readonly Buffer[]): readonly Buffer[] {
  if (payload[0]?.[0] !== byteOrderMark[0]) return payload;
  const whole = wholeOf(payload);
  return whole.indexOf(byteOrderMark) === 0 ? [whole.subarray(byteOrderMark.length)] : payload;
}

const isSuccess = (status: number) => status >= 200 && status < 300;

const isEnvelope = ({ status, code }: ReadReply) => status === "error" && code !== undefined;

/** A fault of an upstream posline, in its own texts. */
function fromPosline({ status, outcome, reason, payload }: UpstreamResponse, { json }: ReadReply): Fault | undefined {
  if (outcome !== "not-sent" && outcome !== "unknown") return undefined;
  const kind = outcome === "not-sent" ? refusedKind(reason) : status === 504 ? "timeout" : "broken";
  const { message } = json;
  return new Fault(kind, typeof message === "string" ? message : `the upstream posline reported ${outcome}`, {
    payload,
    reason,
  });
}

/** The kind of a fault that wasn't sent: what a till must fix at an upstream posline, it must fix here too. */
function refusedKind(reason: FaultReason | undefined): FaultKind {
  // The keys of `faultClasses` are the kinds.
  return (Object.keys(faultClasses) as FaultKind[]).find((kind) => faultClasses[kind].reason === reason) ?? "unavailable";
}

interface RefusedStatus {
  readonly kind: FaultKind;
  readonly state: (texts: FaultTexts) => string;
}

const refusedStatuses: Readonly<Record<number, RefusedStatus>> = {
  401: {
    kind: "key",
    state: ({ contract, service }) =>
      `the upstream refuses the API key: ${contract.service === "bank" ? `set apiKey of ${service} to the key that it expects` : "posline has a key for bank only"}`,
  },
  403: { kind: "origin", state: () => "the upstream refuses posline (HTTP 403): allow it there" },
  404: {
    kind: "route",
    state: ({ service }) => `the upstream does not have this route (HTTP 404): check upstream of ${service}`,
  },
  405: {
    kind: "method",
    state: ({ service }) => `the upstream does not accept the method (HTTP 405): check upstream of ${service}`,
  },
  413: { kind: "size", state: () => "the request is too large for the upstream (HTTP 413)" },
  421: {
    kind: "host",
    state: ({ service }) => `the upstream does not accept its host name (HTTP 421): check upstream of ${service}`,
  },
};
