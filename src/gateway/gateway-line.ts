import type { ServiceConfig } from "../config/config.ts";
import { gatewayMarginMs } from "../config/limits.ts";
import { localUpstream } from "../config/upstreams.ts";
import { contractOnLine, contracts, routeOf } from "../contract/contracts.ts";
import type { Call } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log.ts";
import { bytesOf } from "../core/pieces.ts";
import { newTraceparent, traceIdOf } from "../core/traceparent.ts";
import type { Cause } from "../device/open-errors.ts";
import { openerOf } from "../device/opener.ts";
import { readReply } from "../envelope/reply.ts";
import { readHttpBody } from "../envelope/request.ts";
import { httpCaller } from "../http/caller.ts";
import { type LineExchange, LineListener, type LineListenerReport } from "../line/listener.ts";
import type { OnLine, Place } from "../process/line-set.ts";
import type { SharedLine } from "../process/served.ts";

/** The state of a gateway's line. */
export interface GatewayView {
  readonly name: string;
  readonly state: "open" | "down";
  readonly reason: string;
}

/** A line of a gateway. */
export interface GatewayLine extends OnLine {
  readonly view: GatewayView;
}

/** What it tells of itself. */
export interface GatewayLineReport
  extends Pick<LineListenerReport, "discard" | "unaddressed" | "echoes" | "error" | "received" | "writes"> {
  state(state: GatewayView["state"], reason: string): void;
  exchange(record: ExchangeRecord): void;
  /** Another program changed what its device is set to. */
  readonly settingsChanged: (cause: Cause) => void;
}

/** The configuration of a gateway has one for each service, or it is on this box. */
export function upstreamOf({ contract, upstream }: ServiceConfig): string {
  return upstream ?? localUpstream(contract);
}

/** Makes the listener of a line, with an HTTP caller for each of its services. */
export function gatewayLine({ name, config, served }: SharedLine, place: Place, told: GatewayLineReport): GatewayLine {
  let view: GatewayView = { name, state: "down", reason: "not opened yet" };
  const ending = new AbortController();
  const grace = new Deadline(() => ending.abort());
  let finished: Promise<void> | undefined;
  const listener = new LineListener({
    config,
    open: place.open(openerOf(config, { settingsChanged: told.settingsChanged })),
    answering: "newest",
    newTrace: newTraceparent,
    services: served.map(({ service, config: each }) => {
      const { replyTimeoutMs, replyBytesMax, apiKey } = each;
      const contract = contractOnLine(each);
      const upstream = upstreamOf(each);
      const ask = httpCaller({ contract, upstream, replyTimeoutMs, replyBytesMax, apiKey, stop: ending.signal });
      return {
        contract,
        service,
        // A till that gave its operation no name is not told to ask by it.
        handler: (call, waitedMs) => ask({ ...call, key: keyOf(call) }, waitedMs),
        // What the contract doesn't have is refused at once.
        awaitedMs: (route) => (replyTimeoutMs[route] ?? 0) + gatewayMarginMs,
      };
    }),
    report: {
      ...told,
      exchange: (exchange) => told.exchange(recordOf(exchange)),
      state: (reason, isOpen) => {
        const state = isOpen ? "open" : "down";
        // A missing device is retried again and again.
        if (!place.isCurrent || (state === view.state && reason === view.reason)) return;
        view = { name, state, reason };
        told.state(state, reason);
      },
    },
  });
  return {
    get view() {
      return view;
    },
    start: () => listener.start(),
    stop: async (why, graceMs) => {
      const now = nowMs();
      grace.hasten(now + graceMs, now);
      finished ??= listener.finish(why);
      await finished;
      grace.dispose();
    },
  };
}

/** A request's line in the log, with the same fields as a bridge's. */
function recordOf({ call, waitedMs, tookMs, ending, payload, given }: LineExchange): ExchangeRecord {
  // A fault may be an upstream posline's, with a code of its own.
  const reply = ending instanceof Fault ? readReply(payload) : ending;
  const read = typeof reply === "string" ? undefined : reply;
  return {
    requestId: call.requestId,
    traceId: call.trace === undefined ? undefined : traceIdOf(call.trace),
    service: call.service,
    // A path that the contract doesn't have is the sender's text.
    route: routeOf(contracts[call.contract], call.route)?.path ?? "?",
    key: keyOf(call),
    outcome: ending instanceof Fault ? ending.outcome : "answered",
    reason: ending instanceof Fault ? ending.reason : undefined,
    httpStatus: undefined,
    status: read?.status,
    code: read?.code,
    queueMs: waitedMs,
    lineMs: tookMs,
    requestBytes: bytesOf(call.body),
    replyBytes: given ? bytesOf(payload) : 0,
    left: !given,
    message: ending instanceof Fault ? ending.message : undefined,
  };
}

/** What the sender calls the operation, where the request can be read; its upstream judges the rest of it. */
function keyOf(call: Call): string | undefined {
  const contract = contracts[call.contract];
  const route = routeOf(contract, call.route);
  if (route?.key === undefined) return undefined;
  try {
    return readHttpBody(contract, route, call.body, { check: "none", merchantId: undefined, validate: undefined }).key;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
