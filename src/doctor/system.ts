import type { Stats } from "node:fs";
import { stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { codeOf } from "../core/error-code.ts";
import { quoted } from "../core/shell-text.ts";
import { readAndWrite } from "../device/devices.ts";
import { serviceUser } from "../device/open-errors.ts";
import { type BoxFacts, mayUse, type ServiceAccount } from "./accounts.ts";
import { type Finding, finding } from "./finding.ts";
import { type Host, namesIn, readTextAt } from "./host.ts";

/** The oldest Node that posline runs on. */
const nodeOldest = [20, 19] as const;

export function nodeFinding({ nodeVersion }: Host): Finding {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const [oldestMajor, oldestMinor] = nodeOldest;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor))
    return finding("node", "ok", `Node ${nodeVersion}`);
  const cure = "install a newer Node, or the package posline-standalone, which brings its own";
  return finding("node", "bad", `Node ${nodeVersion} is older than ${nodeOldest.join(".")}`, { cure });
}

/** Years in which a clock is believed: a box without a battery begins at 1970, or at the moment at which it was switched off. */
const yearsPlausible = { min: 2025, max: 2099 } as const;

/** Terminals stamp receipts with their own clock; the box's is what log and journal are read by, and what TLS needs. */
export async function clockFindings(host: Host): Promise<Finding[]> {
  const now = host.now();
  const year = now.getUTCFullYear();
  const plausible = year >= yearsPlausible.min && year <= yearsPlausible.max;
  const cure = "sudo timedatectl set-ntp true; without a network: sudo timedatectl set-time 'YYYY-MM-DD hh:mm:ss'";
  const fact = `the clock says ${now.toISOString().replace(/\.\d+Z$/, "Z")}`;
  const cause = "log and journal carry the wrong time, and https upstreams are not trusted";
  const clock = plausible ? finding("clock", "ok", fact) : finding("clock", "warn", `${fact}, which can't be`, { cause, cure });
  return [clock, await syncFinding(host, cure)];
}

async function syncFinding(host: Host, cure: string): Promise<Finding> {
  const synchronized = () => finding("time sync", "ok", "the clock follows a time server");
  if ((await readTextAt(host.run, "systemd", "timesync", "synchronized")) !== undefined) return synchronized();
  const result = await host.command("timedatectl", ["show", "--property=NTPSynchronized", "--value"]);
  if (!result.ran) return finding("time sync", "skipped", `whether the clock follows a time server isn't known: ${result.why}`);
  const answer = result.out.trim();
  if (answer === "yes") return synchronized();
  if (answer !== "no")
    return finding("time sync", "skipped", "whether the clock follows a time server isn't known: timedatectl doesn't say");
  const cause = "log and journal have the box's own time, and the terminal's receipts the terminal's";
  return finding("time sync", "note", "the clock follows no time server", { cause, cure });
}

interface StateFacts extends BoxFacts {
  /** Whether a running posline says that it writes its journal there. */
  readonly isWritten: (folder: string) => boolean;
}

/** Whether the journal of money can be written. */
export async function stateFindings({ journal }: Config, { host, account, isWritten }: StateFacts): Promise<Finding[]> {
  if (journal === false) {
    const cause = "after a crash or a power cut it is unknown what had been sent";
    return [
      finding("journal", "note", 'no journal of money is kept ("journal": false)', {
        cause,
        cure: 'take "journal": false out of the configuration',
      }),
    ];
  }
  const { folder } = journal;
  // Without a folder the configuration's own warning says it.
  if (folder === undefined) return [];
  // The folder doesn't tell which user started that posline.
  if (isWritten(folder)) return [finding("journal", "ok", `posline writes it into ${folder}`)];
  const here = await stat(folder).catch((error: NodeJS.ErrnoException) => error.code ?? "unknown");
  if (typeof here === "string") return [missing(folder, here, account)];
  if (!here.isDirectory())
    return [finding("journal", "bad", `${folder} is not a folder`, { cure: `sudo rm ${quoted(folder)}` })];
  const tryAccess = host.places.access ?? readAndWrite;
  const refusal = await refusalOf(folder, tryAccess);
  // A read-only disk concerns everybody, even a user who may not write there anyway.
  if (refusal === "EROFS") return [readOnlyFinding(folder)];
  const file = join(folder, "journal");
  const journalFile = await stat(file).catch(() => undefined);
  const isDenied = async (path: string, found: Stats) =>
    account === undefined ? (await refusalOf(path, tryAccess)) !== undefined : !mayUse(account, found);
  const whose = account === undefined ? "this user" : `the service's user ${account.name}`;
  const mayNot = (path: string, mode: string) => {
    const give = (user: string) => `sudo chown ${user} ${quoted(path)} && sudo chmod ${mode} ${quoted(path)}`;
    const ask = `run this command as the user who starts posline: if that is this one, ${give('"$USER"')}`;
    const cure = account === undefined ? ask : give(`${serviceUser}:${serviceUser}`);
    return [finding("journal", "bad", `${whose} may not write into ${path}`, { cure })];
  };
  if (await isDenied(folder, here)) return mayNot(folder, "700");
  // A bridge that was started by another user, as by sudo, leaves a file that only that one may write.
  if (journalFile !== undefined && (await isDenied(file, journalFile))) return mayNot(file, "640");
  return [await roomFinding(folder, journal.bytes, whose)];
}

function missing(folder: string, code: string, account: ServiceAccount | undefined): Finding {
  if (code === "EACCES")
    return finding("journal", "skipped", `${folder} may not be looked into by this user: sudo posline doctor`);
  const cure = account === undefined ? `mkdir -p ${quoted(folder)}` : "sudo systemctl restart posline, which makes it";
  return finding("journal", "bad", `there is no folder ${folder} for the journal of money (${code})`, { cure });
}

/** The system's code for why this user may not read and write what is there; undefined when it may. */
const refusalOf = (path: string, tryAccess: (path: string) => Promise<void>): Promise<string | undefined> =>
  tryAccess(path).then(
    () => undefined,
    (error: unknown) => codeOf(error) ?? "denied",
  );

function readOnlyFinding(folder: string): Finding {
  const cause = "the kernel makes it so when a disk or card fails, or it is mounted so";
  const remount = `sudo mount -o remount,rw "$(findmnt -n -o TARGET -T ${quoted(folder)})"`;
  const cure = `sudo dmesg | tail shows whether the disk fails: replace it then; otherwise ${remount}`;
  return finding("journal", "bad", `the file system of ${folder} is read-only`, { cause, cure });
}

async function roomFinding(folder: string, bytes: number, whose: string): Promise<Finding> {
  const files = await statfs(folder).catch(() => undefined);
  const free = files === undefined ? undefined : files.bavail * files.bsize;
  const mib = (value: number) => `${Math.floor(value / 1024 / 1024)} MiB`;
  const more = free === undefined ? "" : `, ${mib(free)} are free`;
  // A journal whose file is there takes no more room.
  const isThere = (await namesIn(folder)).some((name) => name.startsWith("journal"));
  if (free !== undefined && !isThere && free < 2 * bytes) {
    const cure = `sudo journalctl --vacuum-size=50M; df -h ${quoted(folder)} shows what fills it`;
    return finding("journal", "warn", `${folder} has room for ${mib(free)}, and the journal of money needs ${mib(bytes)}`, {
      cure,
    });
  }
  return finding("journal", "ok", `${whose} may write into ${folder}${more}`);
}
