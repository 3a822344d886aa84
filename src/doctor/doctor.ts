import { type Config, emulatedPath, type LineConfig } from "../config/config.ts";
import { quoted } from "../core/shell-text.ts";
import { listDevices } from "../device/devices.ts";
import { type Account, serviceAccount } from "./accounts.ts";
import { askLine } from "./asking.ts";
import { type Box, boxOf, type Places } from "./box.ts";
import { deviceFinding, findDevice, heldFinding, permissionFindings, stopWords } from "./device.ts";
import { type Finding, finding } from "./finding.ts";
import { portFindings } from "./ports.ts";
import { type Processes, readProcesses } from "./processes.ts";
import { rivalFindings } from "./rivals.ts";
import { askService, serviceFindings, standingFindings, type Told } from "./service.ts";
import { loadSetup, type Wanted } from "./setup.ts";
import { clockFindings, nodeFinding, stateFindings } from "./system.ts";
import { tuningFindings } from "./tuning.ts";
import { askUnits, type Units } from "./units.ts";

/**
 * Looks at all that can stand between a till and its terminal, and says of each thing what it found, why, and what mends it.
 *
 * It only reads, with one exception: on a line that nobody holds it asks each service its barrier, the read-only request that
 * posline itself begins with, and leaves the line as clean as it found it. It changes nothing on the box, runs no shell and
 * needs no root, though root sees more. It decides what is wrong and knows neither flags nor colours.
 */

/** What was looked at, and what was found. */
export interface Report {
  /** The configuration's file. */
  readonly file: string | undefined;
  readonly lines: readonly ReportedLine[];
  /** In the order in which things hang on each other: the first bad one is what to mend first. */
  readonly findings: readonly Finding[];
  /** `config`: it can't be used, so the lines weren't looked at. `bad`: something stands in the way. */
  readonly verdict: "ok" | "bad" | "config";
  /** What to mend first. */
  readonly first: Finding | undefined;
}

export interface ReportedLine {
  readonly name: string;
  readonly path: string;
  readonly baudRate: number;
  /** Data bits, parity and stop bits: `8N1`. */
  readonly format: string;
}

/** What is known of the box before any line is looked at. */
interface Known {
  readonly box: Box;
  readonly processes: Processes;
  readonly units: Units;
  readonly account: Account | undefined;
  readonly progress: (text: string) => void;
}

export interface Examining {
  readonly wanted: Wanted;
  readonly places?: Places;
  /** Told what is being waited for. */
  readonly progress?: (text: string) => void;
}

export async function examine({ wanted, places = {}, progress = () => {} }: Examining): Promise<Report> {
  const box = boxOf(places);
  const [setup, processes, units] = await Promise.all([loadSetup(wanted, box), readProcesses(box), askUnits(box)]);
  const known: Known = { box, processes, units, account: await serviceAccount(box, units), progress };
  const findings = [...setup.findings, nodeFinding(box), ...(await clockFindings(box)), ...unitFindings(units)];
  const { config } = setup;
  if (config === undefined) findings.push(await devicesFinding(box));
  else {
    findings.push(...(await stateFindings(config, known.account)));
    findings.push(...(await portFindings(config, known)));
    const told = await askService(config, box, processes);
    findings.push(...serviceFindings(told));
    for (const [name, line] of Object.entries(setup.lines)) {
      findings.push(...(await lineFindings({ name, line, config, told }, known)));
    }
  }
  const lines = Object.entries(setup.lines).map(reported);
  const first = findings.find(({ level }) => level === "bad") ?? findings.find(({ level }) => level === "warn");
  return { file: setup.file, lines, findings, verdict: verdictOf(config, first), first };
}

function verdictOf(config: Config | undefined, first: Finding | undefined): Report["verdict"] {
  if (config === undefined) return "config";
  return first?.level === "bad" ? "bad" : "ok";
}

function reported([name, { path, baudRate, dataBits, parity, stopBits }]: [string, LineConfig]): ReportedLine {
  return { name, path, baudRate, format: `${dataBits}${parity.charAt(0).toUpperCase()}${stopBits}` };
}

/** What there is to configure, where nothing is. */
async function devicesFinding({ places }: Box): Promise<Finding> {
  const [first, ...others] = await listDevices(places);
  if (first === undefined) return finding("device", "note", "there is no serial device on this box", { cure: "posline ports" });
  const name = first.usbName ?? first.byId[0] ?? first.path;
  const what = `serial devices of this box: ${[first, ...others].map(({ path }) => path).join(", ")}`;
  return finding("device", "note", what, { cure: `posline doctor --line ${quoted(name)} looks at the first of them` });
}

/** Whether the service runs, where it is installed. */
function unitFindings({ present, why, service, socket }: Units): Finding[] {
  if (!present) return [finding("unit", "skipped", `whether the service runs can't be asked: ${why}`)];
  if (service === undefined) return [finding("unit", "note", "posline.service isn't installed: posline runs by hand here")];
  const ports = socket === undefined ? "" : `, posline.socket is ${socket}`;
  const what = `posline.service is ${service}${ports}`;
  if (service === "active" || service === "reloading") return [finding("unit", "ok", what)];
  const isFailing = service === "failed" || service === "activating";
  const cure = isFailing ? "journalctl -u posline -n 50 shows why" : "sudo systemctl enable --now posline.socket posline";
  return [finding("unit", isFailing ? "warn" : "note", what, { cure })];
}

interface LineKnown {
  readonly name: string;
  readonly line: LineConfig;
  readonly config: Config;
  /** What a posline that runs says of itself. */
  readonly told: Told | "none runs" | "no admin port";
}

async function lineFindings({ name, line, config, told }: LineKnown, known: Known): Promise<Finding[]> {
  if (line.path === emulatedPath) return [finding("device", "ok", "the line is emulated: there is no device", { line: name })];
  const found = await findDevice(name, line.path, known.box);
  const standing = standingFindings(name, told);
  if ("findings" in found) return [...found.findings, ...standing, notAsked(name, "there is no device to ask")];
  const { node, device } = found;
  const { box, processes } = known;
  const held = await heldFinding(name, node, box, processes);
  const permission = await permissionFindings(name, node, known);
  const rivals = await rivalFindings(name, node, { device, box, processes });
  const findings = [deviceFinding(name, line.path, node, device), held.finding, ...permission.findings, ...rivals.findings];
  findings.push(...(await tuningFindings(name, node, device, box)));
  findings.push(...standing);
  if (!held.free) {
    const cure = `${await stopWords(node, box, processes)}, then this command again, for a full test`;
    findings.push(notAsked(name, "the device is in use", cure));
  } else if (!permission.mine) findings.push(notAsked(name, "this user may not open the device", "sudo posline doctor"));
  else if (rivals.inUse) findings.push(notAsked(name, "the device is a console"));
  else if (isForTills(name, config)) findings.push(notAskedTill(name, node));
  else findings.push(...(await askLine({ name, config: line, device: node, services: config.services }, box, known.progress)));
  return findings;
}

function notAsked(line: string, why: string, cure?: string): Finding {
  return finding("answer", "skipped", `the terminal isn't asked: ${why}`, { line, ...(cure === undefined ? {} : { cure }) });
}

/** Where all services of a line are reached elsewhere, a till is at its other end: it isn't asked what only a terminal knows. */
function isForTills(line: string, { services }: Config): boolean {
  const here = Object.values(services).filter((service) => service.line === line);
  return here.length > 0 && here.every(({ upstream }) => upstream !== undefined);
}

function notAskedTill(line: string, node: string): Finding {
  const why = "its services have an upstream, so a till is at its other end";
  return notAsked(line, why, `where it is a terminal all the same: posline doctor --line ${quoted(node)}`);
}
