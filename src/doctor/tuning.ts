import { basename, join } from "node:path";
import type { Device } from "../device/devices.ts";
import { noUdevRule, udevRule } from "../device/open-errors.ts";
import { type Box, namesIn, textAt } from "./box.ts";
import { type Finding, finding, trouble } from "./finding.ts";
import { adapterFolder, ruleFolders } from "./trees.ts";

/** How an adapter is set: what makes each exchange slower, or the first one after a pause fail. Only USB adapters have it. */
export async function tuningFindings(line: string, node: string, device: Device | undefined, box: Box): Promise<Finding[]> {
  if (device?.usb === undefined) return [];
  return [await ruleFinding(line, box), ...(await latencyFinding(line, node, box)), ...(await suspendFinding(line, node, box))];
}

async function ruleFinding(line: string, box: Box): Promise<Finding> {
  for (const folder of ruleFolders(box)) {
    if ((await namesIn(folder)).includes(udevRule)) {
      return finding("udev", "ok", `the udev rule ${udevRule} is installed`, { line });
    }
  }
  return trouble("udev", "note", noUdevRule(), { line });
}

/** Milliseconds that FTDI's chips may hold short packets back; the driver's own setting is 16. */
const latencyMsMax = 1;

async function latencyFinding(line: string, node: string, { sys }: Box): Promise<Finding[]> {
  const file = join(sys, "class", "tty", basename(node), "device", "latency_timer");
  const text = await textAt(file);
  if (text === undefined) return [];
  const ms = Number(text);
  if (ms <= latencyMsMax) return [finding("latency", "ok", `the adapter passes bytes on after ${ms} ms`, { line })];
  const cause = "FTDI's chips wait so long for more bytes: each exchange takes up to that much longer";
  return [
    finding("latency", "note", `the adapter holds bytes back for ${ms} ms`, { line, cause, cure: `echo 1 | sudo tee ${file}` }),
  ];
}

async function suspendFinding(line: string, node: string, box: Box): Promise<Finding[]> {
  const folder = await adapterFolder(box, node);
  const file = folder === undefined ? undefined : join(folder, "power", "control");
  const control = file === undefined ? undefined : await textAt(file);
  if (file === undefined || control === undefined) return [];
  if (control === "on") return [finding("autosuspend", "ok", "the adapter isn't put to sleep", { line })];
  const cause = "some terminals lose the first bytes when they wake up";
  const what = "the kernel may put the adapter to sleep between two sales";
  return [finding("autosuspend", "warn", what, { line, cause, cure: `echo on | sudo tee ${file}` })];
}
