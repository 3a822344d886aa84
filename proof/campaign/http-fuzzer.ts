import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { mutated } from "./fuzz/mutate.ts";
import { Random, seedOf } from "./fuzz/random.ts";

/**
 * The process that fuzzes the HTTP surface: raw connections with anything on them. Apart from the honest caller, whose times would
 * otherwise be those of this process too.
 */

/** What it is asked for: a round of so many milliseconds against these ports. */
export type Round = { readonly seed: number; readonly ports: readonly number[]; readonly ms: number };

/** What it did in a round. */
export type RoundDone = { readonly connections: number; readonly bytes: number };

/** Connections that are fuzzed at a time. */
export const atOnce = 16;

/** Milliseconds after which a connection is left: a slow one is cut by the bridge before, or not. */
const connectionMsMax = 3_000;

const paths = [
  ...["/sale", "/check", "/supported_operations", "/healthz", "/metrics", "/", "*", "/../x", "/%00"],
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

let number = 0;

async function round({ seed, ports, ms }: Round): Promise<RoundDone> {
  const until = performance.now() + ms;
  let connections = 0;
  let bytes = 0;
  const hostile = async () => {
    while (performance.now() < until) {
      const random = new Random(seedOf(seed, "http", number++));
      bytes += await fuzzed(random.pick(ports), random);
      connections++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, hostile));
  return { connections, bytes };
}

process.on("message", async (asked: Round) => process.send?.(await round(asked)));
