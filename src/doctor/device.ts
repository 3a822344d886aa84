import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { quoted } from "../core/shell-text.ts";
import { accessTo, type Device, listDevices } from "../device/devices.ts";
import { type Holder, lookForHolders } from "../device/holders.ts";
import { heldBy, killOf, noPermission, permissionCures, serviceUser } from "../device/open-errors.ts";
import { OpenError } from "../device/transport.ts";
import { type Account, mayUse } from "./accounts.ts";
import { type Box, textAt } from "./box.ts";
import { type Finding, finding, type More, trouble } from "./finding.ts";
import { type Processes, poslineOf } from "./processes.ts";
import type { Units } from "./units.ts";

/** The device that a line's path means, or why there is none. */
export type Resolved =
  | { readonly node: string; readonly device: Device | undefined }
  | { readonly findings: readonly Finding[] };

/** Finds the device of a line, as the line itself would at its next opening. */
export async function findDevice(line: string, path: string, box: Box): Promise<Resolved> {
  const devices = await listDevices(box.places);
  try {
    const node = await box.resolve(path);
    const device = devices.find((each) => basename(each.path) === basename(node));
    return { node, device };
  } catch (error) {
    if (!(error instanceof OpenError)) throw error;
    const others = devices.map((device) => device.path);
    const more: More = others.length === 0 ? { line } : { line, cause: `serial devices of this box: ${others.join(", ")}` };
    return { findings: [refusal("device", error, more)] };
  }
}

/** Why a device can't be opened: its cause and its cure, in the words of the log. */
export function refusal(check: string, { message, why }: OpenError, more: More): Finding {
  return why === undefined
    ? finding(check, "bad", message, more)
    : finding(check, "bad", why.cause, { ...more, cure: why.cure });
}

/** What the device is. */
export function deviceFinding(line: string, path: string, node: string, device: Device | undefined): Finding {
  const led = path === node ? "" : `${path} is `;
  const { usb, driver } = device ?? {};
  const words = [usb?.manufacturer, usb?.product].filter((word) => word !== undefined).join(" ");
  const ids = usb === undefined ? undefined : [`${usb.vendorId}:${usb.productId}`, usb.serialNumber].filter(Boolean).join(" ");
  const what = [words === "" ? undefined : words, ids, driver === undefined ? undefined : `driver ${driver}`];
  const said = what.filter((word) => word !== undefined).join(", ");
  const fact = `${led}${node}${said === "" ? "" : ` (${said})`}`;
  const name = device?.usbName ?? device?.byId[0] ?? device?.byPath[0];
  const mayMove = path === node && usb !== undefined && name !== undefined;
  if (!mayMove) return finding("device", "ok", fact, { line });
  const cause = "its number may be another one after a replug";
  return finding("device", "note", fact, { line, cause, cure: `configure it as ${name}` });
}

/** Who has a device open, and whether that is posline itself. */
export interface Held {
  readonly finding: Finding;
  /** Nobody has it, as far as can be seen. */
  readonly free: boolean;
}

export async function heldFinding(line: string, node: string, box: Box, processes: Processes): Promise<Held> {
  const found = (await lookForHolders([node], box.proc)).get(node);
  const holders = found?.holders ?? [];
  if (holders.length === 0) {
    const hidden = found?.hidden ?? true;
    const what = hidden ? "nobody has it open, as far as this user can see" : "nobody has it open";
    return { finding: finding("holder", "ok", what, { line }), free: true };
  }
  const stranger = holders.find(({ pid }) => nameOf(pid, processes) === undefined);
  if (stranger !== undefined) {
    return { finding: trouble("holder", "bad", heldBy(node, stranger), { line }), free: false };
  }
  const [first] = holders;
  const unit = first === undefined ? undefined : nameOf(first.pid, processes);
  const what = `${unit ?? "posline"} has it open (process ${holders.map(({ pid }) => pid).join(", ")}), as it should be`;
  return { finding: finding("holder", "ok", what, { line }), free: false };
}

function nameOf(pid: Holder["pid"], processes: Processes): string | undefined {
  const running = processes.of(pid);
  return running === undefined ? undefined : poslineOf(running);
}

/** What gives the device back, so that it can be asked: the unit that has it, or the process. */
export async function stopWords(node: string, box: Box, processes: Processes): Promise<string> {
  const holders = (await lookForHolders([node], box.proc)).get(node)?.holders ?? [];
  const units = holders.map(({ pid }) => ({ pid, unit: nameOf(pid, processes) }));
  const [first] = units;
  if (first?.unit === "posline.service") return "sudo systemctl stop posline.socket posline";
  if (first?.unit?.endsWith(".service")) return `sudo systemctl stop ${first.unit}`;
  return killOf(units.map(({ pid }) => pid)) ?? "let it close the device";
}

/** Whether this user may open the device, and whether the service's user may. */
export async function permissionFindings(
  line: string,
  node: string,
  { box, account, units }: { readonly box: Box; readonly account: Account | undefined; readonly units: Units },
): Promise<{ readonly mine: boolean; readonly findings: readonly Finding[] }> {
  const mine = await accessTo(node, box.places);
  const theirs = await serviceFinding(line, node, { box, account, units });
  if (mine.granted)
    return { mine: true, findings: [finding("permission", "ok", "this user may open it", { line }), ...theirs] };
  const level = theirs.some((each) => each.level === "ok") ? "note" : "bad";
  return { mine: false, findings: [trouble("permission", level, noPermission(node, mine.cure), { line }), ...theirs] };
}

async function serviceFinding(
  line: string,
  node: string,
  { box, account, units }: { readonly box: Box; readonly account: Account | undefined; readonly units: Units },
): Promise<Finding[]> {
  if (account === undefined) return [];
  const here = await stat(node).catch(() => undefined);
  if (here === undefined) return [];
  const access = async () => {
    if (!mayUse(account, here)) throw new Error("denied");
  };
  const { granted, cure } = await accessTo(node, { ...box.places, user: serviceUser, access });
  if (!granted) {
    const what = `the service's user ${serviceUser} may not open ${quoted(node)}`;
    return [finding("permission", "bad", what, { line, ...(cure === undefined ? {} : { cure }) })];
  }
  const major = (here.rdev >>> 8) & 0xfff;
  if (here.isCharacterDevice() && !(await isAllowed(major, units, box))) {
    const what = `posline.service may open no devices of this kind (major ${major})`;
    return [finding("permission", "bad", what, { line, cure: permissionCures.unit(major) })];
  }
  return [finding("permission", "ok", `the service's user ${serviceUser} may open it`, { line })];
}

/** Pseudo terminals are always allowed. */
const ptyMajors = [136, 143] as const;

async function isAllowed(major: number, { devices }: Units, box: Box): Promise<boolean> {
  if (devices === "all" || (major >= ptyMajors[0] && major <= ptyMajors[1])) return true;
  const table = (await textAt(box.proc, "devices")) ?? "";
  const names = [...table.matchAll(/^\s*(\d+) (\S+)$/gm)].filter(([, id]) => Number(id) === major).map(([, , name]) => name);
  return devices.some(
    (device) => device === `char-${major}` || device === "char-*" || names.some((name) => device === `char-${name}`),
  );
}
