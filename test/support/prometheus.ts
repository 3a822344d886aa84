import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "./bridge-process.ts";
import { freePorts } from "./free-port.ts";
import { until } from "./until.ts";

/** Debian's Prometheus, for tests that ask it rather than trust what they know of it. */

/** Why it can't be asked here; false where it can. */
export const noPrometheus: string | false =
  spawnSync("promtool", ["--version"]).error === undefined && spawnSync("prometheus", ["--version"]).error === undefined
    ? false
    : "there is no promtool and prometheus here: sudo apt-get install prometheus";

/**
 * Runs promtool.
 * @returns what it wrote.
 * @throws Error when it found something.
 */
export function promtool(args: readonly string[], input = ""): string {
  return execFileSync("promtool", args, { input, encoding: "utf8", timeout: 30_000 });
}

/** What Prometheus answers to a query. */
export interface QueryAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly { readonly metric: Readonly<Record<string, string>> }[] };
}

/** A Prometheus of the test's own that scrapes one port every second. */
export class PrometheusProcess {
  readonly #child: ChildProcess;
  readonly #url: string;
  readonly #folder: ReturnType<typeof scratchFolder>;

  private constructor(child: ChildProcess, url: string, folder: ReturnType<typeof scratchFolder>) {
    this.#child = child;
    this.#url = url;
    this.#folder = folder;
  }

  /** Starts it; it answers queries when this settles. */
  static async start(scrapedPort: number): Promise<PrometheusProcess> {
    const folder = scratchFolder();
    const [port] = await freePorts(1);
    const job = { job_name: "posline", static_configs: [{ targets: [`127.0.0.1:${scrapedPort}`] }] };
    // JSON is YAML.
    const file = join(folder.path, "prometheus.yml");
    writeFileSync(file, JSON.stringify({ global: { scrape_interval: "1s", scrape_timeout: "1s" }, scrape_configs: [job] }));
    const child = spawn(
      "prometheus",
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(folder.path, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=error",
      ],
      { stdio: ["ignore", "ignore", "inherit"] },
    );
    const prometheus = new PrometheusProcess(child, `http://127.0.0.1:${port}`, folder);
    await until(
      async () => (await fetch(`${prometheus.#url}/-/ready`).catch(() => undefined))?.ok === true,
      "Prometheus to start",
      20_000,
    );
    return prometheus;
  }

  async query(query: string): Promise<QueryAnswer> {
    const answer = await fetch(`${this.#url}/api/v1/query`, { method: "POST", body: new URLSearchParams({ query }) });
    // Its own API's form.
    return (await answer.json()) as QueryAnswer;
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
    this.#folder.remove();
  }
}
