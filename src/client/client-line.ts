import type { LineConfig } from "../config/config.ts";
import { lineDefaults, serviceDefaults } from "../config/limits.ts";
import { contracts } from "../contract/contracts.ts";
import { type ContractName, contractNames, type Handler } from "../core/call.ts";
import { within } from "../core/clock.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import { Presence } from "../core/presence.ts";
import type { OpenTransport } from "../device/transport.ts";
import { faultBody } from "../envelope/fault.ts";
import { textOf } from "../envelope/json.ts";
import { lineCaller, lineService } from "../line/caller.ts";
import { Line } from "../line/line.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../settle/transport.ts";
import type { ServicesOptions } from "./client.ts";

/** A client's own line: its requests go straight to the terminal, by the same line as the bridge's. */

/** The settings of a line, by default the bridge's own. */
export interface LineClientOptions extends Partial<LineConfig> {
  /** The device; by-id names survive a replug. */
  readonly path: string;
  /** The services that the terminal offers on it; by default all three. One that isn't there delays the line's recovery. */
  readonly services?: readonly ContractName[];
  /** In place of the device, for tests. */
  readonly open?: OpenTransport;
}

/** Milliseconds that a first call waits for the device to open, before it fails with the reason. */
const openWaitMs = 5_000;

/** Milliseconds that the exchange in flight may take to end when the client is closed. */
const closeGraceMs = 5_000;

/** A line that is open, and the handlers of its services. */
interface OpenLine {
  readonly line: Line;
  readonly handlers: ReadonlyMap<ContractName, Handler>;
}

async function openLine(
  { services = contractNames, open, ...settings }: LineClientOptions,
  options: ServicesOptions,
): Promise<OpenLine> {
  const given = options.fiscal?.merchantId;
  const config: LineConfig = { ...lineDefaults, ...settings };
  const id = typeof given === "function" ? await given() : given;
  const merchantIdOf = (service: ContractName) => (service === "fiscal" ? id : undefined);
  const rules = { crc16: config.crc16, quiet: config.recovery === "quiet" };
  let report = () => {};
  const changed = new Promise<void>((resolve) => {
    report = resolve;
  });
  const line = new Line({
    name: config.path,
    config,
    services: services.map((service) => {
      const { replyBytesMax = serviceDefaults.replyBytesMax } = options[service] ?? {};
      return lineService(contracts[service], { ...rules, merchantId: merchantIdOf(service), replyBytesMax });
    }),
    open: open ?? (await import("../device/opener.ts")).openerOf(config),
    report: {
      state: () => report(),
      discard: () => {},
      late: () => {},
      probeAnswered: () => {},
      unheard: () => {},
      heardAgain: () => {},
    },
  });
  line.start();
  await within(openWaitMs, changed);
  const callerOf = (service: ContractName) =>
    lineCaller({ contract: contracts[service], line, replyTimeoutMs: {}, merchantId: merchantIdOf(service) });
  return { line, handlers: new Map(services.map((service) => [service, callerOf(service)])) };
}

/** A line as a transport: opened by its first request, once, and held until it is closed. */
export class ClientLine implements Transport {
  readonly #open: () => Promise<OpenLine>;
  #opened: Promise<OpenLine> | undefined;
  #isClosed = false;
  #count = 0;

  constructor(line: LineClientOptions, options: ServicesOptions) {
    this.#open = () => openLine(line, options);
  }

  async send({ contract: service, route, body, withdrawn }: TransportRequest, signal: AbortSignal): Promise<Answer> {
    const caller = new Presence();
    // A waiting call whose caller left is never sent; one in flight runs to its end
    const leave = () => caller.leave();
    const signals = withdrawn === undefined ? [signal] : [signal, withdrawn];
    for (const each of signals) {
      if (each.aborted) leave();
      each.addEventListener("abort", leave);
    }
    try {
      const opened = await this.#openFor(caller);
      if (typeof opened === "string") return failedAnswer("not-sent", opened);
      const handler = opened.handlers.get(service);
      if (handler === undefined) return failedAnswer("not-sent", `Cannot call ${service}: it is not among the line's services`);
      const pieces = body === undefined ? [] : [Buffer.from(body)];
      const requestId = `client-${(++this.#count).toString(36)}`;
      const reply = await handler({ service, contract: service, route, body: pieces, requestId, key: undefined, caller });
      return { ...answered, text: textOf(reply.payload) };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return faultAnswer(service, route, error);
    } finally {
      for (const each of signals) each.removeEventListener("abort", leave);
    }
  }

  /** The open line, or why it isn't: a caller that leaves waits no longer for it. */
  async #openFor(caller: Presence): Promise<OpenLine | string> {
    const left = "cancelled before it was sent";
    if (caller.gone) return left;
    if (this.#isClosed && this.#opened === undefined) return `Cannot open the line: the client was closed. ${nothingSent}`;
    this.#opened ??= this.#open();
    const leaving = new Promise<string>((resolve) => caller.onLeave(() => resolve(left)));
    try {
      return await Promise.race([this.#opened, leaving]);
    } catch (error) {
      // The next request tries again
      this.#opened = undefined;
      return `Cannot open the line: ${String(error)}`;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#opened)?.line.stop(closeGraceMs, "the client was closed");
  }
}

const answered = {
  outcome: "answered",
  httpStatus: undefined,
  retryAfterMs: undefined,
  reason: undefined,
  failure: undefined,
} as const;

/** A fault of the line as a bridge would answer it, so that both ways lead to the same errors. */
function faultAnswer(service: ContractName, route: string, fault: Fault): Answer {
  const { retryAfterS } = fault;
  return {
    outcome: fault.outcome,
    text: faultBody(contracts[service], route, fault).payload.toString(),
    httpStatus: fault.httpStatus,
    retryAfterMs: retryAfterS === undefined ? undefined : retryAfterS * 1000,
    reason: fault.reason,
    failure: fault.message,
  };
}
