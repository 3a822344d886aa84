import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { settlingRulesOf } from "../../src/contract/settling.ts";
import { magicAmounts } from "../../src/emulator/faults/magic-amounts.ts";
import { parseWireFault, type WireFault, wireFaultKinds } from "../../src/emulator/faults/wire-fault.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { assertTrue, type Followed, followed } from "./followed.ts";
import { assertSettles, mishapsOf } from "./settle-matrix.ts";
import { Terminal } from "./terminal.ts";
import { follow, lineWorld, type World } from "./worlds.ts";

/**
 * Tests src/settle/settle.ts.
 *
 * The matrix over a line of the till's own, and whatever else may befall tills there, in a time of its own.
 */

/** How many schedules, beside those over no line (settle-emulator.test.ts); a campaign sets more. */
const runs = Number(process.env["SETTLE_RUNS"] ?? 300);

/** Milliseconds after which no answer is awaited any more, and the line has recovered from its absence. */
const tooLateMs = 200_000;

/** Lives in a world whose time is moved, and leaves nothing of it behind. */
async function inWorld(live: (world: World) => Promise<void>): Promise<void> {
  const time = new VirtualTime();
  try {
    const terminal = new Terminal({ clock: () => new Date(Date.UTC(2026, 0, 1) + time.nowMs) });
    const world = lineWorld(terminal, 115_200);
    await driven(time, live(world));
    await driven(time, world.end());
  } finally {
    time.restore();
  }
}

/** What becomes of a promise while time goes on. Signing runs in a thread, which no clock of a test moves: it is let run. */
async function driven<T>(time: VirtualTime, promise: Promise<T>): Promise<T> {
  let settled = false;
  const end = () => {
    settled = true;
  };
  promise.then(end, end);
  for (let hops = 0; !settled && hops < 1_000_000; hops++) await time.until(() => settled);
  assert.ok(settled, "it never ended");
  return promise;
}

for (const operation of followed) {
  test(`settle() of ${operation.service} ${operation.name} over a line tells what the emulator recorded, whatever befalls`, async () => {
    for (const mishap of mishapsOf(operation, tooLateMs)) {
      await inWorld((world) => assertSettles(world, operation, mishap, 1_000));
    }
  });
}

/** One operation of a schedule. */
interface Job {
  readonly operation: Followed;
  readonly digits: number;
}

/** Which answer a fault befalls: the next one to the operation, to its question, to its copy, or to the line's probe. */
const asked = ["start", "question", "print", "probe"] as const;

interface Befalling {
  readonly job: number;
  readonly asked: (typeof asked)[number];
  readonly fault: WireFault;
}

/** The till or the terminal dies, some time after so many requests have arrived. */
interface Death {
  readonly arrivals: number;
  readonly afterMs: number;
  readonly who: "kill" | "restart";
}

interface Schedule {
  readonly jobs: readonly Job[];
  readonly faults: readonly Befalling[];
  readonly deaths: readonly Death[];
  /** All at once, as several tills do, or one after the other. */
  readonly together: boolean;
}

// A giving back that is answered with an error though it was done (in-doubt) can't be asked about: the contract has no way
const job = fc
  .tuple(
    fc.constantFrom(...followed),
    fc.option(fc.constantFrom(...magicAmounts.map(({ digits }) => digits)), { nil: 0, freq: 2 }),
  )
  .map(([operation, digits]): Job => ({ operation, digits: operation.silent && digits === 3 ? 0 : digits }));

/**
 * What may befall; `silentMs` is how long the terminal may say nothing and then answer all the same. A second answer comes
 * without a pause: with one it may be taken for the next request's, and no line could know (docs/limits.md).
 */
function scheduleOf(silentMs: number, deadly: readonly Death["who"][]): fc.Arbitrary<Schedule> {
  const fault = fc.oneof(
    fc.constantFrom(...wireFaultKinds).map((kind) => parseWireFault(kind)),
    fc.integer({ min: 1, max: silentMs }).map((ms): WireFault => ({ kind: "late", ms })),
    fc.integer({ min: 1, max: 40_000 }).map((ms): WireFault => ({ kind: "unplug", ms })),
  );
  const death = fc.record({
    arrivals: fc.integer({ min: 1, max: 20 }),
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40_000 })),
    who: fc.constantFrom(...deadly),
  });
  return fc.record({
    jobs: fc.array(job, { minLength: 1, maxLength: 4 }),
    faults: fc.array(fc.record({ job: fc.nat(3), asked: fc.constantFrom(...asked), fault }), { maxLength: 8 }),
    deaths: fc.array(death, { maxLength: 3 }),
    together: fc.boolean(),
  });
}

function force({ emulator }: Terminal, { operation }: Job, befalling: Befalling): void {
  const { service, route } = operation;
  const routes = {
    start: route,
    question: routeOf(contracts[service], route)?.polling?.route ?? route,
    print: settlingRulesOf(service, route)?.print?.route ?? route,
    probe: contracts[service].probe.route,
  };
  emulator.plan.force({ service, route: routes[befalling.asked], effect: { fault: befalling.fault } });
}

/** Has the deaths happen; the function that it gives ends that. */
function dying(world: World, deaths: readonly Death[]): () => void {
  let arrivals = 0;
  let over = false;
  world.terminal.arrived = () => {
    arrivals++;
    for (const { arrivals: due, afterMs, who } of deaths) {
      const die = () => {
        if (!over) world[who]();
      };
      if (due !== arrivals) continue;
      if (afterMs === 0) queueMicrotask(die);
      else setTimeout(die, afterMs);
    }
  };
  return () => {
    over = true;
  };
}

/** Lives through a schedule; gives what the tills were told. */
async function lived(world: World, { jobs, faults, deaths, together }: Schedule): Promise<readonly string[]> {
  const { terminal } = world;
  const prepared = jobs.map(({ operation, digits }, index) => {
    const key = `K-${index}`;
    const amount = 1_000 + digits;
    return { operation, key, amount, body: operation.body(terminal, key, amount) };
  });
  // From here on every service has answered a probe
  const { client } = await world.life();
  await Promise.all([client.fiscal.checkShift(), client.bank.terminals(), client.qr.checkConnection()]);
  for (const each of faults) {
    const job = jobs[each.job];
    if (job !== undefined) force(terminal, job, each);
  }
  const end = dying(world, deaths);
  const one = async ({ operation, key, amount, body }: (typeof prepared)[number]) => {
    const settled = await follow(world, operation, body, { windowMs: 600_000 });
    assertTrue(operation, terminal, key, amount, settled);
    return { operation, key, amount, settled };
  };
  const all: Awaited<ReturnType<typeof one>>[] = [];
  if (together) all.push(...(await Promise.all(prepared.map(one))));
  else for (const each of prepared) all.push(await one(each));
  end();
  // What arrived late, after a till was told, may not make it untrue
  for (const { operation, key, amount, settled } of all) assertTrue(operation, terminal, key, amount, settled);
  return all.filter(({ operation }) => !operation.silent).map(({ settled }) => settled.result);
}

/** Lives through so many schedules: no double charge, no wrong result, and most of them told. */
async function assertLaw(schedules: fc.Arbitrary<Schedule>, numRuns: number): Promise<void> {
  const results: string[] = [];
  const property = fc.asyncProperty(schedules, (given) =>
    inWorld(async (world) => {
      results.push(...(await lived(world, given)));
    }),
  );
  await fc.assert(property, { numRuns, includeErrorInReport: true });
  const unknown = results.filter((result) => result === "unknown").length;
  if (process.env["SETTLE_TOLD"]) console.error(unknown, results.length);
  // A till that is told nothing is told nothing untrue either
  assert.ok(unknown < results.length / 10, `${unknown} of ${results.length} stayed unknown`);
}

/**
 * A process that has just begun to speak to a terminal takes it for one that answers no probe after `lateReplyMs` of silence:
 * an answer that comes later still may be taken for another's, for no protocol here has a request's number.
 */
const startSilenceMs = lineDefaults.lateReplyMs - 1_000;

test("settle() over a line charges nobody twice and tells nothing untrue, whoever dies and whatever befalls answers", async () => {
  await assertLaw(scheduleOf(startSilenceMs, ["kill", "restart"]), runs);
});

test("settle() over a line charges nobody twice and tells nothing untrue, however late a terminal answers that is known", async () => {
  await assertLaw(scheduleOf(tooLateMs, ["restart"]), Math.ceil(runs / 2));
});
