import { readlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { isPoslineUnit, serviceIn } from "../device/holders.ts";
import { type Host, namesIn, readTextAt } from "./host.ts";

/** A process of the host. */
export interface RunningProcess {
  readonly pid: number;
  /** The command name, as the kernel keeps it. */
  readonly name: string;
  readonly args: readonly string[];
  /** The systemd unit that the process belongs to. */
  readonly unit: string | undefined;
}

/** The processes of the host, read once; names and units are open to everybody, descriptors to their user and root. */
export class Processes {
  readonly #proc: string;
  readonly #running: readonly RunningProcess[];
  #sockets: Promise<ReadonlyMap<string, readonly RunningProcess[]>> | undefined;

  constructor(proc: string, running: readonly RunningProcess[]) {
    this.#proc = proc;
    this.#running = running;
  }

  of(pid: number): RunningProcess | undefined {
    return this.#running.find((each) => each.pid === pid);
  }

  find(fits: (running: RunningProcess) => boolean): readonly RunningProcess[] {
    return this.#running.filter(fits);
  }

  named(name: string): RunningProcess | undefined {
    return this.#running.find((each) => each.name === name);
  }

  /** The processes that have a socket open, by its inode, as far as this user may see. */
  async holding(inode: string): Promise<readonly RunningProcess[]> {
    this.#sockets ??= this.#readSockets();
    return (await this.#sockets).get(inode) ?? [];
  }

  async #readSockets(): Promise<ReadonlyMap<string, readonly RunningProcess[]>> {
    const found = new Map<string, RunningProcess[]>();
    for (const running of this.#running) {
      const folder = join(this.#proc, String(running.pid), "fd");
      for (const descriptor of await namesIn(folder)) {
        const target = await readlink(join(folder, descriptor)).catch(() => "");
        const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
        if (inode === undefined) continue;
        const holders = found.get(inode) ?? [];
        if (!holders.includes(running)) found.set(inode, [...holders, running]);
      }
    }
    return found;
  }
}

export async function readProcesses({ proc }: Pick<Host, "proc">): Promise<Processes> {
  const pids = (await namesIn(proc)).filter((name) => /^\d+$/.test(name)).map(Number);
  const running = await Promise.all(
    pids.map(async (pid): Promise<RunningProcess> => {
      const folder = join(proc, String(pid));
      const [name, line, group] = await Promise.all([
        readTextAt(folder, "comm"),
        readTextAt(folder, "cmdline"),
        readTextAt(folder, "cgroup"),
      ]);
      const args = (line ?? "").split("\0").filter((arg) => arg !== "");
      return { pid, name: name ?? "", args, unit: serviceIn(group ?? "") };
    }),
  );
  return new Processes(
    proc,
    running.sort((one, other) => one.pid - other.pid),
  );
}

/** How a posline that drives lines is called here: its unit, or `posline` where a person started it; undefined of every other process. */
export function poslineNameOf(running: RunningProcess): string | undefined {
  if (isPoslineUnit(running.unit)) return running.unit;
  const args = poslineArgsOf(running);
  const isBridge = args !== undefined && (args.length === 0 || args.includes("serve") || args.includes("gateway"));
  return isBridge ? "posline" : undefined;
}

/** The command of a posline that is a tool and no bridge: `tap`, `emulate`. It may have a device or a port, and serves no till. */
export function poslineToolOf(running: RunningProcess): string | undefined {
  return poslineNameOf(running) === undefined ? poslineArgsOf(running)?.find((arg) => !arg.startsWith("-")) : undefined;
}

/** The arguments a posline was started with; undefined of another program, which may well have a file of that name. */
function poslineArgsOf({ args }: RunningProcess): readonly string[] | undefined {
  const at = args.slice(0, 4).findIndex((arg) => /^posline(\.[cm]js)?$/.test(basename(arg)));
  const isProgram = at === 0 || /^node(js)?$/.test(basename(args[0] ?? ""));
  return at !== -1 && isProgram ? args.slice(at + 1) : undefined;
}
