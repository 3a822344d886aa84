import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { transformSync } from "esbuild";
import { benchCpu, benchDir, cacheDir, found, freePort, lineCpu, projectDir, pythonArgv } from "./machine.ts";
import { figureOf, type Running, type Workshop } from "./processes.ts";

/** The bridges that are measured: each on a pty of its own with a responder of its own, asked by the same client. */

/** `ser2net` has chardelay off, `ser2netWide` also buffers that hold a whole frame. */
export type BridgeKind = "posline" | "fastify" | "socat" | "ser2net" | "ser2netWide";

/** A bridge with its line, ready to be asked. */
export interface Bridge {
  readonly kind: BridgeKind;
  readonly port: number;
  /** The bridge's own process. */
  readonly process: Running;
  readonly responder: Running;
}

/** How fast the responder's line is; none: it answers at once. */
export interface Pace {
  readonly baudRate: number;
  readonly pieceBytes: number;
  /** This many exchanges are answered at once before the pace begins, for the bridge's compiler. */
  readonly warmUpExchanges: number;
}

/** What a client run took. */
export type ClientFigures = { readonly p50Us: number; readonly p99Us: number; readonly perS: number };

/** The bundle that is measured; another one by BENCH_PRODUCT. */
export const productPath = process.env["BENCH_PRODUCT"] ?? join(projectDir, "dist/posline.cjs");

/** How the product is started on a config. */
export function productCommand(config: string, nodePath = process.execPath): readonly string[] {
  return [nodePath, productPath, "serve", "--config", config];
}

/** Why the product can't be measured, or undefined when it can. */
export function productMissing(): string | undefined {
  return existsSync(productPath) ? undefined : `${productPath} isn't there, run npm run build first`;
}

/** A bridge of ours in this folder as plain JavaScript beside the packages it imports, so that no loader is measured with it. */
export function builtBridge(source: string): string {
  const out = join(cacheDir, `${basename(source, ".ts")}.mjs`);
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(
    out,
    transformSync(readFileSync(join(benchDir, source), "utf8"), { loader: "ts", target: "node20", format: "esm" }).code,
  );
  return out;
}

/** A line whose other end answers; returns the path to open. */
export async function startResponder(workshop: Workshop, name: string, pace?: Pace): Promise<[string, Running]> {
  const link = workshop.path(`${name}.line`);
  const argv = pythonArgv(
    "responder.py",
    link,
    ...(pace === undefined ? [] : [pace.baudRate, pace.pieceBytes, pace.warmUpExchanges]),
  );
  // A paced line is a clock: it must not wait for the bridge that it measures.
  const responder = workshop.start(`${name}-responder`, argv, { cpu: pace === undefined ? benchCpu : lineCpu, talks: true });
  figureOf(await responder.line(10_000), "ready");
  return [link, responder];
}

/** The smallest config that serves the bank on a line of its own, as a kiosk would have it. */
export function bankConfig(link: string, port: number, baudRate: number): string {
  return JSON.stringify({ lines: { till: { path: link, baudRate } }, services: { bank: { line: "till", port } } });
}

function productArgv(workshop: Workshop, link: string, port: number, options: BridgeOptions): readonly string[] {
  const config = workshop.path(`posline-${port}.json`);
  writeFileSync(config, bankConfig(link, port, options.pace?.baudRate ?? 115_200));
  return productCommand(config, options.nodePath);
}

/** ser2net tuned for the shortest round trip: no telnet, no Nagle, no wait for more characters. */
export function ser2netArgv(workshop: Workshop, link: string, port: number, more: readonly string[] = []): readonly string[] {
  const config = workshop.path(`ser2net-${port}.yaml`);
  const lines = [
    "connection: &bench",
    `  accepter: tcp(nodelay=true),127.0.0.1,${port}`,
    "  timeout: 0",
    `  connector: serialdev(nouucplock=true),${link},115200n81,local`,
    "  options:",
    "    chardelay: false",
    ...more,
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  return [found("ser2net") ?? "ser2net", "-n", "-c", config];
}

/** Its buffers are of 64 bytes by default, so that a reply comes in four and more pieces. */
const ser2netWholeFrames = ["    dev-to-net-bufsize: 65536", "    net-to-dev-bufsize: 65536"];

export interface BridgeOptions {
  readonly pace?: Pace;
  /** The node binary to run the product on; by default this one. */
  readonly nodePath?: string;
}

/** Starts a bridge on a line of its own. */
export async function startBridge(workshop: Workshop, kind: BridgeKind, options: BridgeOptions = {}): Promise<Bridge> {
  const port = await freePort();
  const [link, responder] = await startResponder(workshop, `${kind}-${port}`, options.pace);
  const baudRate = String(options.pace?.baudRate ?? 115_200);
  const argv: Record<BridgeKind, () => readonly string[]> = {
    posline: () => productArgv(workshop, link, port, options),
    // Like the product it writes one log line an exchange.
    fastify: () => [process.execPath, builtBridge("fastify-bridge.ts"), link, String(port), baudRate, "log"],
    socat: () => [
      found("socat") ?? "socat",
      // Lets go of the line with its client: by default it would eat the next client's first reply.
      "-t0",
      `TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr,nodelay,fork`,
      `FILE:${link},rawer`,
    ],
    ser2net: () => ser2netArgv(workshop, link, port, []),
    ser2netWide: () => ser2netArgv(workshop, link, port, ser2netWholeFrames),
  };
  return { kind, port, responder, process: workshop.start(`${kind}-${port}`, argv[kind](), { cpu: benchCpu }) };
}

/** How a client asks. */
export interface ClientRun {
  readonly clients: number;
  readonly count: number;
  /** Exchanges before, which don't count. */
  readonly warmup: number;
  readonly limitMs?: number;
  /** True for sales, each under a key of its own, in place of one question; over one connection. */
  readonly sells?: boolean;
}

/** Asks a bridge `count` times over `clients` connections. */
export async function ask(workshop: Workshop, bridge: Bridge, run: ClientRun): Promise<ClientFigures> {
  const isHttp = bridge.kind === "posline" || bridge.kind === "fastify";
  const kind = run.sells === true ? "sale" : isHttp ? "http" : "raw";
  const argv = pythonArgv("client.py", kind, bridge.port, run.clients, run.count, run.warmup);
  return await clientFigures(
    workshop.start(`${bridge.kind}-client`, argv, { cpu: benchCpu, talks: true }),
    bridge,
    run.limitMs,
  );
}

/** Asks right on a line, with no bridge between: what the harness alone takes. */
export async function askLine(workshop: Workshop, link: string, count: number, warmup: number): Promise<ClientFigures> {
  const argv = pythonArgv("client.py", "line", link, 1, count, warmup);
  return await clientFigures(workshop.start("floor", argv, { cpu: benchCpu, talks: true }));
}

/** Waits for a client's one line of figures; when it fails, says what the bridge had to say too. */
export async function clientFigures(client: Running, bridge?: Bridge, limitMs = 120_000): Promise<ClientFigures> {
  try {
    const dead = bridge?.process.ended.then((how) => Promise.reject(new Error(`it ${how}`)));
    const line = await Promise.race([client.line(limitMs), ...(dead === undefined ? [] : [dead])]);
    return { p50Us: figureOf(line, "p50Us"), p99Us: figureOf(line, "p99Us"), perS: figureOf(line, "perS") };
  } catch (error) {
    if (bridge === undefined) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`Cannot measure ${bridge.kind}: ${message}\nits log ends with:\n${bridge.process.log()}`);
  }
}
