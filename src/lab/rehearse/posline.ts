import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { contracts } from "../../contract/contracts.ts";
import { type ContractName, contractNames } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { parseObject } from "../../envelope/json.ts";

/** The posline of a rehearsal: a process of its own, so that it can be killed as a box loses its power, with a journal that stays. */

export interface PoslineOptions {
  /** For its configuration and its journal. */
  readonly folder: string;
  /** The program that is running: what is rehearsed is what ships. */
  readonly program: readonly string[];
  /** The path of its line. */
  readonly line: string;
  readonly merchantId: string;
  /** Settings of its services, beside those that every rehearsal has. */
  readonly settings: Readonly<Partial<Record<ContractName, object | undefined>>>;
  /** Origins of pages that may call it. */
  readonly origins: readonly string[];
  /** Told of each exchange, each change of its line, and of its own end. */
  readonly saw: (text: string) => void;
}

export type ServicePorts = Readonly<Record<ContractName, number>>;

export const anyPorts: ServicePorts = { fiscal: 0, bank: 0, qr: 0 };

/** The contracts' own ports, and any for one that is taken. */
export async function usualPorts(): Promise<ServicePorts> {
  const free = async (name: ContractName) => {
    const server = createServer().listen({ host: "127.0.0.1", port: contracts[name].port });
    return new Promise<number>((resolve) => {
      server.once("error", () => resolve(0));
      server.once("listening", () => server.close(() => resolve(contracts[name].port)));
    });
  };
  return { fiscal: await free("fiscal"), bank: await free("bank"), qr: await free("qr") };
}

/** Milliseconds that posline waits for an answer in a rehearsal, so that a late one can be waited for. */
export const rehearsalReplyMs = 4_000;

/** Milliseconds for which a call waits for its turn, so that a till meets the refusal. */
const queueWaitMs = 1_500;

/** Milliseconds until posline must be there. */
const startMsMax = 90_000;

/** Without `Prefer` cash is sent again only once the till has asked; and each copy is printed. */
const neverTwice: ReadonlySet<string> = new Set(["/deposit", "/withdraw", "/check_copy"]);

const nothing = () => ({ wasHeldUp: false, askedMs: [] as number[], twice: [] as string[] });

/** Routes by which a till asks for an operation. */
const questions = new Set(contractNames.flatMap((name) => contracts[name].routes.map(({ polling }) => polling?.route)));

export class PoslineError extends Error {
  override readonly name = "PoslineError";
}

export class Posline {
  readonly #options: PoslineOptions;
  readonly #file: string;
  #ports = anyPorts;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isLineIdle = false;
  #seen = nothing();
  #lastCall = "";
  #wake = () => {};
  #complaint = "";

  constructor(options: PoslineOptions) {
    const { folder, line, merchantId, settings, origins } = options;
    this.#options = options;
    this.#file = join(folder, "posline.json");
    const merchantIdFile = join(folder, "merchant-id");
    writeFileSync(merchantIdFile, merchantId, { mode: 0o600 });
    const service = { line: "till", replyTimeoutMs: rehearsalReplyMs, allowOrigins: origins };
    writeFileSync(
      this.#file,
      JSON.stringify({
        lines: { till: { path: line, queueWaitMs } },
        services: {
          fiscal: { ...service, merchantIdFile, ...settings.fiscal },
          bank: { ...service, ...settings.bank },
          qr: { ...service, ...settings.qr },
        },
        journal: { folder },
      }),
    );
  }

  /** Where its services listen since the last start. */
  get ports(): ServicePorts {
    return this.#ports;
  }

  /** Since the last look: whether the line held up or refused a call, the questions in the busiest second, what was called twice in a row. */
  look() {
    const { wasHeldUp, askedMs, twice } = this.#seen;
    this.#seen = nothing();
    const inSecondOf = (one: number) => askedMs.filter((ms) => ms >= one && ms < one + 1_000).length;
    return { wasHeldUp, questionsPerSecond: Math.max(0, ...askedMs.map(inSecondOf)), twice };
  }

  /** Starts it, and waits until its services listen. */
  async start(): Promise<void> {
    const [command = process.execPath, ...args] = this.#options.program;
    const ports = contractNames.map((name) => [`POSLINE_${name.toUpperCase()}_PORT`, "0"]);
    const child = spawn(command, [...args, "serve", "--config", this.#file, "--log-format", "json"], {
      stdio: ["ignore", "pipe", "pipe"],
      // One address: a port that is free at one may be taken at another.
      env: { PATH: process.env["PATH"] ?? "", POSLINE_HOST: "127.0.0.1", ...Object.fromEntries(ports) },
    });
    this.#child = child;
    this.#isLineIdle = false;
    this.#complaint = "";
    this.#ended = new Promise((resolve) => {
      const over = () => {
        if (this.#child === child) this.#child = undefined;
        this.#wake();
        resolve();
      };
      child.once("exit", over);
      child.once("error", over);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-2_048);
    });
    const found = new Map<string, number>();
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = parseObject(text) ?? {};
      if (line["msg"] === "listening") found.set(String(line["service"]), Number(line["port"]));
      this.#take(line);
      this.#wake();
    });
    await this.#until(() => contractNames.every((name) => found.has(name)));
    const portOf = (name: ContractName) => found.get(name) ?? 0;
    this.#ports = { fiscal: portOf("fiscal"), bank: portOf("bank"), qr: portOf("qr") };
  }

  /** Waits until its line is ready. */
  async ready(): Promise<void> {
    await this.#until(() => this.#isLineIdle);
  }

  /** kill -9, and a new start. */
  async kill(): Promise<void> {
    this.#options.saw("posline is killed");
    this.#child?.kill("SIGKILL");
    await this.#ended;
    await this.start();
    this.#options.saw("posline is there again");
  }

  /** Ends it as systemd does: what is on the line comes to its end. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.kill("SIGTERM");
    const limit = setTimeout(() => child.kill("SIGKILL"), 2 * rehearsalReplyMs);
    await this.#ended;
    clearTimeout(limit);
  }

  /** Ends it at once: the rehearsal is over. */
  end(): void {
    this.#child?.kill("SIGKILL");
  }

  async #until(holds: () => boolean): Promise<void> {
    let isLate = false;
    const limit = setTimeout(() => {
      isLate = true;
      this.#wake();
    }, startMsMax);
    try {
      while (!holds()) {
        if (this.#child === undefined || isLate) {
          const state = isLate ? `it is not ready after ${startMsMax / 1_000} s` : "it ended";
          throw new PoslineError(`Cannot start posline for the rehearsal: ${state}: ${this.#complaint.trim()}`);
        }
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      clearTimeout(limit);
    }
  }

  #take(line: JsonObject): void {
    const { msg, level } = line;
    if (msg === "line") {
      this.#isLineIdle = line["state"] === "idle";
      this.#options.saw(`the line is ${String(line["state"])}: ${String(line["reason"])}`);
    } else if (msg === "exchange") {
      const { route, key, httpStatus, outcome, result, reason, queueMs } = line;
      if (questions.has(String(route))) this.#seen.askedMs.push(nowMs());
      this.#seen.wasHeldUp ||= outcome === "not-sent" || Number(queueMs) > 100;
      const more = [outcome, result, reason].filter((each) => each !== undefined).join(", ");
      const name = [route, key].filter((each) => each !== undefined).join(" ");
      const isBlind = name === this.#lastCall && result === undefined && neverTwice.has(String(route));
      if (isBlind) this.#seen.twice.push(`fiscal ${route} twice in a row`);
      this.#lastCall = outcome === "not-sent" ? "" : name;
      this.#options.saw(`answers ${name} with ${String(httpStatus)}: ${more}`);
    } else if (level === "warn" || level === "error") {
      this.#options.saw(String(msg));
    }
  }
}
