import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import { readToken } from "../../src/client/token.ts";
import {
  absent,
  absentFrom0To30s,
  absentTo30s,
  body,
  closed,
  endsAt,
  error,
  kept,
  knownBy,
  lost,
  merchantId,
  over,
  repeat,
  type Script,
  sale,
} from "./scripted.ts";

/** Tests src/settle/judge.ts. */

/** Follows with a stop that comes while the given request is out, or before all when that is 0. */
async function stoppedAt(
  request: number,
  script: Script | string,
  { windowMs = 60_000, isAborted = false, service = "bank" as "bank" | "fiscal" } = {},
) {
  const world = over(script);
  const stop = new AbortController();
  if (request === 0) stop.abort();
  const send = world.service.send.bind(world.service);
  world.service.send = async (each) => {
    const answer = await send(each);
    if (world.service.seen.length === request) stop.abort();
    return answer;
  };
  const aborted = isAborted ? stop.signal : new AbortController().signal;
  const options = { ...world.options, askOnly: stop.signal, aborted, windowMs, intervalMs: 1000 };
  const { client } = world;
  const settled = await (service === "bank"
    ? client.bank.settle("sale", body, options)
    : client.fiscal.settle("sale", sale, options));
  world.done();
  return settled;
}

const fiscal = { service: "fiscal" } as const;

/** The number of the request while which the stop comes, and what is said in the end, with fields of what its token knows. */
const rows: readonly (readonly [
  what: string,
  request: number,
  script: string,
  says: string,
  options?: Parameters<typeof stoppedAt>[2],
  known?: Readonly<Record<string, unknown>>,
])[] = [
  ["while a start is out that isn't sent: it is not tried again, and has ended", 1, "sale busy", "not-sent"],
  ["of one that runs: it is asked to its end", 1, "sale ok, check ok, check approved", "approved"],
  ['of a lost start: it is never resent, and "not found" for 30 s ends it', 1, "sale lost, check -15 x32", "failed"],
  ["of a lost document: never resent, and ended so too", 1, "sale lost, check_status 9 x32", "failed", fiscal],
  ["with the question's -15: the resend isn't sent", 2, "sale lost, check -15 x32", "failed"],
  ["after fiscal code 5: it is asked about, not resent", 1, "sale 5, check_status closed", "closed", fiscal],
  [
    "of a document in progress that was aborted at the terminal, and isn't found for 30 s",
    1,
    "sale 44, check_status 9 x32",
    "failed",
    { ...fiscal, isAborted: true },
    { isAborted: true },
  ],
  [
    "of a document in progress that nobody took away, and isn't found",
    1,
    "sale 44, check_status 9 x40",
    "unknown",
    { ...fiscal, windowMs: 40_000 },
  ],
  ["of an accepted bank operation that isn't found", 1, "sale ok, check -15 x20", "unknown", { windowMs: 20_000 }],
  [
    "while a resending is out: its refusal is read as one, and told by its own code",
    3,
    "sale lost, check -15, sale -29, check -15 x32",
    "failed",
    {},
    { code: -29 },
  ],
];

test("askOnly before the first sending: nothing is sent, and that is what it says", async () => {
  for (const service of ["bank", "fiscal"] as const) assert.equal((await stoppedAt(0, [], { service })).result, "not-sent");
});

for (const [what, request, script, says, options, known = {}] of rows) {
  test(`askOnly ${what}: ${says}`, async () => {
    const { result, code, token } = await stoppedAt(request, script, options);
    assert.equal(result, says);
    const all: Readonly<Record<string, unknown>> = { ...knownBy(token), code };
    for (const [name, value] of Object.entries(known)) assert.equal(all[name], value, name);
  });
}

test("askOnly that comes while onProgress stores the token keeps the start from being sent", async () => {
  const world = over([]);
  const stop = new AbortController();
  const { result } = await world.client.bank.settle("sale", body, {
    clock: world.clock,
    askOnly: stop.signal,
    onProgress: () => stop.abort(),
  });
  assert.equal(result, "not-sent");
  world.done();
});

test("askOnly that comes while the request is being signed keeps it from being sent", async () => {
  const world = over([]);
  const stop = new AbortController();
  const lookUp = () => {
    stop.abort();
    return merchantId;
  };
  const client = createClientOver(world.service, { fiscal: { merchantId: lookUp } });
  const { result } = await client.fiscal.settle("sale", sale, { clock: world.clock, askOnly: stop.signal });
  assert.equal(result, "not-sent");
  world.done();
});

test("resume() with askOnly resends nothing, and a token that was stopped stays so", async () => {
  const first = await stoppedAt(1, [["/sale", lost], ...repeat(20, ["/check", error(-3)])], { windowMs: 20_000 });
  assert.deepEqual([first.result, knownBy(first.token).isStopped], ["unknown", true]);
  const token = kept(first.token);
  const world = over(absentFrom0To30s);
  assert.equal((await world.client.resume(token, { ...world.options, intervalMs: 1000 })).result, "failed");
  world.done();
  const { token: read } = readToken(token);
  const again = over(absentFrom0To30s);
  const options = { ...again.options, askOnly: AbortSignal.abort(), intervalMs: 1000 };
  const facts = read.facts.filter(({ is }) => is !== "stopped");
  assert.equal((await again.client.resume({ ...read, facts }, options)).result, "failed");
  again.done();
});

test("askOnly that comes right before a resending keeps it from being sent: it is asked about", async () => {
  for (const [at, script, service] of [
    ["resent", [["/sale", lost], ["/check", absent], ...absentTo30s], "bank"],
    [
      "waiting",
      [
        ["/sale", error(5)],
        ["/check_status", closed],
      ],
      "fiscal",
    ],
  ] as const) {
    const world = over(script);
    const options = { clock: world.clock, intervalMs: 1000, ...endsAt(at, "askOnly") };
    const { result, token } = await (service === "bank"
      ? world.client.bank.settle("sale", body, options)
      : world.client.fiscal.settle("sale", sale, options));
    assert.deepEqual([result, knownBy(token).isStopped], [service === "bank" ? "failed" : "closed", true]);
    world.done();
  }
});
