import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LineRecorder } from "../../src/capture/recorder.ts";
import { recordingText } from "../../src/capture/recording.ts";
import { emptyTally, LineLife, type World } from "./line-life.ts";
import { outDir } from "./table.ts";

/** A schedule that broke a promise, as small as it could be made: as a time line, and as a recording for `posline replay`. */
export interface Found {
  readonly message: string;
  readonly timeline: readonly string[];
  /** What `posline replay` reads. */
  readonly recording: string;
  /** From which the world can be run again. */
  readonly world: World;
}

/** Lives the world once more, with someone who writes it down. */
export function foundIn(world: World): Found {
  const timeline: string[] = [];
  const recorders: LineRecorder[] = [];
  let message = "";
  try {
    new LineLife(world, emptyTally(), {
      say: (atMs, text) => timeline.push(`${String(atMs).padStart(12)} ms  ${text}`),
      watch: (line) => {
        const recorder = new LineRecorder(line);
        recorders.push(recorder);
        return (event, effects, now, engine) => recorder.observe(event, effects, now, engine);
      },
    }).run();
  } catch (error) {
    message = error instanceof Error ? error.message : String(error);
  }
  return { message, timeline, recording: recorders.map((each) => recordingText(each.recording([]))).join(""), world };
}

/** Writes it beside the results. @returns where the recording is. */
export function writeFound({ message, timeline, recording, world }: Found, name: string, folder: string = outDir): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.jsonl`);
  writeFileSync(path, recording);
  const text = [message, ...timeline, `posline replay ${path}`, JSON.stringify(world)];
  writeFileSync(join(folder, `${name}.txt`), `${text.join("\n")}\n`);
  return path;
}
