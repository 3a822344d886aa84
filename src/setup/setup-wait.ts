import { basename } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { nowMs } from "../core/clock.ts";
import { type Device, listDevices } from "../device/devices.ts";
import { listTtys } from "../device/sysfs.ts";
import type { Finding } from "../doctor/finding.ts";
import type { Host } from "../doctor/host.ts";
import { SetupError } from "./setup-file.ts";

/** Answers a setup's questions, and sees what it finds: a person at a terminal or at the status page, or nobody. */
export interface SetupPerson {
  readonly say: (text: string) => void;
  readonly show: (findings: readonly Finding[]) => void;
  /** Asks for the terminal to be plugged in. @returns the device that is named in place of that; never settles if none is. */
  readonly pick: (devices: readonly Device[], signal: AbortSignal) => Promise<Device>;
  /** @param refused Why the last one is asked for again. @returns undefined if it isn't known. */
  readonly merchantId: (refused: string | undefined) => Promise<string | undefined>;
  /** @param words What is to be written. */
  readonly agrees: (words: string) => Promise<boolean>;
}

/** Milliseconds for which a device is waited for: a technician fetches the cable meanwhile. */
const waitMsDefault = 600_000;

/** Milliseconds between two looks, and those that udev gets for owner and names of a new device. */
const lookMs = 250;
const settleMs = 1_000;

/** The name of a device that survives a replug, as `posline ports` recommends it; undefined if it has none. */
export const stableName = ({ byId, usbName, byPath }: Device): string | undefined => byId[0] ?? usbName ?? byPath[0];

/**
 * Waits for a device that wasn't there before; one that was unplugged and plugged in again counts. Looks at lists alone, and opens nothing.
 * @returns those that appeared together, or the one that a person named meanwhile.
 * @throws SetupError if none comes in time.
 */
export async function waitForDevice(host: Host, person: SetupPerson, waitMs = waitMsDefault): Promise<readonly Device[]> {
  const there = await listDevices(host.places);
  // Listed before the prompt: a quick person plugs the device in as soon as it stands there
  const names = await namesOf(host);
  const dueMs = nowMs() + waitMs;
  const picking = new AbortController();
  const picked = person.pick(there, picking.signal).then((device) => [device]);
  try {
    return await Promise.race([picked, appearing(host, names, dueMs, picking.signal)]);
  } finally {
    picking.abort();
    // Whoever was asked is told so by the signal.
    picked.catch(() => {});
  }
}

async function appearing(
  host: Host,
  names: ReadonlySet<string>,
  dueMs: number,
  signal: AbortSignal,
): Promise<readonly Device[]> {
  let known = names;
  while (!signal.aborted) {
    if (nowMs() >= dueMs) throw new SetupError("no device was plugged in: name one with --line (posline ports lists them)");
    await pause(lookMs);
    const now = await namesOf(host);
    const fresh = [...now].filter((name) => !known.has(name));
    known = now;
    if (fresh.length === 0) continue;
    await pause(settleMs);
    const devices = (await listDevices(host.places)).filter(({ path }) => fresh.includes(basename(path)));
    if (devices.length > 0) return devices;
  }
  return [];
}

const namesOf = async ({ sys }: Host): Promise<ReadonlySet<string>> => new Set((await listTtys(sys)).map(({ name }) => name));
