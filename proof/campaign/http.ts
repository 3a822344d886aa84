import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, type BridgeProcess, startedBridge } from "../../test/support/bridge-process.ts";
import { freePorts } from "../../test/support/free-port.ts";
import { Forked } from "./forked.ts";
import { atOnce, type Round, type RoundDone } from "./http-fuzzer.ts";
import { type Part, partMs, type Row } from "./part.ts";
import { complaintsIn } from "./soak/box.ts";

/**
 * Fuzz of the HTTP surface: the real bundle, raw connections with anything on them from a process of their own, and an honest caller
 * on a line of its own. Rounds with and without fuzz take turns, so that both meet the same machine.
 */

/** Milliseconds of one round: an honest caller makes some tens of calls in it. */
const roundMs = { long: 5_000, short: 1_000 } as const;

/** How often the honest caller's p99 may be that of rounds without fuzz. */
const slowdownMax = 3;

/** Megabytes by which the bridge may grow: bodies in flight, connections, and what V8 hasn't collected yet. */
const growthMbMax = 192;

interface Tally {
  connections: number;
  bytes: number;
  unanswered: number;
  /** Milliseconds of each honest call. */
  readonly quietMs: number[];
  readonly fuzzedMs: number[];
}

/** Calls honestly while a promise is pending; with fuzz where the fuzzer runs. */
async function callDuring(bridge: BridgeProcess, fuzzing: Promise<unknown>, isFuzzed: boolean, tally: Tally): Promise<void> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  fuzzing.then(end, end);
  while (!isOver) {
    const answer = await bridge.get("bank", "/supported_operations", { "X-API-Key": "KEY-1" }).catch(() => undefined);
    if (answer?.status === 200) (isFuzzed ? tally.fuzzedMs : tally.quietMs).push(answer.ms);
    else tally.unanswered++;
  }
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
    const fuzzer = new Forked<RoundDone>("http-fuzzer.ts");
    try {
      const tally: Tally = { connections: 0, bytes: 0, unanswered: 0, quietMs: [], fuzzedMs: [] };
      const pid = bridge.child.pid ?? 0;
      const until = performance.now() + partMs(options);
      const ms = options.short ? roundMs.short : roundMs.long;
      const startMb = rssMb(pid);
      let growthMb = 0;
      while (performance.now() < until) {
        await callDuring(bridge, sleep(ms), false, tally);
        const round: Round = { seed: options.seed, ports, ms };
        fuzzer.send(round);
        const fuzzing = fuzzer.message();
        await callDuring(bridge, fuzzing, true, tally);
        const { connections, bytes } = await fuzzing;
        tally.connections += connections;
        tally.bytes += bytes;
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
      fuzzer.stop();
      await bridge.stop();
    }
  },
};

function rowsOf(tally: Tally, growthMb: number, isAlive: boolean, log: string, isJudged: boolean): readonly Row[] {
  const errors = complaintsIn(log);
  const [quiet, busy] = [p99(tally.quietMs), p99(tally.fuzzedMs)];
  return [
    { what: "connections", value: tally.connections, least: atOnce },
    { what: "sent", value: tally.bytes / 1e6, unit: "MB" },
    { what: "the bridge lives", value: isAlive ? 1 : 0, least: 1 },
    { what: "errors in its log", value: errors.length, most: 0, note: errors.slice(0, 2).join("; ") },
    { what: "honest calls", value: tally.quietMs.length + tally.fuzzedMs.length, least: 1 },
    { what: "honest calls not answered", value: tally.unanswered, most: 0 },
    { what: "RSS: growth at most", value: growthMb, unit: "MB", most: growthMbMax },
    {
      ...{ what: "an honest caller's p99, times that without fuzz", value: busy / quiet, unit: "x" },
      ...{ most: isJudged ? slowdownMax : undefined, note: `${busy.toFixed(1)} ms and ${quiet.toFixed(1)} ms` },
    },
  ];
}
