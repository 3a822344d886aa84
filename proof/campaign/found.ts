import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LineRecorder } from "../../src/capture/recorder.ts";
import { recordingText } from "../../src/capture/recording.ts";
import type { LineObserve } from "../../src/line/line.ts";
import type { Kind } from "./batches.ts";
import type { WatchedLine } from "./line-life.ts";
import { outDir } from "./table.ts";

/** A world that broke a promise, as small as it could be made: as a time line, and of lines as a recording for `posline replay`. */
export interface Found {
  readonly message: string;
  readonly timeline: readonly string[];
  /** What `posline replay` reads; empty of whole boxes. */
  readonly recording: string;
  /** From which the world can be run again. */
  readonly world: unknown;
}

/** Someone who writes down what happens in a world. */
export class Notes {
  readonly timeline: string[] = [];
  readonly #recorders: LineRecorder[] = [];

  say(atMs: number, text: string): void {
    this.timeline.push(`${String(Math.round(atMs)).padStart(12)} ms  ${text}`);
  }

  watch(line: WatchedLine): LineObserve {
    const recorder = new LineRecorder(line);
    this.#recorders.push(recorder);
    return (event, effects, now, engine) => recorder.observe(event, effects, now, engine);
  }

  get recording(): string {
    return this.#recorders.map((each) => recordingText(each.recording([]))).join("");
  }
}

/** Lives the world once more. @param before How it broke among others. */
export async function foundIn<World, Tally>(kind: Kind<World, Tally>, world: World, before?: unknown): Promise<Found> {
  const notes = new Notes();
  let message = `it breaks only with what came before it: ${String(before)}`;
  try {
    await kind.live(world, kind.emptyTally(), notes);
  } catch (error) {
    message = error instanceof Error ? error.message : String(error);
  }
  return { message, timeline: notes.timeline, recording: notes.recording, world };
}

/** Prints it, and writes it beside the results. */
export function writeFound({ message, timeline, recording, world }: Found, name: string): void {
  mkdirSync(outDir, { recursive: true });
  const path = join(outDir, `${name}.jsonl`);
  if (recording !== "") writeFileSync(path, recording);
  const text = [message, ...timeline, ...(recording === "" ? [] : [`posline replay ${path}`]), JSON.stringify(world)];
  writeFileSync(join(outDir, `${name}.txt`), `${text.join("\n")}\n`);
  console.error(`broken: ${text.join("\n")}`);
}
