import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { builtBridge, productCommand, productMissing, ser2netArgv } from "../bridges.ts";
import { found, pythonArgv } from "../machine.ts";
import type { Workshop } from "../processes.ts";

/** The usual ways to reach a serial terminal from the network, each set up as its users set it up. */

/** The line and the port that a peer is started on. */
export interface PeerPlace {
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
  readonly missing: () => string | undefined;
  readonly argv: (place: PeerPlace) => readonly string[];
}

const relayWays = ["retry", "flush-retry"] as const;

function needs(program: string): string | undefined {
  return found(program) === undefined ? `${program} isn't installed: apt-get install ${program}` : undefined;
}

let pythonWithSerial: string | undefined;
/** Debian's own interpreter has Debian's python3-serial; another one first in the PATH may have none. */
function findPythonWithSerial(): string | undefined {
  for (const python of pythonWithSerial === undefined ? ["/usr/bin/python3", "python3"] : []) {
    try {
      execFileSync(python, ["-c", "import serial"], { stdio: "ignore" });
      pythonWithSerial = python;
      break;
    } catch {
      // Not this one.
    }
  }
  return pythonWithSerial;
}

/** The file that Debian's package installs, for one device: raw TCP, a greeting, no timeout, characters gathered before they are sent. */
function ser2netAsShipped({ workshop, link, port }: PeerPlace): readonly string[] {
  const config = workshop.path(`ser2net-shipped-${port}.yaml`);
  const lines = [
    ...["define: &banner \\r\\nser2net port \\p device \\d [\\B] (Debian GNU/Linux)\\r\\n\\r\\n", "connection: &bench"],
    ...[`  accepter: tcp,127.0.0.1,${port}`, "  enable: on", "  options:", "    banner: *banner"],
    ...["    kickolduser: true", "    telnet-brk-on-sync: true"],
    `  connector: serialdev(nouucplock=true),${link},115200n81,local`,
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  return [found("ser2net") ?? "ser2net", "-n", "-c", config];
}

function poslineArgv({ workshop, link, port, baudRate, replyTimeoutMs }: PeerPlace): readonly string[] {
  const config = workshop.path(`posline-${port}.json`);
  const settings = {
    lines: { till: { path: link, baudRate } },
    services: { bank: { line: "till", port, replyTimeoutMs } },
    journal: { folder: workshop.path(`journal-${port}`) },
  };
  writeFileSync(config, JSON.stringify(settings));
  return productCommand(config);
}

/** All of them, ours at the head. */
export const peers: readonly Peer[] = [
  { name: "posline", title: "posline", kind: "http", lateWays: ["ask", "wait"], missing: productMissing, argv: poslineArgv },
  {
    // Its users write frames and timeouts themselves; one client at a time, since each connection opens the line anew.
    name: "socat",
    title: "socat, raw TCP",
    kind: "raw",
    lateWays: relayWays,
    missing: () => needs("socat"),
    argv: ({ link, port }) => [
      found("socat") ?? "socat",
      "-t0",
      `TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr,nodelay,fork`,
      `FILE:${link},rawer`,
    ],
  },
  {
    name: "ser2net-shipped",
    title: "ser2net, as Debian ships it",
    kind: "raw",
    lateWays: [],
    missing: () => needs("ser2net"),
    argv: ser2netAsShipped,
  },
  {
    // What its documentation and threads advise for request and reply: chardelay off, no Nagle, no idle timeout.
    name: "ser2net-tuned",
    title: "ser2net, tuned",
    kind: "raw",
    lateWays: relayWays,
    missing: () => needs("ser2net"),
    argv: ({ workshop, link, port }) => ser2netArgv(workshop, link, port),
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
    missing: () => undefined,
    argv: ({ link, port, baudRate, replyTimeoutMs }) => [
      process.execPath,
      builtBridge("peers/node-red-bridge.ts"),
      ...[link, port, baudRate, replyTimeoutMs].map(String),
    ],
  },
  {
    // Nobody's way: what is above it is a bridge's own, and no bridge on Node can take less.
    name: "bare",
    title: "Node's HTTP and the line alone",
    kind: "http",
    lateWays: [],
    missing: () => undefined,
    argv: ({ link, port }) => [process.execPath, builtBridge("peers/bare-bridge.ts"), link, String(port)],
  },
  {
    name: "fastify",
    title: "fastify + serialport",
    kind: "http",
    lateWays: ["http-retry"],
    missing: () => undefined,
    argv: ({ link, port, baudRate, replyTimeoutMs }) => [
      process.execPath,
      builtBridge("fastify-bridge.ts"),
      ...[link, port, baudRate, "log", replyTimeoutMs].map(String),
    ],
  },
  {
    name: "python",
    title: "Python http.server + pyserial",
    kind: "http",
    lateWays: ["http-retry"],
    missing: () =>
      findPythonWithSerial() === undefined ? "pyserial isn't installed: apt-get install python3-serial" : undefined,
    argv: ({ link, port, baudRate, replyTimeoutMs }) => [
      findPythonWithSerial() ?? "python3",
      ...pythonArgv("peers/python_bridge.py", link, port, baudRate, replyTimeoutMs / 1000).slice(1),
    ],
  },
];
