import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import type { LineEngine } from "../../src/line/engine.ts";
import type { Exchange } from "../../src/line/exchange.ts";

/**
 * The line's engine as it is, compiled so that its private fields can be read: only then can two of its states be compared while a call
 * is in flight. Each `#name` of the source becomes `p_name`, and nothing else is changed.
 */

export type OpenEngine = { readonly LineEngine: typeof LineEngine; readonly Exchange: typeof Exchange };

const root = new URL("../../", import.meta.url).pathname;

const entry = `
export { LineEngine } from "./src/line/engine.ts";
export { Exchange } from "./src/line/exchange.ts";
`;

/** @param alter Changes the source, to see that what breaks is found. */
export async function openEngine(alter: (source: string) => string = (source) => source): Promise<OpenEngine> {
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: root, loader: "ts" },
    ...{ bundle: true, write: false, format: "esm", platform: "node", target: "node20", logLevel: "silent" },
    plugins: [
      {
        name: "readable",
        setup: ({ onLoad }) => {
          onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
            contents: alter(await readFile(path, "utf8")).replace(/#([a-z]\w*)/gi, "p_$1"),
            loader: "ts",
          }));
        },
      },
    ],
  });
  const [{ text } = { text: "" }] = outputFiles;
  // It exports what the entry says.
  return (await import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`)) as OpenEngine;
}

/** Numbers from here on are moments; the engine's durations are far below, and its counts too. */
const momentMin = 500_000;

/** What is longer ago than everything that the engine waits for makes no difference any more. */
const agoMax = 600_000;

/** Words for people, times that only they read, and what never changes. */
const skipped = new Set([
  ...["p_reason", "p_evidence", "p_whyStopping", "cameMs", "p_sentMs", "p_lastBusyMs"],
  ...["p_config", "p_limits", "p_name", "p_line", "p_report", "request", "frame", "onEnded"],
]);

/** All that the engine's next decisions depend on, with moments as milliseconds from now. */
export function keyOf(value: unknown, now: number): string {
  if (typeof value === "number") {
    return value >= momentMin && value < Number.POSITIVE_INFINITY ? `@${Math.max(-agoMax, value - now)}` : String(value);
  }
  if (typeof value === "function") return "";
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Map) return `{${[...value].map(([name, each]) => `${name}:${keyOf(each, now)}`).join()}}`;
  if (Array.isArray(value)) return `[${value.map((each) => keyOf(each, now)).join()}]`;
  // A service is known by its name.
  if ("questionOf" in value && "service" in value) return String(value.service);
  // Of a service's liveness, when it was heard is for people too.
  if ("isReported" in value && "silentSinceMs" in value && "heardMs" in value) {
    return `${value.heardMs !== undefined}${value.isReported}${keyOf(value.silentSinceMs, now)}`;
  }
  const fields = Object.entries(value).filter(([name]) => !skipped.has(name));
  // What was drawn is a number of any size, and never a moment.
  return `{${fields.map(([name, each]) => `${name}:${name === "p_drawn" ? each : keyOf(each, now)}`).join()}}`;
}
