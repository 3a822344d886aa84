import { access, constants, readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Holder, lookForHolders } from "./holders.ts";

/**
 * The serial devices of this box, read from sysfs. Nothing is opened: opening raises DTR, which resets some terminals, and
 * changes the settings of a line that another process is using.
 */

/** What the adapter says of itself over USB. */
export interface UsbIdentity {
  /** Four hex digits. */
  readonly vendorId: string;
  readonly productId: string;
  readonly serialNumber: string | undefined;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
}

/** Whether this user may open the device. */
export interface DeviceAccess {
  readonly granted: boolean;
  /** The group that owns the device: its name, or its number where it has none. */
  readonly group: string | undefined;
  /** What mends it, when it isn't granted: a command, and what to do after it. */
  readonly cure: string | undefined;
}

export interface Device {
  /** The kernel's name, which may change with every replug: `/dev/ttyUSB0`. */
  readonly path: string;
  /** Names by the adapter's identity, which survive a replug; equal for two adapters without a serial number. */
  readonly byId: readonly string[];
  /** Names by the socket it is plugged into. */
  readonly byPath: readonly string[];
  readonly driver: string | undefined;
  readonly usb: UsbIdentity | undefined;
  readonly holders: readonly Holder[];
  /** True when this user can't see other users' processes, so that no holder is no proof. */
  readonly holdersHidden: boolean;
  readonly access: DeviceAccess;
}

/** Where to look; the tests build such trees. */
export interface Places {
  readonly sys?: string;
  readonly dev?: string;
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
  const folder = join(sys, "class", "tty");
  const entries = await readdir(folder).catch(() => []);
  const hardware = await Promise.all(entries.map(async (name) => ((await isHardware(join(folder, name))) ? name : undefined)));
  const names = hardware.filter((name) => name !== undefined);
  names.sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const paths = names.map((name) => join(dev, name));
  const [byId, byPath, holders] = await Promise.all([
    aliases(join(dev, "serial", "by-id")),
    aliases(join(dev, "serial", "by-path")),
    lookForHolders(paths, proc),
  ]);
  return Promise.all(
    paths.map(async (path) => {
      const device = await realpath(join(folder, basename(path), "device"));
      const node = await realpath(path).catch(() => path);
      const held = holders.get(path);
      return {
        path,
        byId: byId.get(node) ?? [],
        byPath: byPath.get(node) ?? [],
        driver: await driverOf(device),
        usb: await usbOf(device),
        holders: held?.holders ?? [],
        holdersHidden: held?.hidden ?? true,
        access: await accessTo(path, places),
      };
    }),
  );
}

/** Virtual terminals have no device behind them; a serial slot without a chip has one of type 0 (PORT_UNKNOWN). */
async function isHardware(entry: string): Promise<boolean> {
  const device = await stat(join(entry, "device")).catch(() => undefined);
  return device !== undefined && (await attribute(entry, "type")) !== "0";
}

async function attribute(folder: string, name: string): Promise<string | undefined> {
  const text = await readFile(join(folder, name), "utf8").catch(() => "");
  return text.trim() || undefined;
}

const linkName = (path: string) =>
  readlink(path).then(
    (target) => basename(target),
    () => undefined,
  );

/** The folder itself and those above it, up to the root of the devices. */
function* upwards(folder: string): Generator<string> {
  for (let at = folder; basename(at) !== "devices" && dirname(at) !== at; at = dirname(at)) yield at;
}

/** The first driver above the tty: newer kernels put their own nodes (serial-base) between a chip and its tty. */
async function driverOf(device: string): Promise<string | undefined> {
  for (const folder of upwards(device)) {
    const driver = await linkName(join(folder, "driver"));
    if (driver !== undefined && (await linkName(join(folder, "subsystem"))) !== "serial-base") return driver;
  }
  return undefined;
}

async function usbOf(device: string): Promise<UsbIdentity | undefined> {
  for (const folder of upwards(device)) {
    const vendorId = await attribute(folder, "idVendor");
    if (vendorId === undefined) continue;
    return {
      vendorId,
      productId: (await attribute(folder, "idProduct")) ?? "",
      serialNumber: await attribute(folder, "serial"),
      manufacturer: await attribute(folder, "manufacturer"),
      product: await attribute(folder, "product"),
    };
  }
  return undefined;
}

/** The names in a folder of links, by the node they lead to. */
async function aliases(folder: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const name of (await readdir(folder).catch(() => [])).sort()) {
    const path = join(folder, name);
    const node = await realpath(path).catch(() => undefined);
    if (node !== undefined) found.set(node, [...(found.get(node) ?? []), path]);
  }
  return found;
}

const readAndWrite = (path: string) => access(path, constants.R_OK | constants.W_OK);

/** Whether this user may open the device, and if not, what mends it. */
export async function accessTo(path: string, places: Places = {}): Promise<DeviceAccess> {
  const { access: tryAccess = readAndWrite, groups = "/etc/group", user = loginName() } = places;
  const node = await stat(path).catch(() => undefined);
  if (node === undefined) {
    return { granted: false, group: undefined, cure: `there is no node ${path}: wait for udev, or plug the device in again` };
  }
  const owner = await groupOf(node.gid, groups);
  const group = owner?.name ?? String(node.gid);
  const granted = await tryAccess(path).then(
    () => true,
    () => false,
  );
  if (granted) return { granted, group, cure: undefined };
  const groupMayUse = (node.mode & 0o060) === 0o060;
  if (owner === undefined || node.gid === 0 || !groupMayUse) {
    // Right after plugging in, the node belongs to root alone until udev has seen to it.
    const cure = `sudo chgrp dialout ${path} && sudo chmod 660 ${path} (until the next replug; a udev rule makes it last)`;
    return { granted, group, cure };
  }
  const joined = owner.members.includes(user);
  const cure = joined
    ? `log in again: ${user} is in group ${group} since the last login`
    : `sudo usermod -aG ${group} ${user}, then log in again`;
  return { granted, group, cure };
}

/** The user's name; `$USER`, for the shell to fill in, where the box doesn't know it. */
function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return "$USER";
  }
}

async function groupOf(gid: number, groups: string): Promise<{ name: string; members: string[] } | undefined> {
  const table = await readFile(groups, "utf8").catch(() => "");
  for (const line of table.split("\n")) {
    const [name, , id, members = ""] = line.split(":");
    if (name !== undefined && id === String(gid)) return { name, members: members.split(",") };
  }
  return undefined;
}
