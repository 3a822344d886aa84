import type { LineConfig } from "../../src/config/config.ts";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import type { Cause } from "../../src/device/open-errors.ts";
import type { OpenTransport } from "../../src/device/transport.ts";
import { lineService } from "../../src/line/caller.ts";
import type { LineRequest } from "../../src/line/exchange.ts";
import { Line, type LineObserve, type LineReport } from "../../src/line/line.ts";

/** Lines and requests for tests, with what the tests ask of them in common. */

export const merchantId = "MERCHANT-1";

export function configOf(settings: Partial<LineConfig> = {}): LineConfig {
  return { ...lineDefaults, path: "/dev/null", ...settings };
}

/** What a line told of itself. */
export class Told implements LineReport {
  readonly states: string[] = [];
  readonly reasons: string[] = [];
  lates = 0;
  readonly discards: string[] = [];
  state(state: string, reason: string): void {
    this.states.push(state);
    this.reasons.push(reason);
  }
  discard({ reason }: { readonly reason: string }): void {
    this.discards.push(reason);
  }
  late(): void {
    this.lates++;
  }
  /** What was reported of services that fell silent, and that answer again. */
  readonly liveness: string[] = [];
  unheard(service: string, { cause }: Cause): void {
    this.liveness.push(`${service} unheard: ${cause}`);
  }
  heardAgain(service: string): void {
    this.liveness.push(`${service} heard again`);
  }
  /** What was reported of a line that gives back what it is sent. */
  readonly echoed: string[] = [];
  echoes({ cause }: Cause): void {
    this.echoed.push(cause);
  }
  /** Each probe that was answered, with its answer. */
  readonly probes: { readonly service: string; readonly answer: object }[] = [];
  probeAnswered(service: string, answer: object): void {
    this.probes.push({ service, answer });
  }
}

/** Nobody listens. */
export const silentReport: LineReport = {
  state: () => {},
  discard: () => {},
  late: () => {},
  probeAnswered: () => {},
  unheard: () => {},
  heardAgain: () => {},
};

export interface LineSetup {
  readonly services?: readonly ContractName[];
  readonly config?: Partial<LineConfig>;
  readonly merchantId?: string | undefined;
  /** Bytes of the largest reply, where not the default. */
  readonly replyBytesMax?: Readonly<Partial<Record<ContractName, number>>>;
  readonly observe?: LineObserve;
  /** Who owes a call's answer on the device, as the line before this one knows. */
  readonly inherited?: () => readonly string[];
}

export function lineOver(open: OpenTransport, setup: LineSetup = {}): { readonly line: Line; readonly told: Told } {
  const config = configOf(setup.config);
  const { services: names = ["bank"] } = setup;
  const rules = { crc16: config.crc16, quiet: config.recovery === "quiet", merchantId: setup.merchantId };
  const told = new Told();
  const services = names.map((service) => {
    const replyBytesMax = setup.replyBytesMax?.[service];
    return lineService(contracts[service], { ...rules, ...(replyBytesMax === undefined ? {} : { replyBytesMax }) });
  });
  const { observe, inherited } = setup;
  return { line: new Line({ name: "till", config, services, open, report: told, observe, inherited }), told };
}

/** A request for money, named by its id. */
export function requestFor(
  id: string,
  settings: Partial<LineRequest> & { readonly service?: ContractName; readonly route?: string } = {},
): LineRequest {
  const { route = "/sale", service = "bank", ...rest } = settings;
  const { framing, linePrefix } = contracts[service];
  const text = framing === "stx" ? `command=${route}&{"id":"${id}"}` : `${linePrefix}${route}\n{"id":"${id}"}`;
  return {
    service,
    route,
    requestId: id,
    framing,
    payload: [Buffer.from(text)],
    replyTimeoutMs: 10_000,
    urgent: false,
    background: false,
    repeatable: false,
    shapedAs: undefined,
    adviceWhenUnknown: "Outcome unknown, call /check",
    caller: new Presence(),
    ...rest,
  };
}

export function idOf(text: string): string {
  return /"id":"([\w-]+)"/.exec(text)?.[1] ?? "";
}

/** How a call ended, as a test reads it: the reply's text, or the fault. */
export type Ending = { text?: string; fault?: Fault };

/** Runs a call and notes how it ended; the object is empty until then. */
export function ending(line: Line, request: LineRequest): Ending {
  const end: Ending = {};
  line.run(request).then(
    ({ payload }) => {
      end.text = Buffer.concat(payload).toString();
    },
    (error: unknown) => {
      if (!(error instanceof Fault)) throw error;
      end.fault = error;
    },
  );
  return end;
}

export const hasEnded = (end: Ending): boolean => end.text !== undefined || end.fault !== undefined;
