import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { transformSync } from "esbuild";
import type { Asked } from "./callers.ts";
import { benchCpu, benchDir, cacheDir, found, freePort, lineCpu, projectDir, pythonArgv } from "./machine.ts";
import { figureOf, type Running, type Workshop } from "./processes.ts";

/** posline and the usual ways to reach a serial terminal from the network, each set up as its users set it up, on a pty of its own. */

/** The bundle that is measured; another one by BENCH_PRODUCT. */
const productPath = process.env["BENCH_PRODUCT"] ?? join(projectDir, "dist/posline.cjs");

/** How the product is started on a config. */
export function productCommand(config: string): readonly string[] {
  return [process.execPath, productPath, "serve", "--config", config];
}

/** Why the product can't be measured, or undefined when it can. */
export function productMissing(): string | undefined {
  return existsSync(productPath) ? undefined : `${productPath} isn't there, run npm run build first`;
}

/** Writes a configuration. @returns its path. */
export function configFile(workshop: Workshop, name: string, config: object): string {
  const path = workshop.path(`${name}.json`);
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** Starts posline on a configuration, by default on the core of all that is compared. */
export function startProduct(
  workshop: Workshop,
  name: string,
  config: object,
  { isPinned = true, flags = [] }: { readonly isPinned?: boolean; readonly flags?: readonly string[] } = {},
): Running {
  const argv = [...productCommand(configFile(workshop, name, config)), ...flags];
  return workshop.start(name, argv, isPinned ? { cpu: benchCpu } : {});
}

/** How fast the responder's line is; none: it answers at once. */
export interface Pace {
  readonly baudRate: number;
  readonly pieceBytes: number;
  /** This many exchanges are answered at once before the pace begins, for the bridge's compiler. */
  readonly warmUpExchanges: number;
}

/** A line whose other end answers, at a pace, or with a reply of so many bytes; returns the path to open. */
export async function startResponder(workshop: Workshop, name: string, how?: Pace | number): Promise<[string, Running]> {
  const link = workshop.path(`${name}.line`);
  const isPaced = typeof how === "object";
  const numbers = isPaced ? [how.baudRate, how.pieceBytes, how.warmUpExchanges] : how === undefined ? [] : [how];
  // A paced line is a clock: it must not wait for the bridge that it measures.
  const cpu = isPaced ? lineCpu : benchCpu;
  const responder = workshop.start(`${name}-responder`, pythonArgv("responder.py", link, ...numbers), { cpu, talks: true });
  figureOf(await responder.line(30_000), "ready");
  return [link, responder];
}

/** The line and the port that a peer is started on. */
interface PeerPlace {
  readonly workshop: Workshop;
  readonly link: string;
  readonly port: number;
  readonly baudRate: number;
  /** After which it gives up waiting for a reply; a relay of bytes leaves that to its client. */
  readonly replyTimeoutMs: number;
}

/** What the users of a bridge do when no reply came; `tills.py` has each of them. */
export type LateWay = "retry" | "flush-retry" | "http-retry" | "ask" | "wait";

export interface Peer {
  readonly name: string;
  /** As the tables show it. */
  readonly title: string;
  /** How it is asked: by HTTP, or by frames over TCP, where the client does all the framing. */
  readonly kind: "http" | "raw";
  readonly lateWays: readonly LateWay[];
  /** Why it can't be measured on this machine. */
  readonly missing?: () => string | undefined;
  readonly argv: (place: PeerPlace) => readonly string[];
}

const relayWays = ["retry", "flush-retry"] as const;

const needs = (program: string) => () =>
  found(program) === undefined ? `${program} isn't installed: apt-get install ${program}` : undefined;

/** Debian's own interpreter has Debian's python3-serial; another one first in the PATH may have none. */
function pythonWithSerial(): string | undefined {
  return ["/usr/bin/python3", "python3"].find((python) => {
    try {
      execFileSync(python, ["-c", "import serial"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  });
}

/** A bridge of ours in this folder as plain JavaScript beside the packages it imports, so that no loader is measured with it. */
function nodeBridge(source: string, ...args: readonly (string | number)[]): readonly string[] {
  const out = join(cacheDir, `${basename(source, ".ts")}.mjs`);
  mkdirSync(dirname(out), { recursive: true });
  const { code } = transformSync(readFileSync(join(benchDir, source), "utf8"), {
    loader: "ts",
    target: "node20",
    format: "esm",
  });
  writeFileSync(out, code);
  return [process.execPath, out, ...args.map(String)];
}

function ser2net({ workshop, port }: PeerPlace, lines: readonly string[]): readonly string[] {
  const config = workshop.path(`ser2net-${port}.yaml`);
  writeFileSync(config, `${lines.join("\n")}\n`);
  return [found("ser2net") ?? "ser2net", "-n", "-c", config];
}

/** All of them, ours at the head. */
export const peers: readonly Peer[] = [
  {
    name: "posline",
    title: "posline",
    kind: "http",
    lateWays: ["ask", "wait"],
    argv: ({ workshop, link, port, baudRate, replyTimeoutMs }) => {
      const config = {
        lines: { till: { path: link, baudRate } },
        services: { bank: { line: "till", port, replyTimeoutMs } },
        journal: { folder: workshop.path(`journal-${port}`) },
      };
      return productCommand(configFile(workshop, `posline-${port}`, config));
    },
  },
  {
    // Its users write frames and timeouts themselves; one client at a time, since each connection opens the line anew.
    name: "socat",
    title: "socat, raw TCP",
    kind: "raw",
    lateWays: relayWays,
    missing: needs("socat"),
    argv: ({ link, port }) => [
      found("socat") ?? "socat",
      // Lets go of the line with its client: by default it would eat the next client's first reply.
      "-t0",
      `TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr,nodelay,fork`,
      `FILE:${link},rawer`,
    ],
  },
  {
    // The file that Debian's package installs, for one device: raw TCP, a greeting, no timeout, characters gathered before they are sent.
    name: "ser2net-shipped",
    title: "ser2net, as Debian ships it",
    kind: "raw",
    lateWays: [],
    missing: needs("ser2net"),
    argv: (place) =>
      ser2net(place, [
        ...["define: &banner \\r\\nser2net port \\p device \\d [\\B] (Debian GNU/Linux)\\r\\n\\r\\n", "connection: &bench"],
        ...[`  accepter: tcp,127.0.0.1,${place.port}`, "  enable: on", "  options:", "    banner: *banner"],
        ...["    kickolduser: true", "    telnet-brk-on-sync: true"],
        `  connector: serialdev(nouucplock=true),${place.link},115200n81,local`,
      ]),
  },
  {
    // What its documentation and threads advise for request and reply: no telnet, chardelay off, no Nagle, no idle timeout.
    name: "ser2net-tuned",
    title: "ser2net, tuned",
    kind: "raw",
    lateWays: relayWays,
    missing: needs("ser2net"),
    argv: (place) =>
      ser2net(place, [
        ...["connection: &bench", `  accepter: tcp(nodelay=true),127.0.0.1,${place.port}`, "  timeout: 0"],
        ...[`  connector: serialdev(nouucplock=true),${place.link},115200n81,local`, "  options:", "    chardelay: false"],
      ]),
  },
  {
    // It reads and answers Modbus alone: a request of another protocol is not forwarded, so nothing here can be asked through it.
    name: "mbusd",
    title: "mbusd",
    kind: "raw",
    lateWays: [],
    missing: () =>
      "it forwards Modbus frames of at most 256 bytes only, so the same exchange can't be made; and Debian has no package",
    argv: () => [],
  },
  {
    name: "node-red",
    title: "Node-RED's serial request",
    kind: "http",
    lateWays: ["http-retry"],
    argv: ({ link, port, baudRate, replyTimeoutMs }) =>
      nodeBridge("peers/node-red-bridge.ts", link, port, baudRate, replyTimeoutMs),
  },
  {
    // Nobody's way: what is above it is a bridge's own, and no bridge on Node can take less.
    name: "bare",
    title: "Node's HTTP and the line alone",
    kind: "http",
    lateWays: [],
    argv: ({ link, port }) => nodeBridge("peers/bare-bridge.ts", link, port),
  },
  {
    name: "fastify",
    title: "fastify + serialport",
    kind: "http",
    lateWays: ["http-retry"],
    argv: ({ link, port, baudRate, replyTimeoutMs }) =>
      nodeBridge("peers/fastify-bridge.ts", link, port, baudRate, replyTimeoutMs),
  },
  {
    name: "python",
    title: "Python http.server + pyserial",
    kind: "http",
    lateWays: ["http-retry"],
    missing: () => (pythonWithSerial() === undefined ? "pyserial isn't installed: apt-get install python3-serial" : undefined),
    argv: ({ link, port, baudRate, replyTimeoutMs }) => [
      pythonWithSerial() ?? "python3",
      ...pythonArgv("peers/python_bridge.py", link, port, baudRate, replyTimeoutMs / 1000).slice(1),
    ],
  },
];

/** Those of these names, or of all, that this machine has; of the others it is told why not. */
export function peersHere(told: (text: string) => void, names?: readonly string[]): readonly Peer[] {
  return peers.filter(({ name, title, missing }) => {
    if (names?.includes(name) === false) return false;
    const why = missing?.();
    if (why !== undefined) told(`not measured: ${title}: ${why}`);
    return why === undefined;
  });
}

/** A peer with its line, ready to be asked. */
export interface Started extends Asked {
  readonly responder: Running;
  readonly process: Running;
}

/** The reply timeout of every bridge but where something is late. */
const replyTimeoutMs = 30_000;

export async function startPeer(workshop: Workshop, peer: Peer, pace?: Pace): Promise<Started> {
  const { name, kind } = peer;
  const port = await freePort();
  const [link, responder] = await startResponder(workshop, `${name}-${port}`, pace);
  const argv = peer.argv({ workshop, link, port, baudRate: pace?.baudRate ?? 115_200, replyTimeoutMs });
  return { name, kind, targets: [port], responder, process: workshop.start(`${name}-${port}`, argv, { cpu: benchCpu }) };
}
