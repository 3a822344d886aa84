import { readFile, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Device } from "../device/devices.ts";
import { brltty, getty, kernelConsole, modemManager } from "../device/open-errors.ts";
import type { BoxFacts } from "./accounts.ts";
import { causeFinding, type Finding, finding } from "./finding.ts";
import { type Host, namesIn, readTextAt, udevRuleFolders, usbDeviceFolder } from "./host.ts";
import type { Processes, RunningProcess } from "./processes.ts";

/**
 * Programs that take serial devices for their own: ModemManager asks each whether it is a modem, brltty pulls adapters away for
 * Braille displays, a login prompt and the kernel's messages go to UARTs. None of them asks first.
 */
export async function competingProgramFindings(
  line: string,
  node: string,
  device: Device | undefined,
  facts: BoxFacts,
): Promise<{ readonly findings: readonly Finding[]; readonly inUse: boolean }> {
  const { host, processes } = facts;
  const consoles = await consoleFindings(line, node, host, processes);
  const findings = [await modemFinding(line, node, host, processes)];
  if (device?.usb !== undefined) findings.push(await brailleFinding(line, node, device, facts));
  const ok = finding("console", "ok", "no login prompt and no kernel messages on it", { line });
  return { findings: [...findings, ...(consoles.length === 0 ? [ok] : consoles)], inUse: consoles.length > 0 };
}

async function modemFinding(line: string, node: string, host: Host, processes: Processes): Promise<Finding> {
  const running = processes.named("ModemManager");
  if (running === undefined) return finding("modemmanager", "ok", "ModemManager doesn't run", { line });
  const ignored = await isIgnored(node, host);
  if (ignored) return finding("modemmanager", "ok", "ModemManager runs, and leaves this device alone (udev)", { line });
  const cause = "no udev rule keeps it from this device, and it asks each new one whether it is a modem (AT)";
  return causeFinding("modemmanager", "warn", modemManager(node), { line, cause });
}

/** True if udev's database tells ModemManager to leave the tty or its adapter alone. */
async function isIgnored(node: string, host: Host): Promise<boolean> {
  const tty = join(host.sys, "class", "tty", basename(node));
  const adapter = await usbDeviceFolder(host, node);
  for (const folder of [tty, adapter]) {
    const number = folder === undefined ? undefined : await readTextAt(folder, "dev");
    if (number === undefined) continue;
    const entry = (await readTextAt(host.run, "udev", "data", `c${number}`)) ?? "";
    if (/^E:ID_MM_(?:DEVICE_IGNORE|PORT_IGNORE|TTY_BLACKLIST)=1$/m.test(entry)) return true;
  }
  return false;
}

async function brailleFinding(line: string, node: string, device: Device, { host, processes }: BoxFacts): Promise<Finding> {
  const runs = processes.named("brltty") !== undefined;
  const rule = await brailleRule(device, host);
  if (rule === undefined && !runs) return finding("brltty", "ok", "brltty has no claim on this adapter", { line });
  const cause = rule === undefined ? "it runs" : `its rule ${rule} names adapters of this kind`;
  return causeFinding("brltty", "warn", brltty(node), { line, cause });
}

/** posline's own rule takes brltty's back. */
const answer = "91-posline-brltty.rules";

/** The rule of brltty's that claims an adapter of this kind, unless one of posline's takes it back. */
async function brailleRule({ usb }: Device, host: Host): Promise<string | undefined> {
  if (usb === undefined) return undefined;
  const folders = udevRuleFolders(host);
  const names = await Promise.all(folders.map((folder) => namesIn(folder)));
  if (names.some((each) => each.includes(answer))) return undefined;
  for (const [index, folder] of folders.entries()) {
    for (const name of names[index] ?? []) {
      if (!/brltty.*\.rules$/.test(name)) continue;
      const text = await readFile(join(folder, name), "utf8").catch(() => "");
      if (text.split("\n").some((rule) => claims(rule, usb))) return name;
    }
  }
  return undefined;
}

/** Whether a rule is for an adapter: by its numbers, and by its words where the rule asks for them. */
function claims(rule: string, usb: NonNullable<Device["usb"]>): boolean {
  if (/^\s*(?:#|$)/.test(rule)) return false;
  const short = (id: string) => id.toLowerCase().replace(/^0+(?=.)/, "");
  const [, product] = /ENV\{PRODUCT\}=="([^"]*)"/i.exec(rule) ?? [];
  const byProduct = product?.split("|").some((glob) => matches(glob, `${short(usb.vendorId)}/${short(usb.productId)}/0`));
  const vendor = /ATTRS?\{idVendor\}=="([^"]*)"/.exec(rule)?.[1];
  const productId = /ATTRS?\{idProduct\}=="([^"]*)"/.exec(rule)?.[1];
  const byIds =
    vendor !== undefined && productId !== undefined && matches(vendor, usb.vendorId) && matches(productId, usb.productId);
  if (byProduct !== true && !byIds) return false;
  return [...rule.matchAll(/ATTRS?\{(manufacturer|product)\}=="([^"]*)"/g)].every(([, word, glob = ""]) =>
    matches(glob, (word === "product" ? usb.product : usb.manufacturer) ?? ""),
  );
}

/** A pattern of udev's: `*`, `?` and `|`. */
function matches(glob: string, text: string): boolean {
  const pattern = glob
    .toLowerCase()
    .replace(/[.+^${}()\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  try {
    return new RegExp(`^(?:${pattern})$`).test(text.toLowerCase());
  } catch {
    return false;
  }
}

async function consoleFindings(line: string, node: string, host: Host, processes: Processes): Promise<Finding[]> {
  const findings: Finding[] = [];
  const kernel = ((await readTextAt(host.proc, "cmdline")) ?? "").matchAll(/(?:^|\s)console=([^\s,]+)/g);
  const active = ((await readTextAt(host.sys, "class", "tty", "console", "active")) ?? "").split(/\s+/);
  const names = new Set([...active, ...[...kernel].map(([, name = ""]) => name)]);
  for (const name of names) {
    if (!(await namesNode(name, node, host))) continue;
    const isPi = /Raspberry Pi/.test((await readTextAt(host.proc, "device-tree", "model")) ?? "");
    const cause = `console=${name} is in ${isPi ? "/boot/firmware/cmdline.txt" : "the kernel's command line (/proc/cmdline)"}`;
    findings.push(causeFinding("console", "bad", kernelConsole(node), { line, cause }));
  }
  const isGetty = ({ name, args }: RunningProcess) => /^a?getty$/.test(name) || /\/a?getty$/.test(args[0] ?? "");
  const prompts = processes.find((running) => isGetty(running) || ttyOfGettyUnit(running) !== undefined);
  for (const running of prompts) {
    const { args, pid } = running;
    const ofUnit = ttyOfGettyUnit(running);
    const named = [...args.slice(1), ofUnit ?? ""];
    const on = await Promise.all(named.map((arg) => namesNode(arg.replace(/^\/dev\//, ""), node, host)));
    if (!on.includes(true)) continue;
    const cause = `process ${pid}: ${args.join(" ")}`;
    findings.push(causeFinding("console", "bad", getty(node, ofUnit && running.unit), { line, cause }));
  }
  // Duplicates go: the command line and sysfs name one console in two ways (serial0, ttyAMA0).
  return findings.filter(({ what }, index) => findings.findIndex((other) => other.what === what) === index);
}

/** The tty of a login prompt that systemd runs: the program has it as its standard input, and doesn't name it (`-`). */
function ttyOfGettyUnit({ unit = "" }: RunningProcess): string | undefined {
  return /^(?:serial-)?getty@(.+)\.service$/.exec(unit)?.[1];
}

/** Whether a name in /dev means the node: a Raspberry Pi's `serial0` is a link. */
async function namesNode(name: string, node: string, host: Host): Promise<boolean> {
  if (!/^[\w-]+$/.test(name)) return false;
  if (name === basename(node)) return true;
  const led = await realpath(join(host.dev, name)).catch(() => undefined);
  return led !== undefined && led === (await realpath(node).catch(() => node));
}
