import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { LineConfig } from "../config/config.ts";
import type { Places as DevicePlaces } from "../device/devices.ts";
import { resolveDevice } from "../device/identity.ts";
import type { OpenTransport } from "../device/transport.ts";
import { type Command, runCommand } from "./commands.ts";

/** What an HTTP service of this box answered; undefined when it can't be reached. */
export type Ask = (url: string) => Promise<{ readonly status: number; readonly body: string } | undefined>;

/** Where to look; whatever is left out is the real one. The tests build such boxes. */
export interface Places extends DevicePlaces {
  readonly etc?: string;
  readonly run?: string;
  readonly usr?: string;
  /** The service's state folder. */
  readonly state?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly command?: Command;
  readonly resolve?: (path: string) => Promise<string>;
  readonly open?: (config: LineConfig) => Promise<OpenTransport>;
  readonly ask?: Ask;
  readonly now?: () => Date;
  readonly nodeVersion?: string;
}

/** The box that is looked at: its trees of files, and what it may be asked. Nothing on it is changed. */
export interface Box {
  readonly sys: string;
  readonly dev: string;
  readonly proc: string;
  readonly etc: string;
  readonly run: string;
  readonly usr: string;
  readonly state: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly command: Command;
  /** The device that a line's path means. @throws OpenError. */
  readonly resolve: (path: string) => Promise<string>;
  readonly open: (config: LineConfig) => Promise<OpenTransport>;
  readonly ask: Ask;
  readonly now: () => Date;
  readonly nodeVersion: string;
  /** The same places, as the line's own parts take them. */
  readonly places: DevicePlaces;
}

export function boxOf(places: Places): Box {
  const { sys = "/sys", dev = "/dev", proc = "/proc", etc = "/etc", run = "/run", usr = "/usr" } = places;
  const devicePlaces: DevicePlaces = { ...places, sys, dev, proc, groups: places.groups ?? join(etc, "group") };
  return {
    sys,
    dev,
    proc,
    etc,
    run,
    usr,
    state: places.state ?? "/var/lib/posline",
    env: places.env ?? process.env,
    command: places.command ?? runCommand,
    resolve: places.resolve ?? ((path) => resolveDevice(path, devicePlaces)),
    open: places.open ?? openSerial,
    ask: places.ask ?? askOverHttp,
    now: places.now ?? (() => new Date()),
    nodeVersion: places.nodeVersion ?? process.versions.node,
    places: devicePlaces,
  };
}

/** Loaded when a line is asked: on a box without the addon for its processor, everything else can still be looked at. */
async function openSerial(config: LineConfig): Promise<OpenTransport> {
  const { serialPort } = await import("../device/serial-port.ts");
  return serialPort(config);
}

/** Milliseconds that posline's own status may take. */
const askMs = 2_000;

/** Characters of an answer that are read: a status of a few lines. */
const answerMax = 256 * 1024;

const askOverHttp: Ask = async (url) => {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(askMs), redirect: "error" });
    return { status: answer.status, body: (await answer.text()).slice(0, answerMax) };
  } catch {
    return undefined;
  }
};

/** A file's text without the white space around it; undefined when it can't be read. */
export async function textAt(...path: readonly string[]): Promise<string | undefined> {
  return readFile(join(...path), "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

/** The names in a folder; none when it can't be read. */
export async function namesIn(...path: readonly string[]): Promise<readonly string[]> {
  return (await readdir(join(...path)).catch(() => [])).sort();
}
