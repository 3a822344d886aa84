import { benchCpu, pythonArgv } from "./machine.ts";
import { figureOf, type Running, type Workshop } from "./processes.ts";

/** What callers.py measures of a bridge that it asks. */
export type CallerFigures = {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly perS: number;
  /** Processor time of the bridge for each exchange. */
  readonly processorUs: number;
  /** Of the bridge, with the callers' connections open. */
  readonly rssMiB: number;
};

/** The longest run, at 9600 baud, takes half a minute. */
const runLimitMs = 120_000;

const figureNames = ["p50Us", "p99Us", "perS", "processorUs", "rssMiB"] as const;

/** What can be asked: a bridge by its ports, or the line itself by its path, with no bridge between. */
export interface Asked {
  readonly name: string;
  readonly kind: "http" | "raw" | "line";
  readonly targets: readonly (number | string)[];
  readonly process?: Running;
}

export interface CallerRun {
  readonly callers: number;
  readonly count: number;
  /** Exchanges before, which don't count. */
  readonly warmup: number;
  /** By default `/check`. */
  readonly route?: "/sale";
  /** What the responder was started to reply with; by default its usual reply. */
  readonly replyBytes?: number;
}

/** Asks `count` times by so many callers; when that fails, says what the bridge had to say too. */
export async function askBy(workshop: Workshop, asked: Asked, run: CallerRun): Promise<CallerFigures> {
  const { callers, count, warmup, route = "/check", replyBytes = 0 } = run;
  const { name, kind, targets, process } = asked;
  const argv = pythonArgv("callers.py", kind, targets.join(","), callers, count, warmup, process?.pid ?? 0, route, replyBytes);
  const client = workshop.start(`${name}-callers`, argv, { cpu: benchCpu, talks: true });
  try {
    const dead = process?.ended.then((how) => Promise.reject(new Error(`it ${how}`)));
    const line = await Promise.race([client.line(runLimitMs), ...(dead === undefined ? [] : [dead])]);
    // Each of its names.
    return Object.fromEntries(figureNames.map((figure) => [figure, figureOf(line, figure)])) as CallerFigures;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`Cannot measure ${name}: ${message}\nits log ends with:\n${process?.log() ?? ""}`);
  }
}

/** What the harness alone takes, right on a line. */
export const askLine = (workshop: Workshop, link: string, count = 500, warmup = 200) =>
  askBy(workshop, { name: "floor", kind: "line", targets: [link] }, { callers: 1, count, warmup });
