import { lookup } from "node:dns/promises";
import type { TcpAddress } from "../config/device-name.ts";
import { canonicalAddress } from "../core/address.ts";
import { noNetwork } from "../device/open-errors.ts";
import type { BoxFacts } from "./accounts.ts";
import { causeFinding, type Finding, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { readTcpSockets } from "./ports.ts";
import { poslineNameOf } from "./processes.ts";
import type { SystemdUnits } from "./units.ts";

/**
 * A line over TCP as the doctor looks at it: a device's node, lock, owner and settings are the far end's own. What this box knows is who of
 * its processes is connected there.
 */

/** The finding that names the far end. */
export function tcpFinding(line: string, path: string): Finding {
  return finding("device", "ok", `${path}: a line over the network, which has no device here and no lock`, { line });
}

/** Whether a process of this box is connected to the far end, which mostly takes one connection at a time. */
export async function tcpHolderFinding(
  line: string,
  address: TcpAddress,
  { host, processes }: BoxFacts,
): Promise<{ readonly finding: Finding; readonly isFree: boolean }> {
  const inodes = await connectedTo(address, host);
  if (inodes.length === 0) {
    const what = "no process of this box is connected to it; other boxes can't be seen from here";
    return { finding: finding("holder", "ok", what, { line }), isFree: true };
  }
  const found = (await Promise.all(inodes.map((inode) => processes.holding(inode)))).flat();
  const stranger = found.find((running) => poslineNameOf(running) === undefined);
  const names = [...new Set(found.map(({ pid, name }) => `process ${pid} (${name})`))].join(", ");
  if (stranger !== undefined) {
    const cure = `sudo kill ${stranger.pid}, unless it is meant to have the terminal`;
    return { finding: finding("holder", "bad", `connected to it: ${names}`, { line, cure }), isFree: false };
  }
  const what = names === "" ? "another user's process is connected to it" : `posline is connected to it: ${names}`;
  return { finding: finding("holder", "ok", what, { line }), isFree: false };
}

/** Whether the service's unit lets it connect to the far end; nothing where there is no such unit. */
export async function reachFindings(line: string, path: string, { host }: TcpAddress, units: SystemdUnits): Promise<Finding[]> {
  const addresses = await lookedUp(host);
  if (units.service === undefined || addresses.length === 0) return [];
  if (!addresses.some(units.mayReach)) return [causeFinding("permission", "bad", noNetwork(path), { line })];
  return [finding("permission", "ok", "posline.service may connect to it", { line })];
}

/** The addresses of a host, without the zones that IPv6 has for its links. */
async function lookedUp(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => canonicalAddress(address.replace(/%.*/, "")));
}

/** The sockets of this box that are connected to an address, by inode. */
async function connectedTo({ host: name, port }: TcpAddress, host: Host): Promise<readonly string[]> {
  const addresses = new Set(await lookedUp(name));
  const connected = await readTcpSockets(host, "remote");
  return connected.flatMap((each) => (each.port === port && addresses.has(each.address) ? [each.inode] : []));
}
