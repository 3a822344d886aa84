import type { Config } from "../config/config.ts";
import type { Log } from "../core/log.ts";
import type { LineTransport } from "./bridge-line.ts";
import type { Emulation, EmulationFlags } from "./emulation.ts";
import { settingsReport } from "./line-report.ts";
import type { SharedLine } from "./served.ts";

/** What lines run over: their devices, or an emulator. Each is loaded only where it is needed. */

export type TransportOf = (shared: SharedLine) => LineTransport;

export async function devices(log: Log): Promise<TransportOf> {
  const { openerOf } = await import("../device/opener.ts");
  return ({ name, config }) => ({ open: openerOf(config, { settingsChanged: settingsReport(name, log) }) });
}

/** @throws Error when it can't begin. */
export async function emulationOf(flags: EmulationFlags, config: Config, log: Log): Promise<Emulation> {
  const { openEmulation } = await import("./emulation.ts");
  return openEmulation({ flags, services: config.services, log });
}

/** The emulator on the far end of each line, in memory. */
export async function emulatedLines(emulation: Emulation, log: Log): Promise<TransportOf> {
  const { emulatedLine } = await import("./emulated-line.ts");
  return ({ name, config, served }) => {
    const { near, far } = emulatedLine({ name, config, served, emulation, log });
    return { open: near, end: () => far.stop() };
  };
}
