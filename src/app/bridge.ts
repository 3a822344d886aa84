import type { AddressInfo } from "node:net";
import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import type { Log } from "../core/log.ts";
import type { RequestRules, ValidateBody } from "../envelope/request.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import { HttpListener } from "../http/listener.ts";
import { lineCaller, linePeer } from "../line/caller.ts";
import type { Open } from "../line/conduit.ts";
import { Line } from "../line/line.ts";
import type { Admin } from "./admin.ts";
import type { Emulation, EmulationFlags } from "./emulation.ts";
import { setEngine } from "./engine.ts";
import { lineReport } from "./line-report.ts";

/**
 * The bridge: `http/listener` → `line/caller`. Here parts are joined and started and stopped in order; nothing is decided.
 */

/** Milliseconds the exchange in flight may take to end when posline is told to stop; then its outcome is unknown. */
const stopGraceMs = 60_000;

export interface BridgeOptions {
  readonly config: Config;
  readonly log: Log;
  /** There when the emulator answers on every line, in place of its device. */
  readonly emulated: EmulationFlags | undefined;
}

/** A service that listens. */
export interface Listening {
  readonly service: ServiceName;
  readonly host: string;
  readonly port: number;
  /** The name of its line, where it has one. */
  readonly line?: string;
}

export interface Bridge {
  readonly lines: readonly Line[];
  readonly listening: readonly Listening[];
  /** The emulator's control API, where there is one. */
  readonly admin: Admin | undefined;
  /** Stops accepting, refuses what waits, lets the exchanges in flight end, and gives the devices back. */
  stop(): Promise<void>;
}

/** A service with its settings. */
export interface Served {
  readonly service: ServiceName;
  readonly config: ServiceConfig;
}

/**
 * Starts a bridge: its services listen, its lines open for ever.
 * @throws Error when a port can't be had, or when the emulator can't begin; nothing is left running.
 */
export async function startBridge({ config, log, emulated }: BridgeOptions): Promise<Bridge> {
  const served = servedBy(config);
  const validate = await validatorFor(served);
  const ends: { stop(): Promise<void> }[] = [];
  const lines = new Map<string, Line>();
  const emulation = emulated === undefined ? undefined : await emulationOf(emulated, config, log);
  const openOf = emulation === undefined ? await deviceOpen() : await emulatedOpen(emulation, log, ends);
  for (const [name, lineConfig] of Object.entries(config.lines)) {
    const here = served.filter(({ config: { line } }) => line === name);
    lines.set(name, lineOf(name, lineConfig, here, openOf(name, lineConfig, here), log));
  }
  const listeners = served.map((each) => ({ each, listener: listenerOf(each, lines, validate, log) }));
  const stop = async () => {
    const closed = listeners.map(({ listener }) => listener.close());
    await Promise.all([...lines.values()].map((line) => line.stop(stopGraceMs)));
    await Promise.all(closed);
    for (const end of ends) await end.stop();
  };
  const listening: Listening[] = [];
  let admin: Admin | undefined;
  try {
    for (const { each, listener } of listeners) listening.push(listeningOf(each, await listener.listen()));
    // Last, so that the usual admin port is never taken from a service that is to have it.
    if (emulation !== undefined) admin = await adminOf(config, emulation.routes, log);
    if (admin !== undefined) ends.push({ stop: admin.close });
  } catch (error) {
    await stop();
    throw error;
  }
  for (const line of lines.values()) line.start();
  setEngine();
  return { lines: [...lines.values()], listening, admin, stop };
}

async function emulationOf(flags: EmulationFlags, { services }: Config, log: Log): Promise<Emulation> {
  const { openEmulation } = await import("./emulation.ts");
  return openEmulation({ flags, merchantId: services.fiscal?.merchantId, log });
}

async function adminOf({ admin }: Config, routes: Readonly<Record<string, AdminRoute>>, log: Log): Promise<Admin | undefined> {
  const { openAdmin } = await import("./admin.ts");
  return openAdmin(admin, routes, log);
}

export function servedBy(config: Config): readonly Served[] {
  return serviceNames.flatMap((service) => {
    const found = config.services[service];
    return found === undefined ? [] : [{ service, config: found }];
  });
}

export function listeningOf({ service, config }: Served, address: AddressInfo): Listening {
  return { service, host: address.address, port: address.port, line: config.line };
}

/** The schema library is loaded only where a service asks for whole schemas. */
async function validatorFor(served: readonly Served[]): Promise<ValidateBody | undefined> {
  if (!served.some(({ config }) => config.check === "contract")) return undefined;
  return (await import("../contract/schema.ts")).validateRequest;
}

type OpenOf = (name: string, config: LineConfig, served: readonly Served[]) => Open;

async function deviceOpen(): Promise<OpenOf> {
  const { serialPort } = await import("../line/serial-port.ts");
  return (_, config) => serialPort(config);
}

/** The emulator on the far end of each line, in memory. */
async function emulatedOpen(emulation: Emulation, log: Log, ends: { stop(): Promise<void> }[]): Promise<OpenOf> {
  const { emulatedLine } = await import("./emulated-line.ts");
  return (name, config, served) => {
    const { near, far } = emulatedLine({ name, config, services: served.map(({ service }) => service), emulation, log });
    ends.push(far);
    return near;
  };
}

function lineOf(name: string, config: LineConfig, served: readonly Served[], open: Open, log: Log): Line {
  const quiet = config.recovery === "quiet";
  const peers = served.map(({ service, config: { merchantId } }) =>
    linePeer(contracts[service], { crc16: config.crc16, quiet, merchantId }),
  );
  return new Line({ name, config, peers, open, report: lineReport(name, log) });
}

function listenerOf(
  { service, config }: Served,
  lines: ReadonlyMap<string, Line>,
  validate: ValidateBody | undefined,
  log: Log,
): HttpListener {
  const contract = contracts[service];
  const line = lines.get(config.line);
  // The configuration refuses a service whose line isn't there.
  if (line === undefined) throw new Error(`Cannot serve ${service}: there is no line ${config.line}`);
  const { merchantId, replyTimeoutMs } = config;
  const rules: RequestRules = { check: config.check, merchantId, validate };
  const report = {
    exchange: log.exchange,
    error: (error: unknown) =>
      log.process("error", "posline failed within: please report it", { service, error: String(error) }),
  };
  return new HttpListener({
    contract,
    config,
    rules,
    report,
    handler: lineCaller({ contract, line, replyTimeoutMs, merchantId }),
  });
}
