import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { readUsbName, type UsbName, writeUsbName } from "../config/device-name.ts";
import { codeOf } from "../core/error-code.ts";
import {
  ambiguous,
  type Candidate,
  type Cause,
  cannotOpen,
  isNoSerialDevice,
  malformedName,
  noDevice,
  noDriver,
} from "./open-errors.ts";
import { aliases, listUsbIdentities, listUsbTtys, nodeNameOf, type Trees, type UsbIdentity, type UsbTty } from "./sysfs.ts";
import { OpenError } from "./transport.ts";

/**
 * Finds the device that a line's path means, anew at each opening, since a replug may give the adapter another tty number.
 *
 * A path is a device, a name of udev's for one (`/dev/serial/by-id`, `/dev/serial/by-path`), or `usb:VID:PID[:SERIAL]`. A name that fits
 * two devices is refused with what to write instead: a guess would send a sale to another terminal. That holds for by-id names too: udev
 * gives two equal adapters one name, and lets it lead to whichever it saw last.
 */

/**
 * The device that a path means, as a real path.
 * @throws OpenError if there is none, or more than one.
 */
export async function resolveDevice(path: string, trees: Trees = {}): Promise<string> {
  const name = readUsbName(path);
  if (name !== undefined) return findUsb(path, name, trees);
  if (/^usb:/i.test(path)) throw refusal(malformedName(path));
  const { sys = "/sys", dev = "/dev" } = trees;
  const device = await follow(path, sys, dev);
  if (dirname(normalize(path)) === join(dev, "serial", "by-id")) await refuseShared(path, device, sys, dev);
  return device;
}

const refusal = (cause: Cause) => new OpenError(cause);

/** Follows links. A dangling link is a device that isn't there: udev makes and drops its links a moment after the kernel. */
async function follow(path: string, sys: string, dev: string): Promise<string> {
  let node: Stats;
  let device: string;
  try {
    device = await realpath(path);
    node = await stat(device);
  } catch (error) {
    throw refusal(isGone(error) ? noDevice(path) : cannotOpen(path, String(error)));
  }
  if (!node.isCharacterDevice()) throw refusal(isNoSerialDevice(path));
  return (await kernelNode(node.rdev, sys, dev)) ?? device;
}

/**
 * The kernel's own node of a device, for a node that a person has made beside it (`mknod`, a bind mount): locks and holders are known by
 * the node, so two nodes of one device would be two devices, each free. undefined if there is none, as in a container.
 */
async function kernelNode(rdev: number, sys: string, dev: string): Promise<string | undefined> {
  const name = await nodeNameOf(rdev, sys);
  if (name === undefined) return undefined;
  const own = await realpath(join(dev, name)).catch(() => undefined);
  const node = own === undefined ? undefined : await stat(own).catch(() => undefined);
  return node?.isCharacterDevice() === true && node.rdev === rdev ? own : undefined;
}

function isGone(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

async function findUsb(path: string, name: UsbName, { sys = "/sys", dev = "/dev" }: Trees): Promise<string> {
  const ttys = await listUsbTtys(sys);
  const fitting = ttys.filter(({ usb }) => fits(name, usb));
  const [only, another] = fitting;
  if (another !== undefined) throw refusal(ambiguous(path, await candidates(fitting, ttys, dev)));
  if (only === undefined) {
    const isThere = (await listUsbIdentities(sys)).some((usb) => fits(name, usb));
    if (isThere) throw refusal(noDriver(path, name.vendorId));
    const akin = ttys.filter(({ usb }) => usb.vendorId.toLowerCase() === name.vendorId);
    const seen = (await candidates(akin, ttys, dev)).map(({ device, names: [best = device] }) => best);
    throw refusal(noDevice(path, seen));
  }
  // The kernel makes the node a moment after the entry in sysfs.
  return realpath(join(dev, only.name)).catch(() => Promise.reject(refusal(noDevice(path))));
}

function fits(name: UsbName, usb: UsbIdentity): boolean {
  const sameKind = usb.vendorId.toLowerCase() === name.vendorId && usb.productId.toLowerCase() === name.productId;
  return sameKind && (name.serialNumber === undefined || usb.serialNumber === name.serialNumber);
}

/** Refuses a by-id name that two adapters share, and that leads to one of them by chance. */
async function refuseShared(path: string, device: string, sys: string, dev: string): Promise<void> {
  const ttys = await listUsbTtys(sys);
  const nodes = await Promise.all(ttys.map(({ name }) => realpath(join(dev, name)).catch(() => undefined)));
  const meant = ttys[nodes.indexOf(device)];
  if (meant === undefined) return;
  const equal = ttys.filter((other) => other === meant || haveOneId(meant, other));
  if (equal.length > 1) throw refusal(ambiguous(path, await candidates(equal, ttys, dev)));
}

/** True if a by-id name that leads to this tty means no other that is there. */
export function hasOwnId(tty: UsbTty, all: readonly UsbTty[]): boolean {
  return !all.some((other) => haveOneId(tty, other));
}

/** True if udev makes one by-id name of both: it is made of the adapter's words and the place within it. */
function haveOneId(one: UsbTty, other: UsbTty): boolean {
  const words = ({ port, usb: { vendorId, productId, serialNumber, manufacturer, product } }: UsbTty) =>
    JSON.stringify([vendorId, productId, serialNumber, manufacturer, product, port]);
  return one.name !== other.name && words(one) === words(other);
}

/** Names that can be configured for each of these ttys, and mean no other of all that are there. */
async function candidates(ttys: readonly UsbTty[], all: readonly UsbTty[], dev: string): Promise<Candidate[]> {
  const [byId, byPath] = await Promise.all(["by-id", "by-path"].map((folder) => aliases(join(dev, "serial", folder))));
  return Promise.all(
    ttys.map(async (tty) => {
      const path = join(dev, tty.name);
      const node = await realpath(path).catch(() => path);
      const own = usbNameOf(tty, all);
      const [id] = own === undefined && hasOwnId(tty, all) ? (byId?.get(node) ?? []) : [];
      const [socket] = byPath?.get(node) ?? [];
      const names = [own, id, socket].filter((name) => name !== undefined);
      return { device: path, serialNumber: tty.usb.serialNumber, names: names.length === 0 ? [path] : names };
    }),
  );
}

/**
 * The name `usb:VID:PID[:SERIAL]` that means this tty and no other of all that are there; undefined if there is none: equal adapters, or
 * several ttys of one.
 */
export function usbNameOf({ usb }: UsbTty, all: readonly UsbTty[]): string | undefined {
  const full = writeUsbName(usb);
  const { vendorId, productId } = usb;
  // A serial number that can't be written still leaves the kind.
  const text = full ?? writeUsbName({ vendorId, productId, serialNumber: undefined });
  const name = text === undefined ? undefined : readUsbName(text);
  return name !== undefined && all.filter((other) => fits(name, other.usb)).length === 1 ? text : undefined;
}
