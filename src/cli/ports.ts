import { defineCommand } from "../core/command.ts";
import { exitCodes } from "../core/exit.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { tableLines } from "../core/table.ts";
import type { Device } from "../device/devices.ts";
import { usbWords } from "../device/usb-words.ts";

/** `posline ports`: the serial devices of this box, which name to configure, and what stands in the way of using it. */

export interface PortsArguments {
  readonly json?: boolean | undefined;
}

/** The devices as a table; under each, the name to configure and how to fix what is wrong. */
export function renderDevices(devices: readonly Device[]): string {
  if (devices.length === 0) return noDevices;
  const rows = devices.map((device) => [device.path, device.driver ?? "-", adapterOf(device), stateOf(device)].map(printable));
  const table = tableLines([["DEVICE", "DRIVER", "ADAPTER", "STATE"], ...rows]);
  const notes = [[], ...devices.map(notesOf)];
  const lines = table.flatMap((line, at) => [line, ...(notes[at] ?? []).map((note) => `    ${printable(note)}`)]);
  if (devices.every(({ usb }) => usb === undefined)) lines.push(noAdapter);
  return `${lines.join("\n")}\n`;
}

const noAdapter = "No USB adapter is plugged in, nor a terminal by USB: if the cable ends in one, see sudo dmesg | tail";

/** The devices as JSON. */
export function renderDevicesJson(devices: readonly Device[]): string {
  return `${printableJson(JSON.stringify(devices, undefined, 2))}\n`;
}

const noDevices = `There is no serial device on this box
    Is the cable plugged in at both ends, and the terminal on? Try another cable: some carry power only
    sudo dmesg | tail     shows what the kernel said when it was plugged in
    lsusb                 shows whether the adapter is seen at all
    A USB serial adapter appears as /dev/ttyUSB0 (drivers ftdi_sio, cp210x, ch341, pl2303), a terminal's own USB as
    /dev/ttyACM0 (cdc_acm): sudo modprobe DRIVER tells whether this kernel has it
`;

function adapterOf({ usb }: Device): string {
  if (usb === undefined) return "built in";
  const name = usbWords(usb);
  const ids = [`${usb.vendorId}:${usb.productId}`, usb.serialNumber].filter((part) => part !== undefined).join(" ");
  return name === "" ? ids : `${name} (${ids})`;
}

function stateOf({ access, holders, holdersHidden }: Device): string {
  const states = holders.map(({ pid, name }) => `held by ${name} (pid ${pid})`);
  if (!access.granted) states.unshift("no access");
  if (states.length > 0) return states.join(", ");
  return holdersHidden ? "free, as far as this user can see" : "free";
}

function notesOf(device: Device): string[] {
  const notes: string[] = [];
  const configure = (name: string, when = "") => {
    notes.push(notes.length === 0 ? `configure it as ${name}` : `or${when} as ${name}`);
  };
  const [id] = device.byId;
  const [socket] = device.byPath;
  const hasSerialNumber = device.usb?.serialNumber !== undefined;
  if (id !== undefined) configure(id);
  if (device.usbName !== undefined) configure(device.usbName, hasSerialNumber ? "" : ", while it is the only one of its kind,");
  // By identity, several adapters without a serial number are all the same.
  if (socket !== undefined && !(hasSerialNumber && notes.length > 0)) {
    configure(socket, ", with several adapters of its kind, by its socket");
  }
  if (device.access.cure !== undefined) {
    const group = device.access.group === undefined ? "" : `it belongs to group ${device.access.group}: `;
    notes.push(`${group}${device.access.cure}`);
  }
  return notes;
}

export const portsCommand = defineCommand({
  name: "ports",
  describe: "List the serial devices of this box, which process holds each, and the name to configure",
  flags: { json: { type: "boolean", describe: "Print JSON in place of a table" } },
  run: async (args: PortsArguments) => {
    // Loaded when it is run, so that registering the command costs nothing.
    const { listDevices } = await import("../device/devices.ts");
    const devices = await listDevices();
    process.stdout.write(args.json === true ? renderDevicesJson(devices) : renderDevices(devices));
    return exitCodes.ok;
  },
});
