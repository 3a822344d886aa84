import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { contractNames } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import type { World } from "../emulator/world.ts";
import { type Judged, type Moment, untested } from "../report/judgement.ts";
import { Cable } from "./cable.ts";
import { anyPorts, type ServicePorts } from "./posline.ts";
import type { AmountName, Scenario } from "./scenario.ts";
import { type Cables, play, type Till } from "./stand.ts";
import { TillError } from "./till.ts";
import { findingOf } from "./verdict.ts";

/** A rehearsal: scenarios played and judged, several at a time. */

export interface RehearsalOptions {
  readonly scenarios: readonly Scenario[];
  readonly till: Till;
  /** The shop that the terminal stands in. */
  readonly world: World;
  /** The program that posline is run by. */
  readonly program: readonly string[];
  /** Origins of pages that may call posline. */
  readonly origins: readonly string[];
  /** Draws the amounts. */
  readonly seed: number;
  /** Where the till is to find posline first; each stand keeps its own ports. */
  readonly ports: ServicePorts;
  readonly wordUrl: (key: string) => string;
  readonly noted?: (moment: Moment) => void;
  /** Told of each that begins. */
  readonly begins?: (scenario: Scenario) => void;
  /** Scenarios that are played at a time. */
  readonly jobs: number;
  /** Milliseconds after which none begins any more. */
  readonly limitMs: number;
  readonly judged: (judged: Judged) => void;
  /** Told whenever one begins or ends: how many are over, and how many go on. */
  readonly progress?: (over: number, running: number) => void;
}

/**
 * Plays them.
 * @returns what came of each, in the order of the scenarios.
 * @throws TillError if the command is no till's, which the first scenario finds out.
 */
export async function rehearse(options: RehearsalOptions): Promise<readonly Judged[]> {
  const { scenarios, jobs, limitMs, judged, progress = () => {} } = options;
  const untilMs = nowMs() + limitMs;
  const keys = Date.now().toString(36);
  const results = new Map<string, Judged>();
  // What takes long begins first, lest all wait for it at the end. The very first is a plain one.
  const [plain, ...others] = scenarios.entries();
  const isShort = ([, { lasts }]: readonly [number, Scenario]) => Number(lasts === undefined);
  const sorted = jobs === 1 ? others : others.toSorted((one, other) => isShort(one) - isShort(other));
  const waiting = plain === undefined ? [] : [plain, ...sorted];
  let running = 0;
  const next = async (ways: Cables) => {
    const entry = waiting.shift();
    if (entry === undefined) return;
    const [index, scenario] = entry;
    running++;
    progress(results.size, running);
    options.begins?.(scenario);
    const result =
      nowMs() < untilMs
        ? await played(scenario, `${keys}-${index}`, ways, options)
        : unplayed(scenario, "No time was left for it");
    running--;
    results.set(scenario.name, result);
    judged(result);
    progress(results.size, running);
  };
  const open: Cables[] = [];
  const openWays = async (ports: ServicePorts) => {
    const ways = { fiscal: new Cable(0, ports.fiscal), bank: new Cable(0, ports.bank), qr: new Cable(0, ports.qr) };
    open.push(ways);
    for (const name of contractNames) await ways[name].plugIn();
    return ways;
  };
  try {
    const first = await openWays(options.ports);
    // Alone: what is no till at all is found before anything else is tried.
    await next(first);
    const worker = async (_: unknown, index: number) => {
      const ways = index === 0 ? first : await openWays(anyPorts);
      while (waiting.length > 0) await next(ways);
    };
    await Promise.all(Array.from({ length: jobs }, worker));
  } finally {
    for (const ways of open) for (const name of contractNames) ways[name].close();
  }
  return scenarios.flatMap(({ name }) => results.get(name) ?? []);
}

async function played(scenario: Scenario, keys: string, ways: Cables, options: RehearsalOptions): Promise<Judged> {
  const began = nowMs();
  try {
    const amounts = amountsOf(options.seed, scenario);
    const { results, moments, tookMs } = await play({ ...options, scenario, keys, ways, amounts });
    return { ...caseOf(scenario), ...findingOf(results), tookMs, moments };
  } catch (error) {
    if (error instanceof TillError) throw error;
    const why = `The rehearsal itself failed: ${error instanceof Error ? error.message : String(error)}`;
    return { ...unplayed(scenario, why), tookMs: nowMs() - began };
  }
}

const caseOf = ({ name, title, rule, listed }: Scenario) => ({ name, title, rule, ...(listed !== undefined && { listed }) });

const unplayed = (scenario: Scenario, why: string): Judged => ({
  ...caseOf(scenario),
  ...untested(why),
  tookMs: 0,
  moments: [],
});

/** The first integer that a JavaScript number hasn't got. */
const beyondNumbers = 9_007_199_254_740_993n;

/** A scenario's amounts, the same for the same seed, whichever others are played. */
function amountsOf(seed: number, { name }: Scenario): Readonly<Record<AmountName, bigint>> {
  const random = xoroshiro128plus([...name].reduce((sum, each) => (Math.imul(sum, 31) + each.charCodeAt(0)) | 0, seed));
  // Of two digits behind the point at least one isn't 0, so that a float shows.
  const draw = (from: number) => BigInt(from + uniformInt(random, 0, 40_000) * 2 + 1);
  return { first: draw(101), second: draw(100_101), huge: beyondNumbers + 2n * BigInt(uniformInt(random, 0, 1_000)) };
}
