import { access, constants, readFile, realpath, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { codeOf, messageOf } from "../core/error-code.ts";
import { type Holder, holdersOf, lookForHolders } from "./holders.ts";
import { hasOwnId, usbNameOf } from "./identity.ts";
import { type Cause, cannotOpen, heldBy, noDevice, noPermission, permissionCures, serviceUser } from "./open-errors.ts";
import { aliases, driverOf, listTtys, type Trees, type UsbIdentity, usbTtyOf } from "./sysfs.ts";

/** The serial devices of this box, with all that can be known without opening one. */

/** Whether this user may open the device. */
export interface DeviceAccess {
  readonly granted: boolean;
  /** The group that owns the device: its name, or its number if it has none. */
  readonly group: string | undefined;
  /** How to get the access, if it isn't granted: a command, and what to do after it. */
  readonly cure: string | undefined;
}

export interface Device {
  /** The kernel's name, which may change with every replug: `/dev/ttyUSB0`. */
  readonly path: string;
  /** Names by the adapter's identity, which survive a replug. A name that two equal adapters share is left out. */
  readonly byId: readonly string[];
  /** Names by the socket it is plugged into. */
  readonly byPath: readonly string[];
  /** `usb:VID:PID[:SERIAL]`, if that means this device and no other that is there. */
  readonly usbName: string | undefined;
  readonly driver: string | undefined;
  readonly usb: UsbIdentity | undefined;
  readonly holders: readonly Holder[];
  /** True if this user can't see other users' processes, so that finding no holder proves nothing. */
  readonly holdersHidden: boolean;
  readonly access: DeviceAccess;
}

/** Folders to look in; the tests build such trees. */
export interface Places extends Trees {
  readonly proc?: string;
  /** The table of groups. */
  readonly groups?: string;
  /** The login name that the cure is written for. */
  readonly user?: string;
  /** Rejects when the path may not be read and written. */
  readonly access?: (path: string) => Promise<void>;
}

/** Lists the serial devices that are really there, by path. */
export async function listDevices(places: Places = {}): Promise<Device[]> {
  const { sys = "/sys", dev = "/dev", proc = "/proc" } = places;
  const ttys = await listTtys(sys);
  const paths = ttys.map(({ name }) => join(dev, name));
  const [byId, byPath, holders, usbTtys] = await Promise.all([
    aliases(join(dev, "serial", "by-id")),
    aliases(join(dev, "serial", "by-path")),
    lookForHolders(paths, proc),
    Promise.all(ttys.map(usbTtyOf)),
  ]);
  const onUsb = usbTtys.filter((tty) => tty !== undefined);
  return Promise.all(
    ttys.map(async (tty, index) => {
      const path = join(dev, tty.name);
      const node = await realpath(path).catch(() => path);
      const usbTty = usbTtys[index];
      const held = holders.get(path);
      return {
        path,
        byId: usbTty === undefined || hasOwnId(usbTty, onUsb) ? (byId.get(node) ?? []) : [],
        byPath: byPath.get(node) ?? [],
        usbName: usbTty === undefined ? undefined : usbNameOf(usbTty, onUsb),
        driver: await driverOf(tty),
        usb: usbTty?.usb,
        holders: held?.holders ?? [],
        holdersHidden: held?.hidden ?? true,
        access: await accessTo(path, places),
      };
    }),
  );
}

/** Rejects with the system's reason if this user may not read and write the path. */
export const readAndWrite = (path: string): Promise<void> => access(path, constants.R_OK | constants.W_OK);

/**
 * Whether this user may open the device, and if not, how to get the access. The owning group differs: `dialout` for most, `uucp` or
 * `plugdev` (ttyACM) on some systems. The service doesn't depend on it for USB: its udev rule makes it the owner.
 */
export async function accessTo(path: string, places: Places = {}): Promise<DeviceAccess> {
  const { access: tryAccess = readAndWrite, groups = "/etc/group", user = loginName() } = places;
  const node = await stat(path).catch(() => undefined);
  if (node === undefined) return { granted: false, group: undefined, cure: permissionCures.noNode(path) };
  const table = await readFile(groups, "utf8").catch(() => "");
  const owner = groupOf(node.gid, table);
  const group = owner?.name ?? String(node.gid);
  const denied = (cure: string) => ({ granted: false, group, cure });
  const denial: unknown = await tryAccess(path).then(
    () => undefined,
    (error) => error ?? "denied",
  );
  if (denial === undefined) return { granted: true, group, cure: undefined };
  if (codeOf(denial) === "EPERM") {
    // Owner and mode would have said EACCES: EPERM comes from the list of devices that the unit or the container allows.
    const { unit, container } = permissionCures;
    return denied(user === serviceUser ? unit((node.rdev >>> 8) & 0xfff) : container(path));
  }
  const groupMayUse = (node.mode & 0o060) === 0o060;
  const named = owner !== undefined && node.gid !== 0 && !isNobody(owner.name) && groupMayUse;
  if (user === serviceUser && /tty(?:USB|ACM)\d+$/.test(path)) return denied(permissionCures.rule(path));
  if (!named) {
    const usual = usualGroup(table);
    // Right after plugging in, the node belongs to root alone until udev has seen to it.
    return denied(user === serviceUser ? permissionCures.join(user, usual) : permissionCures.give(path, usual));
  }
  return denied(owner.members.includes(user) ? permissionCures.joined(user, group) : permissionCures.join(user, group));
}

/** The group that a service with users of its own (PrivateUsers) sees in place of all others. */
const isNobody = (group: string) => group === "nogroup" || group === "nobody";

/** The group that owns serial devices on this system. */
function usualGroup(table: string): string {
  const known = ["dialout", "uucp", "plugdev"].find((name) => new RegExp(`^${name}:`, "m").test(table));
  return known ?? "dialout";
}

/** The user's name; `$USER`, for the shell to fill in, if the box doesn't know it. */
function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return "$USER";
  }
}

function groupOf(gid: number, table: string): { name: string; members: string[] } | undefined {
  for (const line of table.split("\n")) {
    const [name, , id, members = ""] = line.split(":");
    if (name !== undefined && id === String(gid)) return { name, members: members.split(",") };
  }
  return undefined;
}

/**
 * Why the system refused a device, with how to fix it. The reason is looked for in the node's owner and in the processes that have it open,
 * so that the log names the very command.
 *
 * serialport's errors have no code, only the system's words in their text.
 */
export async function causeOf(error: unknown, device: string, places: Places = {}): Promise<Cause> {
  const text = messageOf(error);
  if (/ENOENT|No such file|ENODEV|No such device|ENXIO/i.test(text)) return noDevice(device);
  if (/EACCES|EPERM|permission denied|not permitted/i.test(text)) {
    return noPermission(device, (await accessTo(device, places)).cure);
  }
  if (/Cannot lock port|EBUSY|busy/i.test(text)) {
    const holders = await holdersOf(device, places.proc);
    return heldBy(device, holders.find(({ pid }) => pid !== process.pid) ?? holders[0]);
  }
  return cannotOpen(device, text.replace(/^Error:? ?/, ""));
}
