import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { type Config, emulatedPath, type LineConfig, type ServiceConfig } from "./config.ts";
import { lineDefaults } from "./limits.ts";
import type { FileShape, LineShape } from "./schema.ts";

/**
 * Where a terminal that was found belongs in the configuration, and what setup's drop-in has to say of it. A line that has this device stays, with its services,
 * and gets those that answered and no line has. A line whose device isn't there gets this one, and has then the services that answered.
 * Otherwise the terminal gets a line of its own. What would leave open which of two terminals a sale goes to is refused.
 */

/** A terminal, as its answers show it. */
export interface FoundTerminal {
  /** The device as a line's `path`. */
  readonly path: string;
  readonly baudRate: number;
  /** undefined if no service with a CRC16 answered. */
  readonly crc16: LineConfig["crc16"] | undefined;
  readonly contracts: readonly ContractName[];
}

/** What is known of a line's device: it is the found terminal's, another one, or not there. */
export type DeviceState = "this" | "other" | "away";

export interface TerminalPlace {
  readonly line: string;
  readonly state: "this" | "away" | "new";
}

/** @returns the place, or why there is none and what to do. */
export function placeOf(
  config: Config,
  { contracts }: Pick<FoundTerminal, "contracts">,
  states: ReadonlyMap<string, DeviceState>,
): TerminalPlace | string {
  const withState = (state: DeviceState) => Object.keys(config.lines).filter((line) => states.get(line) === state);
  const [same] = withState("this");
  if (same !== undefined) return { line: same, state: "this" };
  const isShared = ([, { contract }]: readonly [ServiceName, ServiceConfig]) => contracts.includes(contract);
  const [away, another] = withState("away").filter((line) => servicesOn(config, line).some(isShared));
  if (another !== undefined) {
    return `lines ${[away, another].join(" and ")} both wait for such a terminal: write its path in the file`;
  }
  const elsewhere = Object.entries(config.services).filter((each) => isShared(each) && each[1].line !== away);
  // A line that has the contract already may share it with others, under names of their own.
  const own = away === undefined ? [] : servicesOn(config, away).map(([, { contract }]) => contract);
  const [taken] = elsewhere.filter(([, { contract }]) => !own.includes(contract));
  if (taken !== undefined) {
    const [name, { line }] = taken;
    return (
      `${name} is on line ${line} (${config.lines[line]?.path ?? "unknown"}) already: unplug that device if this one takes its ` +
      "place, or give this one's services names and ports of their own in the file"
    );
  }
  if (away !== undefined) return { line: away, state: "away" };
  const names = ["till", ...Array.from({ length: 99 }, (_, at) => `till-${at + 2}`)];
  return { line: names.find((name) => config.lines[name] === undefined) ?? "till-101", state: "new" };
}

export function servicesOn({ services }: Pick<Config, "services">, line: string) {
  return Object.entries(services).filter(([, each]) => each.line === line);
}

/** True if all services of a line have an upstream. A till is at its other end then, which must not be sent a terminal's probe. */
export function isForTills(config: Pick<Config, "services">, line: string): boolean {
  const here = servicesOn(config, line);
  return here.length > 0 && here.every(([, { upstream }]) => upstream !== undefined);
}

/** What setup's drop-in says. */
export interface TerminalSettings extends Partial<Pick<FileShape, "journal" | "admin">> {
  readonly lines: Readonly<Record<string, Partial<LineShape>>>;
  /** A null takes a service of an earlier file away. */
  readonly services: Readonly<Record<ServiceName, { readonly line?: string; readonly merchantIdFile?: string } | null>>;
}

/** Settings by which another device's bytes were read. */
const wireSettings = ["dataBits", "parity", "stopBits", "flowControl"] as const;

/** What has to be said for the configuration to fit the terminal, and isn't yet. */
export function terminalSettings(config: Config, found: FoundTerminal, { line, state }: TerminalPlace): TerminalSettings {
  const { path, baudRate, crc16, contracts } = found;
  const before = { ...lineDefaults, path: emulatedPath, ...config.lines[line] };
  const settings: Partial<LineShape> = {
    ...(state !== "this" && { path }),
    ...((state === "new" || baudRate !== before.baudRate) && { baudRate }),
    ...(crc16 !== undefined && crc16 !== before.crc16 && { crc16 }),
  };
  const services: Record<string, { readonly line: string } | null> = {};
  if (state === "away") {
    for (const key of wireSettings)
      if (before[key] !== lineDefaults[key]) Object.assign(settings, { [key]: lineDefaults[key] });
    for (const [name, { contract }] of servicesOn(config, line)) if (!contracts.includes(contract)) services[name] = null;
  }
  for (const contract of contractNames) {
    if (!contracts.includes(contract) || Object.values(config.services).some((each) => each.contract === contract)) continue;
    services[contract] = { line };
  }
  return { lines: Object.keys(settings).length === 0 ? {} : { [line]: settings }, services };
}
