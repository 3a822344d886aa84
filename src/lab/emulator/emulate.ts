import { type Config, emulatedPath, type LineConfig } from "../../config/config.ts";
import { readTcpAddress } from "../../config/device-name.ts";
import { contractOnLine, contracts } from "../../contract/contracts.ts";
import type { Handler } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { bytesOf } from "../../core/pieces.ts";
import { serialPort } from "../../device/serial-port.ts";
import { listenTcp, type TcpListener } from "../../device/tcp-port.ts";
import { HttpListener } from "../../http/listener.ts";
import type { LineListener } from "../../line/listener.ts";
import { type Admin, openAdmin } from "../../process/admin.ts";
import { reportBug } from "../../process/bug.ts";
import type { EmulationFlags } from "../../process/lab.ts";
import { lineReport, settingsReport, unaddressedReport } from "../../process/line-report.ts";
import { listeningServices, openApiRoutes } from "../../process/openapi.ts";
import { type Listening, type Served, servedBy } from "../../process/served.ts";
import * as documents from "../openapi/documents.ts";
import { type Emulation, openEmulation } from "./emulation.ts";
import { httpEndpoint } from "./http-endpoint.ts";
import { listenAtDevice } from "./line-endpoint.ts";

/** The emulator alone: `http/listener` and `line/listener` → `emulator`, all of them on the same state. */

export interface EmulateOptions {
  readonly config: Config;
  readonly log: Log;
  readonly flags: EmulationFlags;
  /** Whether the services are reached over HTTP. */
  readonly http: boolean;
  /** Whether there is a control API. */
  readonly admin: boolean;
}

/** A device on which the emulator answers. */
export interface EmulatedDevice {
  readonly line: string;
  readonly path: string;
}

export interface Emulating {
  readonly listening: readonly Listening[];
  readonly devices: readonly EmulatedDevice[];
  readonly admin: Admin | undefined;
  /** Stops as soon as the answers that are being written are out: nothing else takes long, and no money waits for it. */
  stop(): Promise<void>;
}

/** The devices that a configuration names. */
export function devicesOf({ lines }: Config): readonly EmulatedDevice[] {
  return Object.entries(lines).flatMap(([line, { path }]) => (path === emulatedPath ? [] : [{ line, path }]));
}

/**
 * Starts the emulator: its ports listen, its devices are opened for ever.
 * @throws Error when a port can't be had, or when it can't begin; nothing is left running.
 */
export async function startEmulating(options: EmulateOptions): Promise<Emulating> {
  const { config, log, flags } = options;
  const emulation = openEmulation({ flags, services: config.services, log });
  const onHttp = httpEndpoint(emulation.onPorts);
  const served = servedBy(config);
  const ports = (options.http ? served : []).map((each) => ({ each, listener: httpListenerOf(each, onHttp.handler, log) }));
  const devices = devicesOf(config);
  const ends: { stop(): Promise<void> }[] = [];
  const stop = async () => {
    const closed = ports.map(({ listener }) => listener.close());
    onHttp.stop();
    await Promise.all([...closed, ...ends.map((end) => end.stop())]);
  };
  const listening: Listening[] = [];
  let admin: Admin | undefined;
  const tcp = new Map<string, TcpListener>();
  try {
    for (const { line, path } of devices) {
      const address = readTcpAddress(path);
      if (address === undefined) continue;
      const listener = await listenTcp(address);
      tcp.set(line, listener);
      ends.push({ stop: () => listener.close() });
    }
    for (const { each, listener } of ports) {
      listening.push({ service: each.service, ...(await listener.listen()) });
    }
    if (options.admin) {
      const { routes } = emulation;
      const services = listeningServices(config, listening);
      const openApi = openApiRoutes({ admin: config.admin, services, others: Object.keys(routes), lab: async () => documents });
      admin = await openAdmin(config.admin, { ...routes, ...openApi }, log, { isPlay: true });
    }
    if (admin !== undefined) ends.push({ stop: admin.close });
  } catch (error) {
    await stop();
    throw error;
  }
  for (const [name, line] of Object.entries(config.lines)) {
    if (line.path === emulatedPath) continue;
    const here = served.filter((each) => each.config.line === name);
    ends.push(listenOn({ name, config: line, served: here, tcp: tcp.get(name) }, emulation, log));
  }
  return { listening, devices, admin, stop };
}

/** The emulator itself judges what is asked of it, the same over HTTP as on a line. */
function httpListenerOf({ service, config }: Served, handler: Handler, log: Log): HttpListener {
  return new HttpListener({
    contract: contracts[config.contract],
    service,
    config,
    rules: { check: "none", merchantId: undefined, validate: undefined },
    handler,
    report: {
      exchange: log.exchange,
      error: (error) => reportBug(log, error, { service }),
    },
  });
}

interface EmulatedOnDevice {
  readonly name: string;
  readonly config: LineConfig;
  readonly served: readonly Served[];
  /** The port on which the bridge is awaited, in place of a device. */
  readonly tcp: TcpListener | undefined;
}

function listenOn({ name, config, served, tcp }: EmulatedOnDevice, emulation: Emulation, log: Log): LineListener {
  const { discard } = lineReport(name, log);
  let said: string | undefined;
  return listenAtDevice({
    emulator: emulation.onLine(served),
    config,
    open: tcp?.open ?? serialPort(config, { settingsChanged: settingsReport(name, log) }),
    services: served.map(({ service, config: each }) => ({ contract: contractOnLine(each), service })),
    watched: (handler) => logged(handler, log),
    report: {
      discard,
      unaddressed: unaddressedReport(name, log),
      state: (told) => {
        const reason = tcp?.isAlone === true ? `waiting for a connection at ${tcp.path}` : told;
        // A missing device is retried again and again.
        if (reason !== said) log.line("info", "line", { line: name, reason });
        said = reason;
      },
    },
  });
}

/** Writes each call from a line into the log, as an HTTP listener does with its own. */
function logged(handler: Handler, log: Log): Handler {
  return async (call) => {
    const began = nowMs();
    const reply = await handler(call);
    log.exchange({
      requestId: call.requestId,
      service: call.service,
      // A path that the contract doesn't have is the sender's text.
      route: contracts[call.contract].routes.some(({ path }) => path === call.route) ? call.route : "?",
      key: call.key,
      outcome: "answered",
      httpStatus: undefined,
      status: reply.status,
      code: reply.code,
      queueMs: 0,
      lineMs: nowMs() - began,
      requestBytes: bytesOf(call.body),
      replyBytes: bytesOf(reply.payload),
      left: call.caller.gone,
      message: undefined,
    });
    return reply;
  };
}
