import { adminOfBox } from "../config/admin-target.ts";
import { type Config, emulatedPath } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import { type JsonObject, objectIn } from "../core/json-object.ts";
import { debuggingOf } from "../core/node-debugging.ts";
import { quoted } from "../core/shell-text.ts";
import { lookForHolders } from "../device/holders.ts";
import { killOf, stopUnit } from "../device/open-errors.ts";
import { parseObject } from "../envelope/json.ts";
import type { BoxFacts } from "./accounts.ts";
import { type Finding, finding } from "./finding.ts";
import { type Host, namesIn, nodeOf, readTextAt } from "./host.ts";
import { type ConfiguredPort, configuredPorts, listenersOn, readTcpListeners } from "./ports.ts";
import { type Processes, poslineNameOf, type RunningProcess } from "./processes.ts";

/**
 * The posline that runs with this configuration, as its admin port describes it. A running posline proves its lines clean before each call,
 * so it knows better than a probe from outside.
 */
export interface RunningPosline {
  readonly pid: number;
  /** The systemd service; undefined if a person started posline. */
  readonly unit: string | undefined;
  /** URL of the admin port, with a slash at its end; undefined if posline has none. */
  readonly base: string | undefined;
  /** Answer to /status; undefined if none came. */
  readonly status: JsonObject | undefined;
  /** True if posline answered that the token of the configuration isn't its own. */
  readonly hasOtherToken: boolean;
  /** True if posline was started with an emulated terminal in place of every device. */
  readonly emulated: boolean;
  /** Flags by which its Node opens a debugger, prints or writes by itself, as far as this user may see. */
  readonly debugging: readonly string[];
  /** True if the process stands still until it is told to go on: Ctrl-Z in its terminal, a SIGSTOP, a debugger. */
  readonly stopped: boolean;
}

/**
 * Finds the posline that runs with this configuration, and asks it how it is. Only a process that holds one of its ports or devices
 * counts: another posline on this host has another configuration.
 */
export async function findService(config: Config, { host, processes, units }: BoxFacts): Promise<RunningPosline | undefined> {
  const holders = await pidsHolding(config, host, processes);
  const ports = configuredPorts(config).map(({ port }) => port);
  const isSocketOurs =
    units.socket === "active" && units.listens.some((listen) => ports.some((port) => listen.endsWith(`:${port}`)));
  const candidates = processes.find((running) => {
    const unit = poslineNameOf(running);
    return unit === "posline.service" || (unit === "posline" && running.args.includes("serve"));
  });
  for (const running of candidates) {
    const isUnit = poslineNameOf(running) === "posline.service";
    // Sockets of another user's process may be hidden; then the unit's sockets tell.
    if (holders.has(running.pid) || (isUnit && isSocketOurs && (await isHidden(running, host)))) {
      const asked = await askService(isUnit ? (config.admin ?? adminDefaults) : config.admin, host);
      const emulated = running.args.includes("--emulated");
      const state = (await readTextAt(host.proc, String(running.pid), "status")) ?? "";
      const stopped = /^State:\s+T/im.test(state);
      const debugging = await debuggingIn(running, host);
      return { pid: running.pid, unit: isUnit ? running.unit : undefined, emulated, debugging, stopped, ...asked };
    }
  }
  return undefined;
}

async function debuggingIn({ pid, args }: RunningProcess, { proc }: Host): Promise<readonly string[]> {
  const text = (await readTextAt(proc, String(pid), "environ")) ?? "";
  const pairs = text.split("\0").map((pair) => [pair.replace(/=.*/s, ""), pair.replace(/^[^=]*=/, "")]);
  const programAt = args.findIndex((arg, n) => n > 0 && !arg.startsWith("-"));
  return debuggingOf(Object.fromEntries(pairs), args.slice(1, Math.max(1, programAt)));
}

/** The processes that hold a port or a device of the configuration, as far as this user may see. */
async function pidsHolding(config: Config, host: Host, processes: Processes): Promise<ReadonlySet<number>> {
  const pids = new Set<number>();
  const listening = await readTcpListeners(host);
  for (const wanted of configuredPorts(config)) {
    // A posline there may be the one that a gateway asks, which has a configuration of its own.
    if (wanted.upstream !== undefined) continue;
    for (const { inode } of listenersOn(wanted, listening)) {
      for (const { pid } of await processes.holding(inode)) pids.add(pid);
    }
  }
  const nodes = await Promise.all(Object.values(config.lines).map(({ path }) => nodeOf(path, host)));
  const there = nodes.filter((node) => node !== undefined);
  for (const { holders } of (await lookForHolders(there, host.proc)).values()) for (const { pid } of holders) pids.add(pid);
  return pids;
}

const isHidden = async ({ pid }: RunningProcess, { proc }: Host) => (await namesIn(proc, String(pid), "fd")).length === 0;

/** @param admin Where the admin port listens: the package's socket unit has the usual port, whatever the file says. */
async function askService(
  admin: Config["admin"],
  host: Host,
): Promise<Pick<RunningPosline, "base" | "status" | "hasOtherToken">> {
  if (admin === undefined) return { base: undefined, status: undefined, hasOtherToken: false };
  const { url: base, headers } = adminOfBox(admin);
  const answer = await host.httpGet(`${base}status`, headers);
  const status = answer?.status === 200 ? parseObject(answer.body) : undefined;
  return { base, status, hasOtherToken: answer?.status === 401 };
}

/** True if the running posline says that a port is its own: the socket's owner may be hidden from this user. */
export function saysItHas({ base, status }: RunningPosline, { name, port, service }: ConfiguredPort): boolean {
  if (status === undefined) return false;
  if (service === undefined) return name === "admin" && base !== undefined && Number(new URL(base).port) === port;
  return objectIn(objectIn(status["services"])[service])["port"] === port;
}

/** True if the running posline says that it writes its journal into a folder. */
export function saysItWrites({ status }: RunningPosline, folder: string): boolean {
  const journal = objectIn(status?.["journal"]);
  return journal["folder"] === folder && journal["state"] === "ok";
}

/** Findings about the whole service: whether it answers, its journal, its log, and its Node. */
export function serviceFindings(service: RunningPosline | undefined): Finding[] {
  return service === undefined ? [] : [...answerFindings(service), ...debuggingFindings(service)];
}

function debuggingFindings({ pid, unit, debugging }: RunningPosline): Finding[] {
  if (debugging.length === 0) return [];
  const what = `posline (process ${pid}) was started with ${debugging.join(", ")}`;
  const cause = "by that Node opens a debugger, prints or writes files, beside what posline closes";
  const ofUnit = "take it out (systemctl cat posline; systemctl show-environment), then sudo systemctl restart posline";
  return [finding("node", "warn", what, { cause, cure: unit === undefined ? "start it again without that" : ofUnit })];
}

function answerFindings(service: RunningPosline): Finding[] {
  const { pid, unit, base, status, hasOtherToken, stopped } = service;
  const name = `posline (process ${pid})`;
  if (stopped) {
    const cause = "Ctrl-Z in its terminal, or a SIGSTOP";
    return [finding("service", "bad", `${name} stands still: no call is answered`, { cause, cure: `sudo kill -CONT ${pid}` })];
  }
  const restart = unit === undefined ? "start it again" : "sudo systemctl restart posline";
  if (base === undefined) {
    const cure = `sudo posline doctor --config FILE, with the file that it was started with; or add "admin": {} to that file, then ${restart}`;
    const what = `${name} runs, but this configuration names no admin port, so its status isn't known`;
    return [finding("service", "note", what, { cure })];
  }
  if (hasOtherToken) {
    const what = `${name} runs, and refuses the token of this configuration, so its status isn't known (${base}status)`;
    const cause = "the token was changed since it was started, or it was started with another configuration";
    return [finding("service", "warn", what, { cause, cure: restart })];
  }
  if (status === undefined) {
    const cure =
      unit === undefined
        ? "look at its log, on its standard output"
        : "systemctl status posline; sudo journalctl -u posline -n 50";
    return [finding("service", "bad", `${name} runs, and doesn't answer on its admin port (${base}status)`, { cure })];
  }
  const ready = status["ready"] === true ? "is ready" : "isn't ready";
  const findings = [finding("service", status["ready"] === true ? "ok" : "warn", `${name} ${ready} (${base}readyz)`)];
  const journal = objectIn(status["journal"]);
  const unknown = objectIn(journal["unknown"])["total"];
  if (typeof unknown === "number" && unknown > 0) {
    const operations = `${unknown} ${unknown === 1 ? "operation" : "operations"}`;
    const cure = "sudo posline journal --unknown lists them: query the terminal for each before selling again";
    findings.push(finding("unknown", "warn", `the outcome of ${operations} is unknown`, { cure }));
  }
  const state = journal["state"];
  if (typeof state === "string" && state !== "ok" && state !== "off") {
    const level = journal["onFailure"] === "refuse" ? "bad" : "warn";
    findings.push(finding("journal", level, `the journal of money fails: ${cut(state)}`, { cure: "df -h; sudo dmesg | tail" }));
  }
  return [...findings, ...logFindings(status["log"])];
}

/** Findings about the service's log: lines that were dropped from it are found nowhere. */
function logFindings(log: unknown): Finding[] {
  const { state, dropped } = objectIn(log);
  const count = objectIn(dropped)["reader"];
  const isMissing = typeof count === "number" && count > 0;
  const lines = `${String(count)} log ${count === 1 ? "line was" : "lines were"} dropped since posline started`;
  if (typeof state === "string" && state !== "ok")
    return [finding("log", "warn", cut(state), isMissing ? { cause: lines } : {})];
  return isMissing ? [finding("log", "note", `${lines}: its reader took none, or its disk was full`)] : [];
}

/** Milliseconds that a recovery by silence may take beyond that silence. */
const recoveryMarginMs = 5_000;

/** States in which a request is sent at once. */
const usable = ["idle", "awaiting", "open"];

/** A line as the configuration has it. */
interface ConfiguredLine {
  readonly name: string;
  readonly path: string;
  /** The node of the device that the path means now. */
  readonly node?: string;
  /** Milliseconds of silence that may have to prove the line clean. */
  readonly lateReplyMs: number;
}

/** Findings about a line as the running service describes it; none if the service doesn't know the line. */
export function lineStateFindings(configured: ConfiguredLine, service: RunningPosline | undefined): Finding[] {
  const { name: line } = configured;
  if (service === undefined) return [];
  const shown = objectIn(objectIn(service.status?.["lines"])[line]);
  const device = objectIn(shown["device"]);
  if (service.emulated || device["path"] === emulatedPath) return [emulatedFinding(line, service)];
  if (typeof shown["state"] !== "string") return [];
  if (typeof device["path"] === "string" && !isSameDevice(device, configured))
    return [otherDeviceFinding(configured, device["path"], service)];
  const { state } = shown;
  const reason = typeof shown["reason"] === "string" && shown["reason"] !== "" ? ` (${cut(shown["reason"])})` : "";
  const what = `posline (process ${service.pid}) says: line ${line} is ${cut(state)}${reason}`;
  // A line that is down has no device, so nobody is asked, and stopping posline would free none.
  if (state === "down") {
    const cure = "see what is said of the device: posline tries to open it once a second by itself";
    return [finding("service", "bad", what, { line, cure })];
  }
  const unheard = unheardFindings(line, service);
  if (usable.includes(state)) return [...unheard, finding("service", "ok", what, { line })];
  if (unheard.length > 0) return [...unheard, finding("service", "note", what, { line })];
  const leftMs =
    configured.lateReplyMs + recoveryMarginMs - (typeof shown["sinceMs"] === "number" ? shown["sinceMs"] : Infinity);
  if (state === "recovering" && leftMs > 0) {
    const cause = "after each start and each missing answer posline proves the line clean: calls wait until then";
    const cure = `wait ${Math.ceil(leftMs / 1_000)} s, and run this command again`;
    return [finding("service", "warn", what, { line, cause, cure })];
  }
  const stop = service.unit === undefined ? killOf([service.pid]) : stopUnit(service.unit);
  const cure = `${stop ?? "stop it"}; sudo posline doctor --line ${quoted(line)} then tests the terminal itself`;
  return [finding("service", "bad", what, { line, cure })];
}

/** The finding for a running posline with an emulated terminal: tills are answered, and no terminal hears of it. */
function emulatedFinding(line: string, { pid, unit }: RunningPosline): Finding {
  const what = `posline (process ${pid}) answers with an emulated terminal in place of line ${line}: no money moves`;
  const stop = killOf([pid]) ?? "stop it";
  // Restarting the unit would start it with the flag again.
  const ofUnit =
    "take --emulated out of its ExecStart (systemctl cat posline shows which file has it), " +
    "then sudo systemctl daemon-reload && sudo systemctl restart posline";
  const cure = unit === undefined ? `${stop}, and start it again without --emulated` : ofUnit;
  return finding("service", "bad", what, { line, cure });
}

/** True if both paths mean one device: a by-id name and the device that it leads to do. */
function isSameDevice(device: JsonObject, { path, node }: ConfiguredLine): boolean {
  return device["path"] === path || (node !== undefined && device["node"] === node);
}

/** The finding for a line on another device than the configured one: its state says nothing of the configured device. */
function otherDeviceFinding({ name, path }: ConfiguredLine, theirs: string, { pid, unit }: RunningPosline): Finding {
  const what = `posline (process ${pid}) has line ${name} on ${cut(theirs)}, and not on ${path}`;
  const cause = "the configuration was changed since it was read, or it was started with another one";
  const cure = unit === undefined ? `${killOf([pid]) ?? "stop it"}, and start it again` : "sudo systemctl reload posline";
  return finding("service", "warn", what, { line: name, cause, cure });
}

/** The services of a line that the running posline does not hear, one finding a reason. Its line may be clean all the same. */
function unheardFindings(line: string, { pid, status }: RunningPosline): Finding[] {
  const byReason = new Map<string, { readonly services: string[]; readonly cure: string | undefined }>();
  for (const [service, each] of Object.entries(objectIn(status?.["services"]))) {
    const heard = objectIn(objectIn(each)["heard"]);
    if (objectIn(each)["line"] !== line || heard["state"] !== "unheard") continue;
    const reason = typeof heard["reason"] === "string" ? cut(heard["reason"]) : `${service} is not heard`;
    const cure = typeof heard["cure"] === "string" ? cut(heard["cure"]) : undefined;
    const found = byReason.get(reason);
    if (found === undefined) byReason.set(reason, { services: [service], cure });
    else found.services.push(service);
  }
  return [...byReason].map(([reason, { services, cure }]) => {
    const cause = `posline (process ${pid}) says so of ${services.join(", ")}`;
    return finding("heard", "bad", reason, { line, cause, ...(cure === undefined ? {} : { cure }) });
  });
}

/** Characters of the service's own words that are shown. */
const cut = (text: string) => text.slice(0, 600);
