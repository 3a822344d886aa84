import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { quoted } from "../core/shell-text.ts";
import { parseObject } from "../envelope/json.ts";
import { type Finding, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { type Processes, poslineNameOf } from "./processes.ts";

/**
 * What a posline that runs says of itself on its admin port. It proves its lines clean before each call, so it knows better than
 * a probe from outside.
 */
export interface ServiceStatus {
  /** Where it was asked. */
  readonly base: string;
  /** What it answered to /status; undefined when it didn't answer. */
  readonly status: JsonObject | undefined;
}

/** Asks the posline that runs, if one does; a gateway isn't asked, since its admin port is another configuration's. */
export async function readServiceStatus(
  { admin }: Config,
  host: Host,
  processes: Processes,
): Promise<ServiceStatus | "none runs" | "no admin port"> {
  const runs = processes.find((running) => {
    const unit = poslineNameOf(running);
    return unit === "posline.service" || (unit === "posline" && running.args.includes("serve"));
  });
  if (runs.length === 0) return "none runs";
  // The package's socket unit has the usual port, whatever the file says.
  const listening = admin ?? (runs.some((running) => poslineNameOf(running) === "posline.service") ? adminDefaults : undefined);
  if (listening === undefined) return "no admin port";
  const address = listening.host === "0.0.0.0" ? "127.0.0.1" : listening.host === "::" ? "::1" : listening.host;
  const base = `http://${isIP(address) === 6 ? `[${address}]` : address}:${listening.port}`;
  const answer = await host.httpGet(`${base}/status`);
  return { base, status: answer?.status === 200 ? parseObject(answer.body) : undefined };
}

/** What concerns the whole service: that it answers, and its journal of money. */
export function serviceFindings(running: ServiceStatus | "none runs" | "no admin port"): Finding[] {
  if (running === "none runs") return [];
  if (running === "no admin port") {
    const cure = 'add "admin": {} to the configuration, then sudo systemctl restart posline';
    return [finding("service", "note", "posline runs, and can't be asked how it does: it has no admin port", { cure })];
  }
  const { base, status } = running;
  if (status === undefined) {
    const cure = "systemctl status posline; journalctl -u posline -n 50";
    return [finding("service", "bad", `posline runs, and doesn't answer on its admin port (${base}/status)`, { cure })];
  }
  const ready = status["ready"] === true ? "is ready" : "isn't ready";
  const findings = [finding("service", status["ready"] === true ? "ok" : "warn", `posline ${ready} (${base}/readyz)`)];
  const journal = isObject(status["journal"]) ? status["journal"] : {};
  const unknown = isObject(journal["unknown"]) ? journal["unknown"]["total"] : 0;
  if (typeof unknown === "number" && unknown > 0) {
    const operations = `${unknown} ${unknown === 1 ? "operation" : "operations"}`;
    const cure = "sudo posline journal --unknown lists them: ask the terminal for each before selling it again";
    findings.push(finding("unknown", "warn", `nobody knows what became of ${operations}`, { cure }));
  }
  const state = journal["state"];
  if (typeof state === "string" && state !== "ok" && state !== "off") {
    const level = journal["onFailure"] === "refuse" ? "bad" : "warn";
    findings.push(finding("journal", level, `the journal of money fails: ${cut(state)}`, { cure: "df -h; dmesg | tail" }));
  }
  return findings;
}

/** States in which a request is sent at once. */
const usable = ["idle", "awaiting", "open"];

/** How the service says that a line stands; none when it doesn't know the line. */
export function lineStateFindings(line: string, running: ServiceStatus | "none runs" | "no admin port"): Finding[] {
  if (typeof running === "string") return [];
  const lines = running.status?.["lines"];
  const stands = isObject(lines) ? lines[line] : undefined;
  if (!isObject(stands) || typeof stands["state"] !== "string") return [];
  const { state } = stands;
  const reason = typeof stands["reason"] === "string" && stands["reason"] !== "" ? ` (${cut(stands["reason"])})` : "";
  const what = `the service says: line ${line} is ${cut(state)}${reason}`;
  if (usable.includes(state)) return [...silentFindings(line, running), finding("service", "ok", what, { line })];
  const cure = `sudo systemctl stop posline.socket posline; posline doctor --line ${quoted(line)} then asks the terminal itself`;
  return [finding("service", "bad", what, { line, cure })];
}

/** The services of a line that the posline that runs does not hear. Its line may be clean all the same. */
function silentFindings(line: string, running: ServiceStatus): Finding[] {
  const services = running.status?.["services"];
  if (!isObject(services)) return [];
  return Object.entries(services).flatMap(([service, shown]) => {
    const heard = isObject(shown) && shown["line"] === line ? shown["heard"] : undefined;
    if (!isObject(heard) || heard["state"] !== "unheard") return [];
    const { reason, cure } = heard;
    const why = typeof reason === "string" ? `: ${cut(reason)}` : "";
    const more = typeof cure === "string" ? { line, cure: cut(cure) } : { line };
    return [finding("heard", "bad", `the service says: ${service} on line ${line} is not heard${why}`, more)];
  });
}

/** Characters of the service's own words that are shown. */
const cut = (text: string) => text.slice(0, 600);
