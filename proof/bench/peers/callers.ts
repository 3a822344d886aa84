import { benchCpu, pythonArgv } from "../machine.ts";
import { figureOf, type Running, type Workshop } from "../processes.ts";

/** What callers.py measures of a bridge that it asks. */
export interface CallerFigures {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly perS: number;
  /** Processor time of the bridge for each exchange. */
  readonly processorUs: number;
  /** Of the bridge, with the callers' connections open. */
  readonly rssMiB: number;
}

/** The longest run, at 9600 baud, takes half a minute. */
const runLimitMs = 120_000;

export const figureNames = ["p50Us", "p99Us", "perS", "processorUs", "rssMiB"] as const;

/** A bridge that can be asked. */
export interface Asked {
  readonly name: string;
  readonly kind: "http" | "raw";
  readonly ports: readonly number[];
  readonly process: Running;
}

export interface CallerRun {
  readonly callers: number;
  readonly count: number;
  readonly warmup: number;
  /** By default `/check`. */
  readonly route?: "/sale";
  /** What the responder was started to reply with; by default its usual reply. */
  readonly replyBytes?: number;
}

/** Asks a bridge `count` times by so many callers. */
export async function askBy(workshop: Workshop, asked: Asked, run: CallerRun): Promise<CallerFigures> {
  const { callers, count, warmup, route = "/check", replyBytes = 0 } = run;
  const bridge = [asked.kind, asked.ports.join(",")];
  const argv = pythonArgv("peers/callers.py", ...bridge, callers, count, warmup, asked.process.pid, route, replyBytes);
  const client = workshop.start(`${asked.name}-callers`, argv, { cpu: benchCpu, talks: true });
  try {
    const dead = asked.process.ended.then((how) => Promise.reject(new Error(`it ${how}`)));
    const line = await Promise.race([client.line(runLimitMs), dead]);
    const [p50Us, p99Us, perS, processorUs, rssMiB] = figureNames.map((name) => figureOf(line, name));
    return { p50Us: p50Us ?? 0, p99Us: p99Us ?? 0, perS: perS ?? 0, processorUs: processorUs ?? 0, rssMiB: rssMiB ?? 0 };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`Cannot measure ${asked.name}: ${message}\nits log ends with:\n${asked.process.log()}`);
  }
}
