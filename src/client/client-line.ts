import type { LineConfig } from "../config/config.ts";
import { lineDefaults, serviceDefaults } from "../config/limits.ts";
import { contracts } from "../contract/contracts.ts";
import { type ContractName, contractNames, type Handler } from "../core/call.ts";
import { within } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
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

/** Opens a line and gives the transport over it. */
export async function openLine(
  { services = contractNames, open, ...settings }: LineClientOptions,
  options: ServicesOptions,
): Promise<Transport> {
  const merchantId = options.fiscal?.merchantId;
  const config: LineConfig = { ...lineDefaults, ...settings };
  const id = typeof merchantId === "function" ? await merchantId() : merchantId;
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
      return lineService(contracts[service], { ...rules, merchantId: idFor(service, id), replyBytesMax });
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
  return new LineTransport(line, services, id);
}

function idFor(service: ContractName, merchantId: string | undefined): string | undefined {
  return service === "fiscal" ? merchantId : undefined;
}

class LineTransport implements Transport {
  readonly #line: Line;
  readonly #handlers: ReadonlyMap<ContractName, Handler>;
  #count = 0;

  constructor(line: Line, services: readonly ContractName[], merchantId: string | undefined) {
    this.#line = line;
    this.#handlers = new Map(
      services.map((service) => [
        service,
        lineCaller({ contract: contracts[service], line, replyTimeoutMs: {}, merchantId: idFor(service, merchantId) }),
      ]),
    );
  }

  async send({ contract: service, route, body, withdrawn }: TransportRequest, signal: AbortSignal): Promise<Answer> {
    const handler = this.#handlers.get(service);
    if (handler === undefined) return failedAnswer("not-sent", `Cannot call ${service}: it is not among the line's services`);
    const left = [signal, ...(withdrawn === undefined ? [] : [withdrawn])];
    if (left.some(({ aborted }) => aborted)) return failedAnswer("not-sent", "cancelled before it was sent");
    const caller = new Presence();
    // A waiting call whose caller left is never sent; one in flight runs to its end
    const leave = () => caller.leave();
    for (const each of left) each.addEventListener("abort", leave);
    const pieces = body === undefined ? [] : [Buffer.from(body)];
    const requestId = `client-${(++this.#count).toString(36)}`;
    try {
      const reply = await handler({ service, contract: service, route, body: pieces, requestId, key: undefined, caller });
      return { ...answered, text: textOf(reply.payload) };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return faultAnswer(service, route, error);
    } finally {
      for (const each of left) each.removeEventListener("abort", leave);
    }
  }

  close(): Promise<void> {
    return this.#line.stop(closeGraceMs, "the client was closed");
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
