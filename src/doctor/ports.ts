import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { addressesOf, canonicalAddress } from "../core/address.ts";
import type { ServiceName } from "../core/call.ts";
import { urlHost } from "../core/url-host.ts";
import { killOf } from "../device/open-errors.ts";
import type { BoxFacts } from "./accounts.ts";
import { type Finding, finding } from "./finding.ts";
import { type Host, readTextAt } from "./host.ts";
import { poslineNameOf, poslineToolOf } from "./processes.ts";
import type { SystemdUnits } from "./units.ts";

/** A socket that listens, as the kernel lists it. */
export interface BoundPort {
  /** The address as the configuration writes it: `127.0.0.1`, `::1`, `0.0.0.0`; `*` for all of IPv6, which mostly means all of IPv4 too. */
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

interface PortFacts extends BoxFacts {
  /** The process id of the posline that says on its admin port that a port is its own. */
  readonly saysItHas: (wanted: ConfiguredPort) => number | undefined;
}

/** Whether the ports of the configuration can be had, or who has them. */
export async function portFindings(config: Config, facts: PortFacts): Promise<Finding[]> {
  const { host, units } = facts;
  const listening = await readTcpListeners(host);
  const findings: Finding[] = [];
  for (const wanted of configuredPorts(config)) {
    const { host: listenHost, port, service } = wanted;
    const more = service === undefined ? {} : { service };
    const taken = listenersOn(wanted, listening);
    const where = wordsOf(wanted);
    if (listening.length === 0 && (await readTextAt(host.proc, "net", "tcp")) === undefined) {
      findings.push(finding("port", "skipped", `${where}: the kernel's table of sockets can't be read`, more));
    } else if (taken.length === 0) findings.push(freeFinding(where, { host: listenHost, port }, units, more));
    else {
      const all = await Promise.all(taken.map((each) => takenFinding(wanted, each, facts)));
      const strangers = all.filter(({ level }) => level !== "ok");
      // A program that has several of the addresses is named once.
      const named = strangers.filter(({ cure }, at) => strangers.findIndex((each) => each.cure === cure) === at);
      findings.push(...(named.length > 0 ? named : all.slice(0, 1)));
    }
  }
  return findings;
}

/** A port of the configuration. */
export interface ConfiguredPort {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly service?: ServiceName;
  /** A gateway asks the service, and has no port for it. */
  readonly upstream?: string | undefined;
}

export function configuredPorts({ services, admin }: Config): readonly ConfiguredPort[] {
  const wanted: ConfiguredPort[] = [];
  for (const [service, { host, port, upstream }] of Object.entries(services))
    wanted.push({ name: service, host, port, service, upstream });
  if (admin !== undefined) wanted.push({ name: "admin", ...admin });
  return wanted.filter(({ port }) => port !== 0);
}

/** The sockets that listen where a port of the configuration should: each program tries the addresses of `localhost` in its own order. */
export function listenersOn({ host, port }: ConfiguredPort, listening: readonly BoundPort[]): readonly BoundPort[] {
  return listening.filter((each) => each.port === port && overlaps(each.address, host));
}

type ServiceDetail = { readonly service?: ServiceName };

/** The finding for a port on which nothing listens. If posline's socket is active, its unit doesn't list that port. */
function freeFinding(
  where: string,
  { host, port }: { host: string; port: number },
  units: SystemdUnits,
  more: ServiceDetail,
): Finding {
  if (units.socket !== "active") return finding("port", "ok", `${where} on ${host} is free`, more);
  const cause = `posline.socket listens on ${units.listens.join(", ")}, and the service has no network of its own to listen on more`;
  const setting = `[Socket] ${addressesOf(host)
    .map((each) => `ListenStream=${urlHost(each)}:${port}`)
    .join(" and ")}`;
  const cure = `sudo systemctl edit posline.socket: ${setting}, then sudo systemctl restart posline.socket posline`;
  return finding("port", "bad", `${where} on ${host}: nothing listens there, though posline.socket is active`, {
    ...more,
    cause,
    cure,
  });
}

const wordsOf = ({ name, port }: ConfiguredPort) => `${name}'s port ${port}`;

async function takenFinding(
  wanted: ConfiguredPort,
  { address, port, inode }: BoundPort,
  { processes, units, saysItHas }: PortFacts,
): Promise<Finding> {
  const where = wordsOf(wanted);
  const more: ServiceDetail = wanted.service === undefined ? {} : { service: wanted.service };
  const holders = await processes.holding(inode);
  const ours = holders.find((running) => poslineNameOf(running) !== undefined);
  if (ours !== undefined) return finding("port", "ok", `${where} is posline's (process ${ours.pid})`, more);
  const isSocket = units.listens.some((listen) => listen.endsWith(`:${port}`)) && units.socket === "active";
  if (isSocket && holders.every(({ pid }) => pid === 1)) {
    return finding("port", "ok", `${where} is held by systemd for posline (posline.socket)`, more);
  }
  // systemd holds the sockets of its units beside the process that it gave them to.
  const stranger = holders.find(({ pid }) => pid !== 1) ?? holders[0];
  const taken = `${where} on ${address} is taken`;
  if (wanted.upstream !== undefined) {
    // A gateway's port is rightly held by the upstream, if that is on this box.
    const cause = `posline gateway asks ${wanted.service} at ${wanted.upstream}, and needs no port for it; posline serve would need this one`;
    return finding("port", "note", stranger === undefined ? taken : `${taken} by process ${stranger.pid} (${stranger.name})`, {
      ...more,
      cause,
    });
  }
  if (stranger === undefined) {
    const pid = saysItHas(wanted);
    if (pid !== undefined) return finding("port", "ok", `${where} is posline's (process ${pid}), as it says`, more);
    const cause = "by another user's process, which this user can't see";
    return finding("port", "bad", taken, { ...more, cause, cure: "sudo posline doctor shows which: it may be posline's own" });
  }
  const { pid, name, unit } = stranger;
  const tool = poslineToolOf(stranger);
  const cause = tool === undefined ? {} : { cause: `it is posline ${tool}, and no bridge` };
  const kill = killOf([pid]) ?? "systemctl list-sockets shows whose it is: stop that unit";
  const end = `${kill}, or configure another port`;
  // A unit of cron, sshd or a supervisor has more to do than this one program. Only the unit's own main program, its first, may be stopped
  // by its unit.
  const ofUnit =
    processes.find((each) => each.unit === unit)[0]?.pid === pid
      ? `sudo systemctl disable --now ${unit}`
      : `systemctl status ${pid} shows what started it, and may do so again: ${end}`;
  const own = unit === undefined ? end : ofUnit;
  // docker-proxy belongs to Docker's unit with all containers, and goes with the one container that it listens for.
  const cure = name === "docker-proxy" ? `sudo docker ps --filter publish=${port} shows the container: stop that one` : own;
  return finding("port", "bad", `${taken} by process ${pid} (${name})`, { ...more, ...cause, cure });
}

/** Listening sockets, IPv4 and IPv6. */
export const readTcpListeners = (host: Host) => readTcpSockets(host, "local");

/** Sockets of IPv4 and IPv6: those that listen, by their own end, or those that are connected, by their far one. */
export async function readTcpSockets({ proc }: Host, end: "local" | "remote"): Promise<readonly BoundPort[]> {
  const state = { local: "0A", remote: "01" }[end];
  const texts = await Promise.all(["tcp", "tcp6"].map((table) => readTextAt(proc, "net", table)));
  // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
  const row = /^\s*\d+: (?<local>\S+) (?<remote>\S+) (?<state>\S+) \S+ \S+ \S+\s+\d+\s+\d+ (?<inode>\d+)/gm;
  return [...texts.join("\n").matchAll(row)].flatMap(({ groups = {} }) => {
    const [hex = "", port = ""] = (groups[end] ?? "").split(":");
    if (groups["state"] !== state) return [];
    return [{ address: addressIn(hex), port: Number.parseInt(port, 16), inode: groups["inode"] ?? "" }];
  });
}

/** The kernel writes an address as words of four bytes in its own order, which on what posline runs on is the lowest first. */
function addressIn(hex: string): string {
  if (/^0{32}$/.test(hex)) return "*";
  const bytes = Buffer.from(hex, "hex");
  for (let word = 0; word < bytes.length; word += 4) bytes.subarray(word, word + 4).reverse();
  if (bytes.length === 4) return bytes.join(".");
  return canonicalAddress(Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(":"));
}

/** Whether two listeners on these addresses would be in each other's way. */
function overlaps(address: string, host: string): boolean {
  if (address === "*" || host === "::") return true;
  if (address === "0.0.0.0") return isIP(host) !== 6;
  if (host === "0.0.0.0") return isIP(address) === 4;
  if (isIP(host) === 0) return address === "127.0.0.1" || address === "::1";
  return address === canonicalAddress(host);
}
