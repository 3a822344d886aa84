import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, type BridgeProcess, startedBridge } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { mutated } from "./fuzz/mutate.ts";
import { Random, seedOf } from "./fuzz/random.ts";
import { type Part, partMs, type Row } from "./part.ts";

/**
 * Fuzz of the HTTP surface: the real bundle, raw connections with anything on them, and an honest caller on a line of its own. Rounds
 * with and without fuzz take turns, so that both meet the same machine.
 */

/** Milliseconds of one round: an honest caller makes some tens of calls in it. */
const roundMs = { long: 5_000, short: 1_000 } as const;

/** Connections that are fuzzed at a time. */
const atOnce = 16;

/** How often the honest caller's p99 may be that of rounds without fuzz. */
const slowdownMax = 3;

/** Megabytes by which the bridge may grow: bodies in flight, connections, and what V8 hasn't collected yet. */
const growthMbMax = 192;

/** Milliseconds after which a connection is left: a slow one is cut by the bridge before, or not. */
const connectionMsMax = 3_000;

const paths = [
  "/sale",
  "/check",
  "/supported_operations",
  "/healthz",
  "/metrics",
  "/",
  "*",
  "/../x",
  "/%00",
  `/${"a".repeat(9_000)}`,
];

function requestBytes(random: Random): Buffer {
  const body = random.chance(0.1) ? Buffer.alloc(random.below(2_000_000), 0x61) : Buffer.from('{"pay_id":"A-1"}');
  const isChunked = random.chance(0.3);
  const lengths = [String(body.length), "0", "-1", "1e3", "999999999999", "0x10"];
  const headers = [
    `Host: ${random.pick(["localhost", "localhost", "evil.example", "", "[::1]"])}`,
    isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${random.chance(0.7) ? body.length : random.pick(lengths)}`,
    ...(random.chance(0.1) ? ["Content-Length: 3", "Transfer-Encoding: gzip, chunked"] : []),
    ...(random.chance(0.2) ? [`Expect: ${random.pick(["100-continue", "x"])}`, "Prefer: wait=1e9"] : []),
    ...(random.chance(0.1) ? [`Cookie: ${"c".repeat(random.below(20_000))}`] : []),
    ...(random.chance(0.1) ? ["Connection: Upgrade", "Upgrade: websocket", "X-Request-Id: \u0001"] : []),
  ];
  const chunks = random
    .pieces(body, 60_000)
    .map((piece) => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, crlf]));
  const payload = isChunked ? Buffer.concat([...chunks, Buffer.from("0\r\n\r\n")]) : body;
  const line = `${random.pick(["GET", "POST", "PUT", "OPTIONS", "HEAD", "PRI"])} ${random.pick(paths)} HTTP/${random.pick(["1.1", "1.1", "1.0", "2.0"])}`;
  const head = Buffer.from(`${[line, ...headers].join("\r\n")}\r\n\r\n`, "latin1");
  return Buffer.concat([random.chance(0.5) ? mutated(random, head) : head, payload]);
}

const crlf = Buffer.from("\r\n");

/** One connection: some requests in a row, at once, in pieces, or slowly. */
function fuzzed(port: number, random: Random): Promise<number> {
  return new Promise((resolve) => {
    const bytes = Buffer.concat(Array.from({ length: 1 + random.size(11) }, () => requestBytes(random)));
    const socket = connect({ port, host: "127.0.0.1" });
    const isSlow = random.chance(0.2);
    const limit = setTimeout(() => socket.destroy(), connectionMsMax);
    socket.on("error", () => {});
    socket.on("data", () => {});
    socket.on("close", () => {
      clearTimeout(limit);
      resolve(bytes.length);
    });
    socket.on("connect", async () => {
      for (const piece of isSlow ? random.pieces(bytes.subarray(0, 2_000), 100) : [bytes]) {
        if (socket.destroyed) return;
        socket.write(piece);
        if (isSlow) await sleep(50);
      }
      if (random.chance(0.3)) socket.destroy();
      else if (random.chance(0.5)) socket.end();
    });
  });
}

interface Tally {
  connections: number;
  bytes: number;
  unanswered: number;
  /** Milliseconds of each honest call. */
  readonly quietMs: number[];
  readonly fuzzedMs: number[];
}

async function round(
  bridge: BridgeProcess,
  ports: readonly number[],
  ms: number,
  next: (() => Random) | undefined,
  tally: Tally,
) {
  const until = performance.now() + ms;
  const honest = async () => {
    while (performance.now() < until) {
      const answer = await bridge.get("bank", "/supported_operations", { "X-API-Key": "KEY-1" }).catch(() => undefined);
      if (answer?.status === 200) (next === undefined ? tally.quietMs : tally.fuzzedMs).push(answer.ms);
      else tally.unanswered++;
    }
  };
  const hostile = async () => {
    while (next !== undefined && performance.now() < until) {
      const random = next();
      tally.bytes += await fuzzed(random.pick(ports), random);
      tally.connections++;
    }
  };
  await Promise.all([honest(), ...Array.from({ length: atOnce }, hostile)]);
}

const p99 = (values: readonly number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)] ?? 0;

const rssMb = (pid: number) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_000;

export const http: Part = {
  name: "http",
  run: async (options) => {
    const ports = await freePorts(3);
    const [bank = 0, fiscal = 0, admin = 0] = ports;
    const config = {
      lines: { till: { path: "/dev/null" }, bar: { path: "/dev/null" } },
      services: { bank: { line: "till", port: bank, apiKey: "KEY-1" }, fiscal: { line: "bar", port: fiscal, merchantId: "M" } },
      admin: { port: admin },
      journal: false,
    };
    const noPorts = { POSLINE_BANK_PORT: undefined, POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined };
    const bridge = await startedBridge(config, { flags: ["--emulated"], env: noPorts });
    try {
      const tally: Tally = { connections: 0, bytes: 0, unanswered: 0, quietMs: [], fuzzedMs: [] };
      let number = 0;
      const next = () => new Random(seedOf(options.seed, "http", number++));
      const pid = bridge.child.pid ?? 0;
      const until = performance.now() + partMs(options);
      const ms = options.short ? roundMs.short : roundMs.long;
      const startMb = rssMb(pid);
      let growthMb = 0;
      while (performance.now() < until) {
        for (const each of [undefined, next]) await round(bridge, ports, ms, each, tally);
        growthMb = Math.max(growthMb, rssMb(pid) - startMb);
      }
      const alive = (await ask(admin, "GET", "/healthz", "")).status;
      return rowsOf(
        tally,
        growthMb,
        alive === 200 && bridge.child.exitCode === null,
        bridge.stdout + bridge.stderr,
        !options.short,
      );
    } finally {
      await bridge.stop();
    }
  },
};

function rowsOf(tally: Tally, growthMb: number, isAlive: boolean, log: string, isJudged: boolean): readonly Row[] {
  const errors = log.split("\n").filter((line) => /internal error|"level":"(?:error|fatal)"|^\s+at /.test(line));
  const [quiet, busy] = [p99(tally.quietMs), p99(tally.fuzzedMs)];
  const slowdown = { what: "an honest caller's p99, times that without fuzz", value: busy / quiet, unit: "x" };
  return [
    { what: "connections", value: tally.connections, unit: "", bound: { side: "least", value: atOnce } },
    { what: "sent", value: tally.bytes / 1e6, unit: "MB" },
    { what: "the bridge lives", value: isAlive ? 1 : 0, unit: "", bound: { side: "least", value: 1 } },
    {
      what: "errors in its log",
      value: errors.length,
      unit: "",
      bound: { side: "most", value: 0 },
      note: errors.slice(0, 2).join("; "),
    },
    { what: "honest calls", value: tally.quietMs.length + tally.fuzzedMs.length, unit: "", bound: { side: "least", value: 1 } },
    { what: "honest calls not answered", value: tally.unanswered, unit: "", bound: { side: "most", value: 0 } },
    { what: "RSS: growth at most", value: growthMb, unit: "MB", bound: { side: "most", value: growthMbMax } },
    {
      ...slowdown,
      note: `${busy.toFixed(1)} ms and ${quiet.toFixed(1)} ms`,
      ...(isJudged ? { bound: { side: "most", value: slowdownMax } } : {}),
    },
  ];
}
