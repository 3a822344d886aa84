import { type Config, emulatedPath, type LineConfig } from "../config/config.ts";
import { readTcpAddress } from "../config/device-name.ts";
import { isForTills } from "../config/found-terminal.ts";
import { quoted } from "../core/shell-text.ts";
import { listDevices } from "../device/devices.ts";
import { type BoxFacts, readBox } from "./accounts.ts";
import { deviceFinding, findDevice } from "./device.ts";
import { checkDevice, notProbed } from "./device-barrier.ts";
import { diagnoseLine } from "./diagnosis.ts";
import { type Finding, finding } from "./finding.ts";
import { type Host, type HostPlaces, hostOf } from "./host.ts";
import { type ConfiguredPort, portFindings } from "./ports.ts";
import { scanLine } from "./scan.ts";
import { findService, lineStateFindings, type RunningPosline, saysItHas, saysItWrites, serviceFindings } from "./service.ts";
import { type ConfigToCheck, type DoctorTarget, loadConfigToCheck } from "./setup.ts";
import { clockFindings, nodeFinding, stateFindings } from "./system.ts";
import { reachFindings, tcpFinding } from "./tcp-line.ts";
import { isServing, type SystemdUnits } from "./units.ts";
import { usbSettingsFindings } from "./usb-settings.ts";

/**
 * Checks everything between a till and its terminal, and says of each thing what it found, why, and what fixes it.
 *
 * It only reads, with one exception: on a line that surely no process holds it sends each service its probe, the read-only request
 * that posline itself begins with, and leaves the line as clean as it found it. It changes nothing on the host, runs no shell and
 * needs no root, though only root sees whether another user's program holds a line. It decides what is wrong and knows neither flags nor colours.
 */

/** All findings of one run, and its verdict. */
export interface DoctorReport {
  /** The configuration's file. */
  readonly file: string | undefined;
  readonly lines: readonly ReportedLine[];
  /** Ordered by dependency: the first bad finding is the one to fix first. */
  readonly findings: readonly Finding[];
  /**
   * `config`: the configuration can't be used, so the lines weren't checked. `usage`: a flag's value can't. `bad`: something prevents a
   * sale.
   */
  readonly verdict: "ok" | "bad" | "config" | "usage";
  /** The finding to fix first: the first bad one, otherwise the first warning. */
  readonly first: Finding | undefined;
}

export interface ReportedLine {
  readonly name: string;
  readonly path: string;
  readonly baudRate: number;
  /** Data bits, parity and stop bits: `8N1`. */
  readonly format: string;
}

/** Facts about the host that are the same for every line. */
interface HostFacts extends BoxFacts {
  readonly scan: boolean;
  readonly progress: (text: string) => void;
}

export interface DoctorOptions {
  readonly wanted: DoctorTarget;
  /** Try the usual speeds and both readings of CRC16 on each line, in place of the configured setting alone. */
  readonly scan?: boolean;
  readonly places?: HostPlaces;
  /** Called with what is being waited for. */
  readonly progress?: (text: string) => void;
  /** Called with each finding as it is made, in the report's order. */
  readonly onFinding?: (finding: Finding) => void;
  /** Called before a line's findings. */
  readonly onLine?: (line: ReportedLine) => void;
}

export async function examine(options: DoctorOptions): Promise<DoctorReport> {
  const { wanted, scan = false, places = {}, progress = () => {}, onFinding = () => {}, onLine = () => {} } = options;
  const findings: Finding[] = [];
  const add = (found: readonly Finding[]) => {
    const asGiven = found.map((each) => asWanted(each, wanted));
    findings.push(...asGiven);
    asGiven.forEach(onFinding);
  };
  const host = hostOf(places);
  const setup = await loadConfigToCheck(wanted, host);
  const { config, isInstalled } = setup;
  const facts: HostFacts = { ...(await readBox(host, isInstalled)), scan, progress };
  add([...setup.findings, nodeFinding(host)]);
  add(await clockFindings(host));
  if (isInstalled) add(unitFindings(facts.units));
  const lines = Object.entries(setup.lines).map(reported);
  if (config === undefined) add([await devicesFinding(host)]);
  else {
    const service = await findService(config, facts);
    const isWritten = (folder: string) => service !== undefined && saysItWrites(service, folder);
    add(await stateFindings(config, { ...facts, isWritten }));
    const owner = (wanted: ConfiguredPort) => (service !== undefined && saysItHas(service, wanted) ? service.pid : undefined);
    add(await portFindings(config, { ...facts, saysItHas: owner }));
    add(serviceFindings(service));
    for (const [name, line] of Object.entries(setup.lines)) {
      onLine(reported([name, line]));
      for await (const found of lineFindings({ name, line, config, service }, facts)) add(found);
    }
  }
  const first = findings.find(({ level }) => level === "bad") ?? findings.find(({ level }) => level === "warn");
  return { file: setup.file, lines, findings, verdict: verdictOf(setup, first), first };
}

/**
 * Adds the flags of this run to the posline commands in a finding's cure. Done here, not where they are worded, since some cures are the
 * running service's own words.
 */
function asWanted(found: Finding, { config, line }: DoctorTarget): Finding {
  const { cure } = found;
  if (cure === undefined) return found;
  // No file may have a line of that name: it was named by its device.
  const name = found.line === undefined ? undefined : quoted(found.line);
  const file = config === undefined ? "" : ` --config ${quoted(config)}`;
  const only = line === undefined ? "" : ` --line ${quoted(line)}`;
  const again = (own: string | undefined) => {
    const isThis = own === undefined || (own === name && line !== undefined);
    return `posline doctor${file}${isThis ? only : ` --line ${own}`}`;
  };
  const doctor = cure.replaceAll(
    /\bposline doctor\b(?: --line ((?:'[^']*'|\\'|[\w@%+=:,./-])+))?/g,
    (_, own: string | undefined) => again(own),
  );
  return { ...found, cure: doctor.replaceAll(/\bposline journal\b/g, `posline journal${file}`) };
}

function verdictOf({ config, isUsageError }: ConfigToCheck, first: Finding | undefined): DoctorReport["verdict"] {
  if (config === undefined) return isUsageError ? "usage" : "config";
  return first?.level === "bad" ? "bad" : "ok";
}

function reported([name, { path, baudRate, dataBits, parity, stopBits }]: [string, LineConfig]): ReportedLine {
  return { name, path, baudRate, format: `${dataBits}${parity.charAt(0).toUpperCase()}${stopBits}` };
}

/** A box without a configuration: the devices that one could name. */
async function devicesFinding({ places }: Host): Promise<Finding> {
  const devices = await listDevices(places);
  // A terminal is mostly at an adapter, and many boxes have a ttyS0 that leads nowhere.
  const [first, ...others] = [...devices.filter(({ usb }) => usb), ...devices.filter(({ usb }) => !usb)];
  if (first === undefined) return finding("device", "note", "there is no serial device on this box", { cure: "posline ports" });
  const name = first.usbName ?? first.byId[0] ?? first.path;
  const what = `serial devices of this box: ${[first, ...others].map(({ path }) => path).join(", ")}`;
  return finding("device", "note", what, { cure: `sudo posline doctor --line ${quoted(name)} looks at the first of them` });
}

/** Whether the service runs, if it is installed. */
function unitFindings({ present, why, service, socket }: SystemdUnits): Finding[] {
  if (!present) return [finding("unit", "skipped", `systemd can't be asked whether the service runs: ${why}`)];
  if (service === undefined) return [finding("unit", "note", "posline.service isn't installed: posline runs by hand here")];
  const ports = socket === undefined ? "" : `, posline.socket is ${socket}`;
  const what = `posline.service is ${service}${ports}`;
  if (isServing(service)) return [finding("unit", "ok", what)];
  const isFailing = service === "failed" || service === "activating";
  const cure = isFailing ? "sudo journalctl -u posline -n 50 shows why" : "sudo systemctl enable --now posline.socket posline";
  return [finding("unit", isFailing ? "warn" : "note", what, { cure })];
}

interface LineFacts {
  readonly name: string;
  readonly line: LineConfig;
  readonly config: Config;
  /** The posline that runs with this configuration. */
  readonly service: RunningPosline | undefined;
}

/** The findings of a line, in portions as they are made. */
async function* lineFindings({ name, line, config, service }: LineFacts, facts: HostFacts): AsyncGenerator<readonly Finding[]> {
  if (line.path === emulatedPath) {
    yield [finding("device", "ok", "the line is emulated: there is no device", { line: name })];
    return;
  }
  const address = readTcpAddress(line.path);
  const found = address === undefined ? await findDevice(name, line.path, facts.host) : overTcp;
  if ("findings" in found) {
    const lineState = lineStateFindings({ ...line, name }, service);
    yield [...found.findings, ...lineState, notProbed(name, "there is no device to test")];
    return;
  }
  const { node, device } = found;
  const { findings, barrier } = await checkDevice({ name, config: line, node, device }, facts);
  if (address !== undefined) {
    yield [tcpFinding(name, line.path), ...findings, ...(await reachFindings(name, line.path, address, facts.units))];
  }
  if (node !== undefined) {
    yield [deviceFinding(name, line.path, node, device), ...findings];
    yield await usbSettingsFindings(name, node, device, facts.host);
  }
  yield lineStateFindings({ ...line, name, ...(node !== undefined && { node }) }, service);
  if (isForTills(config, name)) yield [notProbedTill(name, node ?? line.path)];
  else if (barrier !== undefined) yield [barrier];
  else {
    const isScanned = facts.scan && address === undefined;
    const speed = finding("scan", "skipped", "no speed is tried: it is the far end's, which posline can't set", { line: name });
    if (facts.scan && !isScanned) yield [speed];
    const toProbe = { name, config: line, services: config.services };
    yield await (isScanned ? scanLine : diagnoseLine)(toProbe, facts.host, facts.progress);
  }
}

/** What a line over TCP has of a device here. */
const overTcp = { node: undefined, device: undefined };

function notProbedTill(line: string, node: string): Finding {
  const why = "its services have an upstream, so a till is at its other end";
  return notProbed(line, why, `if it is a terminal all the same: sudo posline doctor --line ${quoted(node)}`);
}
