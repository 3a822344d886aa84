import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { quoted } from "../core/shell-text.ts";
import { accessTo, type Device, listDevices } from "../device/devices.ts";
import { type Holder, type Holders, isPoslineUnit, lookForHolders } from "../device/holders.ts";
import {
  heldBy,
  isNoSerialDevice,
  killOf,
  noPermission,
  permissionCures,
  serviceUser,
  stopUnit,
} from "../device/open-errors.ts";
import { classOf, isPty } from "../device/sysfs.ts";
import { OpenError } from "../device/transport.ts";
import { usbWords } from "../device/usb-words.ts";
import { type BoxFacts, mayUse } from "./accounts.ts";
import { causeFinding, type Finding, type FindingDetails, finding } from "./finding.ts";
import { type Host, readTextAt } from "./host.ts";
import { type Processes, poslineNameOf, poslineToolOf } from "./processes.ts";
import type { SystemdUnits } from "./units.ts";

/** The device that a line's path means, or why there is none. */
export type ResolvedDevice =
  | { readonly node: string; readonly device: Device | undefined }
  | { readonly findings: readonly Finding[] };

/** Finds the device of a line, as the line itself would at its next opening. */
export async function findDevice(line: string, path: string, host: Host): Promise<ResolvedDevice> {
  const devices = await listDevices(host.places);
  try {
    const node = await host.resolve(path);
    // Half of the box has /dev/null open: all of that would be named as in the way.
    const rdev = await stat(node).then(
      (found) => found.rdev,
      () => 0,
    );
    if (((await classOf(rdev, host.sys)) ?? "tty") !== "tty") throw new OpenError(isNoSerialDevice(path));
    const device = devices.find((each) => basename(each.path) === basename(node));
    return { node, device };
  } catch (error) {
    if (!(error instanceof OpenError)) throw error;
    const others = devices.map((device) => device.path);
    const more: FindingDetails =
      others.length === 0 ? { line } : { line, cause: `serial devices of this box: ${others.join(", ")}` };
    return { findings: [openErrorFinding("device", error, more)] };
  }
}

/** Why a device can't be opened: its cause and its cure, in the words of the log. */
export function openErrorFinding(check: string, { message, why }: OpenError, more: FindingDetails): Finding {
  return why === undefined
    ? finding(check, "bad", message, more)
    : finding(check, "bad", why.cause, { ...more, cure: why.cure });
}

/** The finding that names the device: its node, adapter and driver. */
export function deviceFinding(line: string, path: string, node: string, device: Device | undefined): Finding {
  const led = path === node ? "" : `${path} is `;
  const { usb, driver } = device ?? {};
  const words = usbWords(usb);
  const ids = usb === undefined ? undefined : [`${usb.vendorId}:${usb.productId}`, usb.serialNumber].filter(Boolean).join(" ");
  const what = [words === "" ? undefined : words, ids, driver === undefined ? undefined : `driver ${driver}`];
  const text = what.filter((word) => word !== undefined).join(", ");
  const fact = `${led}${node}${text === "" ? "" : ` (${text})`}`;
  const name = device?.usbName ?? device?.byId[0] ?? device?.byPath[0];
  const mayMove = path === node && usb !== undefined && name !== undefined;
  if (!mayMove) return finding("device", "ok", fact, { line });
  const cause = "its number may be another one after a replug";
  return finding("device", "note", fact, { line, cause, cure: `configure it as ${name}` });
}

/** The processes that have a device open, and whether that is posline itself. */
export interface HolderCheck {
  readonly finding: Finding;
  /** `unknown`: other users' processes can't be looked into, and one of them may have it. */
  readonly isFree: boolean | "unknown";
}

/** Root sees every process, and may open every device. */
export const seeAll = "sudo posline doctor";

export async function checkHolders(line: string, node: string, host: Host, processes: Processes): Promise<HolderCheck> {
  const { holders, hidden } = await lookForOthers(node, host, processes);
  if (holders.length === 0) {
    if (!hidden) return { finding: finding("holder", "ok", "no process has it open", { line }), isFree: true };
    const what = "no process has it open, as far as this user can see: it can't look into other users' processes";
    return { finding: finding("holder", "skipped", what, { line, cure: seeAll }), isFree: "unknown" };
  }
  const stranger = holders.find(({ pid }) => poslineHolding(pid, processes) === undefined);
  if (stranger !== undefined) {
    const running = processes.of(stranger.pid);
    const tool = running === undefined ? undefined : poslineToolOf(running);
    const more = tool === undefined ? { line } : { line, cause: `it is posline ${tool}, and no bridge` };
    return { finding: causeFinding("holder", "bad", heldBy(node, stranger), more), isFree: false };
  }
  const [first] = holders;
  const unit = first === undefined ? undefined : poslineHolding(first.pid, processes);
  const what = `${unit ?? "posline"} has it open (process ${holders.map(({ pid }) => pid).join(", ")}), as it should be`;
  return { finding: finding("holder", "ok", what, { line }), isFree: false };
}

/**
 * Who has the device open, without what a posline among them started: its `stty` reads the settings on posline's own descriptor, now and
 * then, and has not even a name of its own when it begins.
 */
async function lookForOthers(node: string, { proc }: Host, processes: Processes): Promise<Holders> {
  const { holders, hidden } = (await lookForHolders([node], proc)).get(node) ?? { holders: [], hidden: true };
  const areOthers = await Promise.all(
    holders.map(async ({ pid }) => {
      const parent = /^PPid:\s+(\d+)$/m.exec((await readTextAt(proc, String(pid), "status")) ?? "")?.[1];
      return parent === undefined || poslineHolding(Number(parent), processes) === undefined;
    }),
  );
  return { holders: holders.filter((_, index) => areOthers[index]), hidden };
}

function poslineHolding(pid: Holder["pid"], processes: Processes): string | undefined {
  const running = processes.of(pid);
  return running === undefined ? undefined : poslineNameOf(running);
}

/** The command that frees the device, so that it can be tested: it stops the unit that has it, or the process. */
export async function stopCommand(node: string, host: Host, processes: Processes): Promise<string> {
  const { holders } = await lookForOthers(node, host, processes);
  const units = holders.map(({ pid }) => ({ pid, unit: poslineHolding(pid, processes) }));
  const [first] = units;
  if (isPoslineUnit(first?.unit)) return stopUnit(first.unit);
  return killOf(holders.filter(({ ended }) => ended !== true).map(({ pid }) => pid)) ?? "let it close the device";
}

interface PermissionFacts extends BoxFacts {
  /** A bridge has it open, so its user may. */
  readonly isServed: boolean;
}

/** Whether this user may open the device, and whether the service's user may. */
export async function permissionFindings(
  line: string,
  node: string,
  facts: PermissionFacts,
): Promise<{ readonly mine: boolean; readonly findings: readonly Finding[] }> {
  const mine = await accessTo(node, facts.host.places);
  const theirs = await serviceFinding(line, node, facts);
  if (mine.granted)
    return { mine: true, findings: [finding("permission", "ok", "this user may open it", { line }), ...theirs] };
  const level = facts.isServed || theirs.some((each) => each.level === "ok") ? "note" : "bad";
  return { mine: false, findings: [causeFinding("permission", level, noPermission(node, mine.cure), { line }), ...theirs] };
}

async function serviceFinding(line: string, node: string, { host, account, units }: BoxFacts): Promise<Finding[]> {
  if (account === undefined) return [];
  const here = await stat(node).catch(() => undefined);
  if (here === undefined) return [];
  const access = async () => {
    if (!mayUse(account, here)) throw new Error("denied");
  };
  const { granted, cure } = await accessTo(node, { ...host.places, user: serviceUser, access });
  if (!granted) {
    const what = `the service's user ${serviceUser} may not open ${quoted(node)}`;
    return [finding("permission", "bad", what, { line, ...(cure === undefined ? {} : { cure }) })];
  }
  const major = (here.rdev >>> 8) & 0xfff;
  // Pseudo terminals are always allowed.
  if (here.isCharacterDevice() && !isPty(here.rdev) && !(await isAllowed(major, units, host))) {
    const what = `posline.service may open no devices of this kind (major ${major})`;
    return [finding("permission", "bad", what, { line, cure: permissionCures.unit(major) })];
  }
  return [finding("permission", "ok", `the service's user ${serviceUser} may open it`, { line })];
}

async function isAllowed(major: number, { devices }: SystemdUnits, host: Host): Promise<boolean> {
  if (devices === "all") return true;
  const table = (await readTextAt(host.proc, "devices")) ?? "";
  const names = [...table.matchAll(/^\s*(\d+) (\S+)$/gm)].filter(([, id]) => Number(id) === major).map(([, , name]) => name);
  return devices.some(
    (device) => device === `char-${major}` || device === "char-*" || names.some((name) => device === `char-${name}`),
  );
}
