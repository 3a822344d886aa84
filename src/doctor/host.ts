import { spawn } from "node:child_process";
import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { emulatedPath, type LineConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import type { Places as DevicePlaces } from "../device/devices.ts";
import { resolveDevice } from "../device/identity.ts";
import { OpenError, type OpenTransport } from "../device/transport.ts";

/** Asks an HTTP service of this host; gives undefined if it can't be reached. */
export type HttpGet = (
  url: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string } | undefined>;

/** The host that is looked at: its trees of files, its commands and its HTTP services. Nothing on it is changed. */
export interface Host {
  readonly sys: string;
  readonly dev: string;
  readonly proc: string;
  readonly etc: string;
  readonly run: string;
  readonly usr: string;
  /** The service's state folder. */
  readonly state: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly command: RunCommand;
  /** The device that a line's path means. @throws OpenError. */
  readonly resolve: (path: string) => Promise<string>;
  readonly open: (config: LineConfig) => Promise<OpenTransport>;
  readonly httpGet: HttpGet;
  readonly now: () => Date;
  readonly nodeVersion: string;
  /** The folders of `HostPlaces`, as the line's own parts take them. */
  readonly places: DevicePlaces;
}

/** What to look at in place of the real one; the tests build such hosts. */
export type HostPlaces = DevicePlaces & Partial<Omit<Host, "places">>;

export function hostOf(places: HostPlaces): Host {
  const { sys = "/sys", dev = "/dev", proc = "/proc", etc = "/etc", run = "/run", usr = "/usr" } = places;
  const devicePlaces: DevicePlaces = { ...places, sys, dev, proc, groups: places.groups ?? join(etc, "group") };
  return {
    ...{ state: "/var/lib/posline", env: process.env, nodeVersion: process.versions.node },
    ...{ command: runCommand, open: openSerial, httpGet, now: () => new Date() },
    resolve: (path) => resolveDevice(path, devicePlaces),
    ...places,
    ...{ sys, dev, proc, etc, run, usr, places: devicePlaces },
  };
}

/** The device that a line's path means now; undefined if it isn't there, and of a line without one. */
export async function nodeOf(path: string, host: Host): Promise<string | undefined> {
  if (path === emulatedPath || isTcpPath(path)) return undefined;
  return host.resolve(path).catch((error: unknown) => {
    if (error instanceof OpenError) return undefined;
    throw error;
  });
}

/** Loaded when a line is probed: on a host without the addon for its processor, everything else can still be looked at. */
async function openSerial(config: LineConfig): Promise<OpenTransport> {
  const { openerOf } = await import("../device/opener.ts");
  return openerOf(config);
}

/** Milliseconds that posline's own status may take. */
const httpGetMs = 2_000;

/** Characters of an answer that are read: a status of a few lines. */
const bodyCharsMax = 256 * 1024;

const httpGet: HttpGet = async (url, headers = {}) => {
  try {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(httpGetMs), redirect: "error" });
    return { status: answer.status, body: (await answer.text()).slice(0, bodyCharsMax) };
  } catch {
    return undefined;
  }
};

/** A file's text without the white space around it; undefined when it can't be read. */
export async function readTextAt(...path: readonly string[]): Promise<string | undefined> {
  return readFile(join(...path), "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

/** The names in a folder; none when it can't be read. */
export async function namesIn(...path: readonly string[]): Promise<readonly string[]> {
  return (await readdir(join(...path)).catch(() => [])).sort();
}

/** A command's output, or why there is none. */
export type CommandResult =
  | { readonly ran: true; readonly code: number; readonly out: string }
  | { readonly ran: false; readonly why: string };

/** Runs a program of the host, without a shell, and only to read its output. */
export type RunCommand = (program: string, args: readonly string[]) => Promise<CommandResult>;

/** Milliseconds a command may take: systemctl waits for a bus that may not answer. */
const commandMs = 3_000;

/** Bytes of output that are kept: what is asked for is a few lines. */
const outputBytesMax = 64 * 1024;

export const runCommand = (program: string, args: readonly string[], timeoutMs = commandMs): Promise<CommandResult> =>
  new Promise((resolve) => {
    let out = "";
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      env: { ...process.env, LC_ALL: "C", SYSTEMD_COLORS: "0", SYSTEMD_PAGER: "" },
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (out.length < outputBytesMax) out += text;
    });
    child.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ ran: false, why: error.code === "ENOENT" ? `there is no ${program} here` : `${program}: ${error.message}` }),
    );
    child.on("close", (code, signal) =>
      resolve(
        code === null
          ? { ran: false, why: `${program} ended by ${String(signal)}, or took longer than ${timeoutMs} ms` }
          : { ran: true, code, out },
      ),
    );
  });

/** The folder of the USB device that a tty belongs to. */
export async function usbDeviceFolder({ sys }: Host, node: string): Promise<string | undefined> {
  const device = await realpath(join(sys, "class", "tty", basename(node), "device")).catch(() => undefined);
  if (device === undefined) return undefined;
  for (let at = device; dirname(at) !== at && basename(at) !== "devices"; at = dirname(at)) {
    if ((await readTextAt(at, "idVendor")) !== undefined) return at;
  }
  return undefined;
}

/** The folders of udev's rules. If two rules have one name, the first folder's counts. */
export function udevRuleFolders({ etc, run, usr }: Host): readonly string[] {
  return [etc, run, join(usr, "lib")].map((folder) => join(folder, "udev", "rules.d"));
}
