import type { Config, LineConfig } from "../config/config.ts";
import { localUpstream } from "../config/upstreams.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import type { Call, ServiceName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import type { ExchangeRecord, Log } from "../core/log.ts";
import { readReply } from "../envelope/reply.ts";
import { readHttpBody } from "../envelope/request.ts";
import { httpCaller } from "../http/caller.ts";
import { bytesOf } from "../line/frame.ts";
import { type LineExchange, LineListener } from "../line/listener.ts";
import { serialPort } from "../line/serial-port.ts";
import { type Served, servedBy } from "./bridge.ts";
import { setEngine } from "./engine.ts";
import { lineReport } from "./line-report.ts";

/**
 * The gateway: `line/listener` → `http/caller`, for tills that have a serial port alone. Here parts are joined and started and
 * stopped in order; nothing is decided.
 */

/** Milliseconds the request in flight may take to end when posline is told to stop; then its outcome is unknown. */
const stopGraceMs = 60_000;

export interface GatewayOptions {
  readonly config: Config;
  readonly log: Log;
}

/** A service and where it is asked. */
export interface Asking {
  readonly service: ServiceName;
  readonly line: string;
  readonly upstream: string;
}

export interface Gateway {
  readonly asking: readonly Asking[];
  /** Takes no more requests, lets those in flight end and their answers go out, and gives the devices back. */
  stop(): Promise<void>;
}

/** Starts a gateway: its lines open for ever, and no upstream need be there yet. */
export function startGateway({ config, log }: GatewayOptions): Gateway {
  const served = servedBy(config);
  const ending = new AbortController();
  const listeners = Object.entries(config.lines).map(([name, line]) => {
    const here = served.filter((each) => each.config.line === name);
    return listenerOf(name, line, here, { log, stop: ending.signal });
  });
  for (const listener of listeners) listener.start();
  setEngine();
  const stop = async () => {
    const timer = setTimeout(() => ending.abort(), stopGraceMs);
    await Promise.all(listeners.map((listener) => listener.finish()));
    clearTimeout(timer);
  };
  const asking = served.map((each) => ({ service: each.service, line: each.config.line, upstream: upstreamOf(each) }));
  return { asking, stop };
}

/** The configuration of a gateway has one for each service. */
function upstreamOf({ service, config }: Served): string {
  return config.upstream ?? localUpstream(service);
}

interface Surroundings {
  readonly log: Log;
  readonly stop: AbortSignal;
}

function listenerOf(name: string, config: LineConfig, served: readonly Served[], { log, stop }: Surroundings): LineListener {
  const { discard } = lineReport(name, log);
  let said: string | undefined;
  return new LineListener({
    config,
    open: serialPort(config),
    answering: "newest",
    services: served.map((each) => {
      const contract = contracts[each.service];
      const { replyTimeoutMs, apiKey } = each.config;
      return { contract, handler: httpCaller({ contract, upstream: upstreamOf(each), replyTimeoutMs, apiKey, stop }) };
    }),
    report: {
      discard,
      state: (reason, isOpen) => {
        // A device that is away is tried for again and again.
        if (reason === said) return;
        said = reason;
        log.line(isOpen ? "info" : "warn", "line", { line: name, state: isOpen ? "open" : "down", reason });
      },
      exchange: (exchange) => log.exchange(recordOf(exchange)),
      unaddressed: ({ framing, wireBytes }) =>
        log.line("warn", "a request was for no service of this line", { line: name, framing, bytes: wireBytes }),
      error: (error) => log.process("error", "posline failed within: please report it", { line: name, error: String(error) }),
    },
  });
}

/** A request's line in the log, with the same fields as a bridge's. */
function recordOf({ call, waitedMs, tookMs, ending, payload, given }: LineExchange): ExchangeRecord {
  // A fault may be an upstream posline's, with a code of its own.
  const read = ending instanceof Fault ? readReply(payload) : ending;
  return {
    requestId: call.requestId,
    service: call.service,
    // A path that the contract doesn't have is the sender's text.
    route: routeOf(contracts[call.service], call.route)?.path ?? "?",
    key: keyOf(call),
    outcome: ending instanceof Fault ? ending.outcome : "answered",
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
  const contract = contracts[call.service];
  const route = routeOf(contract, call.route);
  if (route?.key === undefined) return undefined;
  try {
    return readHttpBody(contract, route, call.body, { check: "envelope", merchantId: undefined, validate: undefined }).key;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
