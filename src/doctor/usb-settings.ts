import { basename, join } from "node:path";
import type { Device } from "../device/devices.ts";
import { noUdevRule, udevRule } from "../device/open-errors.ts";
import { causeFinding, type Finding, finding } from "./finding.ts";
import { type Host, namesIn, readTextAt, udevRuleFolders, usbDeviceFolder } from "./host.ts";

/** How an adapter is set: what makes each exchange slower, or the first one after a pause fail. Only USB adapters have it. */
export async function usbSettingsFindings(
  line: string,
  node: string,
  device: Device | undefined,
  host: Host,
): Promise<Finding[]> {
  if (device?.usb === undefined) return [];
  return [
    await ruleFinding(line, host),
    ...(await latencyFinding(line, node, host)),
    ...(await suspendFinding(line, node, host)),
  ];
}

async function ruleFinding(line: string, host: Host): Promise<Finding> {
  for (const folder of udevRuleFolders(host)) {
    if ((await namesIn(folder)).includes(udevRule)) {
      return finding("udev", "ok", `the udev rule ${udevRule} is installed`, { line });
    }
  }
  return causeFinding("udev", "note", noUdevRule(), { line });
}

/** Milliseconds that FTDI's chips may hold short packets back; the driver's own setting is 16. */
const latencyMsMax = 1;

async function latencyFinding(line: string, node: string, { sys }: Host): Promise<Finding[]> {
  const file = join(sys, "class", "tty", basename(node), "device", "latency_timer");
  const text = await readTextAt(file);
  if (text === undefined) return [];
  const ms = Number(text);
  if (ms <= latencyMsMax) return [finding("latency", "ok", `the adapter passes bytes on after ${ms} ms`, { line })];
  const cause = "FTDI's chips wait so long for more bytes: each exchange takes up to that much longer";
  return [
    finding("latency", "note", `the adapter holds bytes back for ${ms} ms`, { line, cause, cure: `echo 1 | sudo tee ${file}` }),
  ];
}

async function suspendFinding(line: string, node: string, host: Host): Promise<Finding[]> {
  const folder = await usbDeviceFolder(host, node);
  const file = folder === undefined ? undefined : join(folder, "power", "control");
  const control = file === undefined ? undefined : await readTextAt(file);
  if (file === undefined || control === undefined) return [];
  if (control === "on") return [finding("autosuspend", "ok", "the adapter isn't put to sleep", { line })];
  const cause = "some terminals lose the first bytes when they wake up";
  const what = "the kernel may put the adapter to sleep between two sales";
  return [finding("autosuspend", "warn", what, { line, cause, cure: `echo on | sudo tee ${file}` })];
}
