/**
 * A device by what its USB adapter says of itself: `usb:VID:PID` or `usb:VID:PID:SERIAL`. Such a name finds the adapter in
 * whatever socket and under whatever tty number it is, and needs no udev.
 *
 * The ids are four hex digits each, in either case, as `lsusb` shows them. The serial number is all that follows the third
 * colon, in its own case: it may hold spaces and colons, but no control characters, and spaces at its ends don't count.
 */
export interface UsbName {
  /** Four hex digits in lower case, as sysfs writes them. */
  readonly vendorId: string;
  readonly productId: string;
  /** Any, when it is left out. */
  readonly serialNumber: string | undefined;
}

const serialPattern = "[^\\u0000-\\u0020\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*";

/** The whole grammar as the schema takes it, without anchors. */
export const usbNamePattern = `usb:[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}(?::${serialPattern})?`;

const whole = new RegExp(`^${usbNamePattern}$`, "u");
const serial = new RegExp(`^${serialPattern}$`, "u");

/** Reads such a name; undefined for any other text. */
export function readUsbName(path: string): UsbName | undefined {
  if (!whole.test(path)) return undefined;
  const [, vendorId = "", productId = "", ...rest] = path.split(":");
  const serialNumber = rest.length === 0 ? undefined : rest.join(":").trim();
  return { vendorId: vendorId.toLowerCase(), productId: productId.toLowerCase(), serialNumber };
}

/** Writes such a name; undefined where an adapter's own words can't be written in one. */
export function writeUsbName({ vendorId, productId, serialNumber }: UsbName): string | undefined {
  if (serialNumber !== undefined && !serial.test(serialNumber)) return undefined;
  const name = `usb:${vendorId}:${productId}${serialNumber === undefined ? "" : `:${serialNumber}`}`;
  return whole.test(name) ? name : undefined;
}

/** The far end of a line over TCP: `tcp:host:port`, with an IPv6 address in brackets. */
export interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

const portPattern = "(?:6553[0-5]|655[0-2]\\d|65[0-4]\\d\\d|6[0-4]\\d{3}|[1-5]\\d{4}|[1-9]\\d{0,3})";
const hostPattern = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?";
const ipv6Pattern = "\\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?\\]";

/** The whole grammar as the schema takes it, without anchors. */
export const tcpAddressPattern = `tcp:(?:${hostPattern}|${ipv6Pattern}):${portPattern}`;

const wholeTcp = new RegExp(`^${tcpAddressPattern}$`, "u");

/** Reads such an address; undefined for any other text. */
export function readTcpAddress(path: string): TcpAddress | undefined {
  if (!wholeTcp.test(path)) return undefined;
  const end = path.lastIndexOf(":");
  return { host: path.slice("tcp:".length, end).replace(/^\[|\]$/g, ""), port: Number(path.slice(end + 1)) };
}

/** True of a line over TCP, which has no device. */
export const isTcpPath = (path: string): boolean => readTcpAddress(path) !== undefined;
