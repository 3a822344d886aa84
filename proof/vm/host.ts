import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** This machine: which programs it has, and getting those it hasn't. */

export const projectDir = join(import.meta.dirname, "..", "..");
/** What is made once and kept; git ignores it. */
export const cacheDir = join(projectDir, "out", "vm");

/** Why nothing can be shown here. */
export class Skipped extends Error {
  override readonly name = "Skipped";
}

/** The path of a program, or undefined when this machine hasn't got it. */
export function found(program: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/sbin", "/usr/lib/systemd"];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

/** Runs a program to its end. */
export function ran(
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): SpawnSyncReturns<string> {
  const [command = "", ...args] = argv;
  return spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
}

/**
 * The same, for what must not fail.
 * @throws Error with the end of what it wrote.
 */
export function must(
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): string {
  const { status, stdout, stderr, error } = ran(argv, options);
  if (status === 0) return stdout;
  throw failure(argv, error?.message ?? `exit code ${status}`, stdout + stderr);
}

const failure = (argv: readonly string[], why: string, wrote: string) =>
  new Error(`Cannot run ${argv.join(" ")}: ${why}\n${wrote.slice(-2000)}`);

/** The same beside what else is done here. */
export async function finished(argv: readonly string[], options: { readonly cwd?: string } = {}): Promise<void> {
  const [command = "", ...args] = argv;
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let wrote = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (wrote += text));
  const [code] = await once(child, "close").catch((error: Error) => Promise.reject(failure(argv, error.message, wrote)));
  if (code !== 0) throw failure(argv, `exit code ${code}`, wrote);
}

/** Programs, and Debian's packages that have them. */
export const packages = {
  machine: {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    mmdebstrap: "mmdebstrap",
    busybox: "busybox-static",
    cpio: "cpio",
    depmod: "kmod",
    mke2fs: "e2fsprogs",
    zstd: "zstd",
    "dpkg-deb": "dpkg",
  },
  repository: { "apt-ftparchive": "apt-utils", gpg: "gpg" },
  centre: { prometheus: "prometheus", "systemd-journal-remote": "systemd-journal-remote" },
  arm: { mmdebstrap: "mmdebstrap", "qemu-aarch64-static": "qemu-user-static", "qemu-arm-static": "qemu-user-static" },
} as const satisfies Record<string, Readonly<Record<string, string>>>;

/**
 * Makes sure that the programs are there: as root, where apt is, what is missing is installed.
 * @throws Skipped where nothing can be installed; Error if apt can't install them, or CI would go on with nothing shown.
 */
export function need(programs: Readonly<Record<string, string>>): void {
  const missing = () => Object.keys(programs).filter((program) => found(program) === undefined);
  if (missing().length === 0) return;
  const wanted = [...new Set(missing().map((program) => programs[program] ?? program)), "debian-archive-keyring"];
  const command = `apt-get install ${wanted.join(" ")}`;
  if (found("apt-get") === undefined) throw new Skipped(`this machine has no ${missing().join(", ")}, and no apt to get it`);
  if (process.getuid?.() !== 0) throw new Skipped(`this machine has no ${missing().join(", ")}: run ${command} as root`);
  console.log(`Installing ${wanted.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  ran(["apt-get", "update", "-qq"], { env });
  const { status, stderr } = ran(["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...wanted], { env });
  if (status !== 0 || missing().length > 0) {
    throw new Error(`this machine has no ${missing().join(", ")}, and ${command} failed: ${stderr.trim().split("\n").at(-1)}`);
  }
}
