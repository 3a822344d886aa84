import type { Stats } from "node:fs";
import { serviceUser } from "../device/open-errors.ts";
import { type Host, readTextAt } from "./host.ts";
import { type Processes, readProcesses } from "./processes.ts";
import { noUnits, readUnits, type SystemdUnits } from "./units.ts";

/** A user with all groups that it acts with. */
export interface ServiceAccount {
  readonly name: string;
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

/** What is known of the box, read once. */
export interface BoxFacts {
  readonly host: Host;
  readonly processes: Processes;
  readonly units: SystemdUnits;
  /** The service's; undefined if the package isn't installed. */
  readonly account: ServiceAccount | undefined;
}

/** @param isInstalled Whether the installed configuration is looked at: what the units do says nothing of another one. */
export async function readBox(host: Host, isInstalled = true): Promise<BoxFacts> {
  const [processes, units] = await Promise.all([readProcesses(host), isInstalled ? readUnits(host) : noUnits]);
  return { host, processes, units, account: await serviceAccount(host, units) };
}

/** The user that the service runs as; undefined where there is none, because the package isn't installed. */
export async function serviceAccount({ etc }: Host, { groups: extra }: SystemdUnits): Promise<ServiceAccount | undefined> {
  const users = (await readTextAt(etc, "passwd")) ?? "";
  const groups = (await readTextAt(etc, "group")) ?? "";
  const [, uid, gid] = new RegExp(`^${serviceUser}:[^:]*:(\\d+):(\\d+):`, "m").exec(users) ?? [];
  if (uid === undefined || gid === undefined) return undefined;
  const gids = new Set([Number(gid)]);
  for (const line of groups.split("\n")) {
    const [name = "", , id, members = ""] = line.split(":");
    if (members.split(",").includes(serviceUser) || extra.includes(name)) gids.add(Number(id));
  }
  return { name: serviceUser, uid: Number(uid), gids };
}

/** Whether a user may read and write what is there, by owner, group and mode. Access lists aren't looked at. */
export function mayUse({ uid, gids }: ServiceAccount, { uid: owner, gid, mode }: Stats): boolean {
  if (uid === 0) return true;
  const bits = uid === owner ? mode >> 6 : gids.has(gid) ? mode >> 3 : mode;
  return (bits & 0o6) === 0o6;
}
