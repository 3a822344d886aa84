import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * The ttys of this box as sysfs shows them. Nothing is opened: opening raises DTR, which resets some terminals, and changes the
 * settings of a line that another process is using.
 */

/** Folders to look in; the tests build such trees. */
export interface Trees {
  readonly sys?: string;
  readonly dev?: string;
}

/** A tty with hardware behind it. */
export interface Tty {
  /** `ttyUSB0`. */
  readonly name: string;
  /** The folder of the device behind it, as a real path. */
  readonly folder: string;
}

/** An adapter's own words about itself over USB. */
export interface UsbIdentity {
  /** Four hex digits. */
  readonly vendorId: string;
  readonly productId: string;
  readonly serialNumber: string | undefined;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
}

/** A tty of a USB adapter. An adapter may have several. */
export interface UsbTty extends Tty {
  readonly usb: UsbIdentity;
  /** The tty's place in the adapter: interface number and port number, as udev tells them apart. */
  readonly port: string;
}

/** Virtual terminals, and those that never are USB: they are many, and each costs a look at every opening. */
const neverUsb = /^(?:tty\d*|ttyS\d+|console|ptmx)$/;

/** The ttys with hardware behind them, by name. */
export async function listTtys(sys: string, wanted: (name: string) => boolean = () => true): Promise<Tty[]> {
  const folder = join(sys, "class", "tty");
  const names = (await readdir(folder).catch(() => [])).filter(wanted);
  names.sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const ttys = await Promise.all(names.map((name) => ttyOf(name, join(folder, name))));
  return ttys.filter((tty) => tty !== undefined);
}

/** Virtual terminals have no device behind them; a serial slot without a chip has one of type 0 (PORT_UNKNOWN). */
async function ttyOf(name: string, entry: string): Promise<Tty | undefined> {
  const folder = await realpath(join(entry, "device")).catch(() => undefined);
  return folder === undefined || (await attribute(entry, "type")) === "0" ? undefined : { name, folder };
}

/** Major and minor, from the packing of Linux's dev_t. */
export function numbersOf(dev: number): { readonly major: bigint; readonly minor: bigint } {
  const packed = BigInt(dev);
  const major = ((packed >> 8n) & 0xfffn) | ((packed >> 32n) & ~0xfffn);
  const minor = (packed & 0xffn) | ((packed >> 12n) & ~0xffn & 0xffffffffn);
  return { major, minor };
}

/** True if a character device is a pseudo terminal (UNIX98_PTY_SLAVE_MAJOR and the seven after it). */
export function isPty(rdev: number): boolean {
  const { major } = numbersOf(rdev);
  return major >= 136n && major <= 143n;
}

/** The kind of device that a character device's number stands for: `tty`, `mem`; undefined if sysfs doesn't say, as of a pty. */
export async function classOf(rdev: number, sys: string): Promise<string | undefined> {
  return linkName(join(charDevice(rdev, sys), "subsystem"));
}

/** The kernel's own name for a character device's node, in `/dev`: `ttyUSB0`; undefined if sysfs doesn't say, as of a pty. */
export async function nodeNameOf(rdev: number, sys: string): Promise<string | undefined> {
  const text = await readFile(join(charDevice(rdev, sys), "uevent"), "latin1").catch(() => "");
  return /^DEVNAME=(.+)$/m.exec(text)?.[1];
}

function charDevice(rdev: number, sys: string): string {
  const { major, minor } = numbersOf(rdev);
  return join(sys, "dev", "char", `${major}:${minor}`);
}

/** The ttys of USB adapters, by name. */
export async function listUsbTtys(sys: string): Promise<UsbTty[]> {
  const ttys = await Promise.all((await listTtys(sys, (name) => !neverUsb.test(name))).map(usbTtyOf));
  return ttys.filter((tty) => tty !== undefined);
}

/** A tty as one of a USB adapter's; undefined if it isn't one. */
export async function usbTtyOf(tty: Tty): Promise<UsbTty | undefined> {
  let port = "";
  for (const folder of upwards(tty.folder)) {
    port = `${(await attribute(folder, "bInterfaceNumber")) ?? ""}${(await attribute(folder, "port_number")) ?? ""}.${port}`;
    const usb = await usbIdentityAt(folder);
    if (usb !== undefined) return { ...tty, usb, port };
  }
  return undefined;
}

/** The identities of all devices on the USB, also of those that no driver serves. */
export async function listUsbIdentities(sys: string): Promise<UsbIdentity[]> {
  const folder = join(sys, "bus", "usb", "devices");
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(names.map((name) => usbIdentityAt(join(folder, name))));
  return found.filter((usb) => usb !== undefined);
}

/** The identity of the folder's device; undefined if it isn't on the USB, or was unplugged meanwhile. */
async function usbIdentityAt(folder: string): Promise<UsbIdentity | undefined> {
  const vendorId = await attribute(folder, "idVendor");
  if (vendorId === undefined) return undefined;
  return {
    vendorId,
    productId: (await attribute(folder, "idProduct")) ?? "",
    serialNumber: await attribute(folder, "serial"),
    manufacturer: await attribute(folder, "manufacturer"),
    product: await attribute(folder, "product"),
  };
}

/** The first driver above the tty: newer kernels put their own nodes (serial-base) between a chip and its tty. */
export async function driverOf({ folder: device }: Tty): Promise<string | undefined> {
  for (const folder of upwards(device)) {
    const driver = await linkName(join(folder, "driver"));
    if (driver !== undefined && (await linkName(join(folder, "subsystem"))) !== "serial-base") return driver;
  }
  return undefined;
}

/** The names in a folder of links, by the node they lead to. A link that leads nowhere for the moment is left out. */
export async function aliases(folder: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const name of (await readdir(folder).catch(() => [])).sort()) {
    const path = join(folder, name);
    const node = await realpath(path).catch(() => undefined);
    if (node !== undefined) found.set(node, [...(found.get(node) ?? []), path]);
  }
  return found;
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
