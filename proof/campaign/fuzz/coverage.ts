import { readFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector/promises";
import { SourceMap } from "node:module";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Which lines of which files ran, by V8's own count. It must be started before the files are loaded. What runs is what tsx made of
 * them, so each place is led back to its line by the map that tsx leaves behind.
 */

const src = fileURLToPath(new URL("../../../src/", import.meta.url));

/** What was reached of some files. */
export interface Coverage {
  readonly lines: number;
  readonly linesReached: number;
  /** Blocks that V8 counts apart: functions, and the arms of branches. */
  readonly branches: number;
  readonly branchesReached: number;
  /** Lines that weren't, by file: `wire/length.ts: 40, 52-55`. */
  readonly unreached: readonly string[];
}

/** One file of `src/` by its path there. */
interface FileCoverage {
  readonly path: string;
  /** By line, whether any of it ran. */
  readonly lines: ReadonlyMap<number, boolean>;
  readonly branches: number;
  readonly branchesReached: number;
}

export class CoverageMeter {
  readonly #session = new Session();
  readonly #scripts = new Map<string, { readonly url: string; readonly map: string }>();

  async start(): Promise<void> {
    this.#session.connect();
    this.#session.on("Debugger.scriptParsed", ({ params: { scriptId, url, sourceMapURL = "" } }) => {
      if (url.startsWith("file:") && fileURLToPath(url.split("?")[0] ?? "").startsWith(src)) {
        this.#scripts.set(scriptId, { url, map: sourceMapURL });
      }
    });
    await this.#session.post("Debugger.enable");
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** What ran since the last call. */
  async take(): Promise<CoverageCounts> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    const files: FileCoverage[] = [];
    for (const script of result) {
      const known = this.#scripts.get(script.scriptId);
      if (known === undefined) continue;
      const { scriptSource } = await this.#session.post("Debugger.getScriptSource", { scriptId: script.scriptId });
      const file = fileOf(script, scriptSource, known.map);
      if (file !== undefined) files.push(file);
    }
    return new CoverageCounts(files);
  }

  /** Nothing is counted any more: what comes runs at full speed. */
  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }
}

export class CoverageCounts {
  readonly #files: readonly FileCoverage[];

  constructor(files: readonly FileCoverage[]) {
    this.#files = files;
  }

  /**
   * @param sources Files, or folders with all that is in them.
   * @param loaded What ran while the files were loaded, which counts as reached.
   */
  of(sources: readonly string[], loaded: CoverageCounts): Coverage {
    const files = this.#files.filter(({ path }) => sources.some((source) => path === source || path.startsWith(`${source}/`)));
    const all = { lines: 0, linesReached: 0, branches: 0, branchesReached: 0 };
    const unreached: string[] = [];
    for (const { path, lines, branches, branchesReached } of files) {
      const before = loaded.#files.find((each) => each.path === path)?.lines;
      const missed = [...lines].flatMap(([line, ran]) => (ran || before?.get(line) === true ? [] : [line]));
      missed.sort((one, other) => one - other);
      all.lines += lines.size;
      all.linesReached += lines.size - missed.length;
      all.branches += branches;
      all.branchesReached += branchesReached;
      if (missed.length > 0) unreached.push(`${path}: ${rangesText(missed)}`);
    }
    return { ...all, unreached };
  }
}

function fileOf({ url, functions }: Profiler.ScriptCoverage, source: string, mapUrl: string): FileCoverage | undefined {
  const [, base64 = ""] = /^data:application\/json;base64,(.*)$/s.exec(mapUrl) ?? [];
  if (base64 === "") return undefined;
  const path = fileURLToPath(url.split("?")[0] ?? "");
  const ran = ranIn(functions, source.length);
  const map = new SourceMap(JSON.parse(Buffer.from(base64, "base64").toString("utf8")));
  const original = readFileSync(path, "utf8").split("\n");
  const lines = new Map<number, boolean>();
  let [line, column] = [0, 0];
  for (let at = 0; at < source.length; at++) {
    // A token begins where a letter, digit or sign follows another kind.
    if (/[\w"'`{([]/.test(source[at] ?? "")) {
      const entry = map.findEntry(line, column);
      if ("originalLine" in entry && entry.originalLine !== undefined && isCode(original[entry.originalLine])) {
        const number = entry.originalLine + 1;
        lines.set(number, lines.get(number) === true || ran[at] === 1);
      }
    }
    column++;
    if (source[at] === "\n") [line, column] = [line + 1, 0];
  }
  const ranges = functions.flatMap((each) => each.ranges);
  const branchesReached = ranges.filter(({ count }) => count > 0).length;
  return { path: relative(src, path), lines, branches: ranges.length, branchesReached };
}

/** By character, whether it ran: an inner range says more than the one around it. */
function ranIn(functions: readonly Profiler.FunctionCoverage[], length: number): Uint8Array {
  const ran = new Uint8Array(length);
  const ranges = functions.flatMap((each) => each.ranges);
  ranges.sort((one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset);
  for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return ran;
}

/** Neither empty nor a comment, an import or a bracket alone. */
function isCode(line = ""): boolean {
  return !/^\s*(?:$|\/\/|\/?\*|import |export (?:type|interface) |[\])};,]+$)/.test(line);
}

/** `40, 52-55`. */
function rangesText(lines: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const line of lines) {
    const last = ranges.at(-1);
    if (last !== undefined && line <= last[1] + 2) last[1] = line;
    else ranges.push([line, line]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
}
