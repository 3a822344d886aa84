import type { UsbIdentity } from "./sysfs.ts";

/** What an adapter calls itself; empty if it says nothing. */
export function usbWords(usb: UsbIdentity | undefined): string {
  return [usb?.manufacturer, usb?.product].filter((word) => word !== undefined).join(" ");
}
