import type { Config, ServiceConfig } from "../config/config.ts";
import { localUpstream } from "../config/upstreams.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import type { Call, ServiceName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import type { ExchangeRecord, Log } from "../core/log.ts";
import { readReply } from "../envelope/reply.ts";
import { readHttpBody } from "../envelope/request.ts";
import { httpCaller } from "../http/caller.ts";
import { bytesOf } from "../line/frame.ts";
import { type LineExchange, LineListener, type LineListenerReport } from "../line/listener.ts";
import { serialPort } from "../line/serial-port.ts";
import { setEngine } from "./engine.ts";
import { lineReport } from "./line-report.ts";
import { LineSet, type OnLine, type Place } from "./line-set.ts";
import { type SharedLine, servedBy, sharedLines } from "./served.ts";
import { summaryOf } from "./summary.ts";
import type { Supervised } from "./supervision.ts";

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

export interface Gateway extends Supervised {
  readonly asking: readonly Asking[];
  /** Takes another configuration; a line that it doesn't change goes on as it is. */
  reload(config: Config): Promise<void>;
  /** Takes no more requests, lets those in flight end and their answers go out, and gives the devices back. */
  stop(): Promise<void>;
}

/** Starts a gateway: its lines open for ever, and no upstream need be there yet. */
export function startGateway({ config, log }: GatewayOptions): Gateway {
  const gateway = new RunningGateway(log);
  gateway.take(config);
  setEngine();
  return gateway;
}

/** A line of a gateway, and how it does. */
interface GatewayLine extends OnLine {
  readonly view: { readonly name: string; state: "open" | "down"; reason: string };
}

class RunningGateway implements Gateway {
  readonly #log: Log;
  readonly #lines: LineSet<GatewayLine>;
  #asking: readonly Asking[] = [];
  #changed = () => {};

  constructor(log: Log) {
    this.#log = log;
    this.#lines = new LineSet({
      make: (shared, place) => this.#make(shared, place),
      lasting: ({ service, config }) => [upstreamOf(service, config), config.apiKey, config.replyTimeoutMs],
    });
  }

  get asking(): readonly Asking[] {
    return this.#asking;
  }

  summary(): string {
    return summaryOf(this.#lines.all.map(({ view }) => view));
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  async reload(config: Config): Promise<void> {
    this.take(config);
  }

  take(config: Config): void {
    this.#lines.take(this.#lines.prepare(sharedLines(config)));
    this.#asking = servedBy(config).map(({ service, config: each }) => ({
      service,
      line: each.line,
      upstream: upstreamOf(service, each),
    }));
  }

  stop(): Promise<void> {
    return this.#lines.stop();
  }

  #make(shared: SharedLine, place: Place): GatewayLine {
    const { name, config } = shared;
    const view: GatewayLine["view"] = { name, state: "down", reason: "it was not opened yet" };
    const ending = new AbortController();
    const listener = new LineListener({
      config,
      open: place.open(serialPort(config)),
      answering: "newest",
      services: shared.served.map(({ service, config: each }) => {
        const contract = contracts[service];
        const { replyTimeoutMs, apiKey } = each;
        const upstream = upstreamOf(service, each);
        return { contract, handler: httpCaller({ contract, upstream, replyTimeoutMs, apiKey, stop: ending.signal }) };
      }),
      report: this.#reportOf(name, (state, reason) => {
        if (!place.isCurrent) return;
        this.#log.line(state === "open" ? "info" : "warn", "line", { line: name, state, reason });
        Object.assign(view, { state, reason });
        this.#changed();
      }),
    });
    return {
      view,
      start: () => listener.start(),
      stop: async () => {
        const timer = setTimeout(() => ending.abort(), stopGraceMs);
        await listener.finish();
        clearTimeout(timer);
      },
    };
  }

  #reportOf(line: string, changed: (state: "open" | "down", reason: string) => void): LineListenerReport {
    const log = this.#log;
    let said: string | undefined;
    return {
      discard: lineReport(line, log).discard,
      state: (reason, isOpen) => {
        // A device that is away is tried for again and again.
        if (reason === said) return;
        said = reason;
        changed(isOpen ? "open" : "down", reason);
      },
      exchange: (exchange) => log.exchange(recordOf(exchange)),
      unaddressed: ({ framing, wireBytes }) =>
        log.line("warn", "a request was for no service of this line", { line, framing, bytes: wireBytes }),
      error: (error) => log.process("error", "posline failed within: please report it", { line, error: String(error) }),
    };
  }
}

/** The configuration of a gateway has one for each service. */
function upstreamOf(service: ServiceName, { upstream }: ServiceConfig): string {
  return upstream ?? localUpstream(service);
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
