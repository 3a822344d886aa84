import { type Config, emulatedPath, type LineConfig } from "../config/config.ts";
import { quoted } from "../core/shell-text.ts";
import { listDevices } from "../device/devices.ts";
import { type ServiceAccount, serviceAccount } from "./accounts.ts";
import { competingProgramFindings } from "./competing-programs.ts";
import { checkHolders, deviceFinding, findDevice, permissionFindings, stopCommand } from "./device.ts";
import { diagnoseLine } from "./diagnosis.ts";
import { type Finding, finding } from "./finding.ts";
import { type Host, type HostPlaces, hostOf } from "./host.ts";
import { portFindings } from "./ports.ts";
import { type Processes, readProcesses } from "./processes.ts";
import { lineStateFindings, readServiceStatus, type ServiceStatus, serviceFindings } from "./service.ts";
import { type DoctorTarget, loadConfigToCheck } from "./setup.ts";
import { clockFindings, nodeFinding, stateFindings } from "./system.ts";
import { readUnits, type SystemdUnits } from "./units.ts";
import { usbSettingsFindings } from "./usb-settings.ts";

/**
 * Checks all that can stand between a till and its terminal, and says of each thing what it found, why, and what fixes it.
 *
 * It only reads, with one exception: on a line that nobody holds it sends each service its barrier, the read-only request that
 * posline itself begins with, and leaves the line as clean as it found it. It changes nothing on the host, runs no shell and
 * needs no root, though root sees more. It decides what is wrong and knows neither flags nor colours.
 */

/** What was looked at, and what was found. */
export interface DoctorReport {
  /** The configuration's file. */
  readonly file: string | undefined;
  readonly lines: readonly ReportedLine[];
  /** In the order in which things hang on each other: the first bad one is what to fix first. */
  readonly findings: readonly Finding[];
  /** `config`: it can't be used, so the lines weren't looked at. `bad`: something stands in the way. */
  readonly verdict: "ok" | "bad" | "config";
  /** What to fix first. */
  readonly first: Finding | undefined;
}

export interface ReportedLine {
  readonly name: string;
  readonly path: string;
  readonly baudRate: number;
  /** Data bits, parity and stop bits: `8N1`. */
  readonly format: string;
}

/** What is known of the host before any line is looked at. */
interface HostFacts {
  readonly host: Host;
  readonly processes: Processes;
  readonly units: SystemdUnits;
  readonly account: ServiceAccount | undefined;
  readonly progress: (text: string) => void;
}

export interface DoctorOptions {
  readonly wanted: DoctorTarget;
  readonly places?: HostPlaces;
  /** Told what is being waited for. */
  readonly progress?: (text: string) => void;
}

export async function examine({ wanted, places = {}, progress = () => {} }: DoctorOptions): Promise<DoctorReport> {
  const host = hostOf(places);
  const [setup, processes, units] = await Promise.all([loadConfigToCheck(wanted, host), readProcesses(host), readUnits(host)]);
  const facts: HostFacts = { host, processes, units, account: await serviceAccount(host, units), progress };
  const findings = [...setup.findings, nodeFinding(host), ...(await clockFindings(host)), ...unitFindings(units)];
  const { config } = setup;
  if (config === undefined) findings.push(await devicesFinding(host));
  else {
    findings.push(...(await stateFindings(config, facts.account)));
    findings.push(...(await portFindings(config, facts)));
    const serviceStatus = await readServiceStatus(config, host, processes);
    findings.push(...serviceFindings(serviceStatus));
    for (const [name, line] of Object.entries(setup.lines)) {
      findings.push(...(await lineFindings({ name, line, config, serviceStatus }, facts)));
    }
  }
  const lines = Object.entries(setup.lines).map(reported);
  const first = findings.find(({ level }) => level === "bad") ?? findings.find(({ level }) => level === "warn");
  return { file: setup.file, lines, findings, verdict: verdictOf(config, first), first };
}

function verdictOf(config: Config | undefined, first: Finding | undefined): DoctorReport["verdict"] {
  if (config === undefined) return "config";
  return first?.level === "bad" ? "bad" : "ok";
}

function reported([name, { path, baudRate, dataBits, parity, stopBits }]: [string, LineConfig]): ReportedLine {
  return { name, path, baudRate, format: `${dataBits}${parity.charAt(0).toUpperCase()}${stopBits}` };
}

/** What there is to configure, where nothing is. */
async function devicesFinding({ places }: Host): Promise<Finding> {
  const [first, ...others] = await listDevices(places);
  if (first === undefined) return finding("device", "note", "there is no serial device on this box", { cure: "posline ports" });
  const name = first.usbName ?? first.byId[0] ?? first.path;
  const what = `serial devices of this box: ${[first, ...others].map(({ path }) => path).join(", ")}`;
  return finding("device", "note", what, { cure: `posline doctor --line ${quoted(name)} looks at the first of them` });
}

/** Whether the service runs, where it is installed. */
function unitFindings({ present, why, service, socket }: SystemdUnits): Finding[] {
  if (!present) return [finding("unit", "skipped", `whether the service runs can't be asked: ${why}`)];
  if (service === undefined) return [finding("unit", "note", "posline.service isn't installed: posline runs by hand here")];
  const ports = socket === undefined ? "" : `, posline.socket is ${socket}`;
  const what = `posline.service is ${service}${ports}`;
  if (service === "active" || service === "reloading") return [finding("unit", "ok", what)];
  const isFailing = service === "failed" || service === "activating";
  const cure = isFailing ? "journalctl -u posline -n 50 shows why" : "sudo systemctl enable --now posline.socket posline";
  return [finding("unit", isFailing ? "warn" : "note", what, { cure })];
}

interface LineFacts {
  readonly name: string;
  readonly line: LineConfig;
  readonly config: Config;
  /** What a posline that runs says of itself. */
  readonly serviceStatus: ServiceStatus | "none runs" | "no admin port";
}

async function lineFindings({ name, line, config, serviceStatus }: LineFacts, facts: HostFacts): Promise<Finding[]> {
  if (line.path === emulatedPath) return [finding("device", "ok", "the line is emulated: there is no device", { line: name })];
  const found = await findDevice(name, line.path, facts.host);
  const lineState = lineStateFindings(name, serviceStatus);
  if ("findings" in found) return [...found.findings, ...lineState, notProbed(name, "there is no device to ask")];
  const { node, device } = found;
  const { host, processes } = facts;
  const holders = await checkHolders(name, node, host, processes);
  const permission = await permissionFindings(name, node, facts);
  const programs = await competingProgramFindings(name, node, { device, host, processes });
  const findings = [
    deviceFinding(name, line.path, node, device),
    holders.finding,
    ...permission.findings,
    ...programs.findings,
  ];
  findings.push(...(await usbSettingsFindings(name, node, device, host)));
  findings.push(...lineState);
  if (!holders.free) {
    const cure = `${await stopCommand(node, host, processes)}, then this command again, for a full test`;
    findings.push(notProbed(name, "the device is in use", cure));
  } else if (!permission.mine) findings.push(notProbed(name, "this user may not open the device", "sudo posline doctor"));
  else if (programs.inUse) findings.push(notProbed(name, "the device is a console"));
  else if (isForTills(name, config)) findings.push(notProbedTill(name, node));
  else
    findings.push(
      ...(await diagnoseLine({ name, config: line, device: node, services: config.services }, host, facts.progress)),
    );
  return findings;
}

function notProbed(line: string, why: string, cure?: string): Finding {
  return finding("answer", "skipped", `the terminal isn't asked: ${why}`, { line, ...(cure === undefined ? {} : { cure }) });
}

/**
 * Where all services of a line are reached elsewhere, a till is at its other end: it isn't sent what only a terminal answers.
 */
function isForTills(line: string, { services }: Config): boolean {
  const here = Object.values(services).filter((service) => service.line === line);
  return here.length > 0 && here.every(({ upstream }) => upstream !== undefined);
}

function notProbedTill(line: string, node: string): Finding {
  const why = "its services have an upstream, so a till is at its other end";
  return notProbed(line, why, `where it is a terminal all the same: posline doctor --line ${quoted(node)}`);
}
