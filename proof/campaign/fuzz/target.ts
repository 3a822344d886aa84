import { Random, seedOf } from "./random.ts";

/** What is fuzzed, and how: inputs by chance from one seed, each judged, until the time is over. */

/** One reader of what comes from outside. */
export interface Target {
  readonly name: string;
  /** Makes one input. */
  readonly make: (random: Random) => Buffer;
  /**
   * Judges the reader by one input; drawing from `random` doesn't depend on how the input was made.
   * @returns how many units of it there were, such as frames.
   * @throws whatever is wrong: an answer that is not allowed, or what the reader itself throws.
   */
  readonly check: (input: Buffer, random: Random) => number | Promise<number>;
  readonly unit: string;
}

/** An input at which something went wrong. */
export interface Finding {
  /** Of the inputs that its seed makes. */
  readonly number: number;
  readonly error: string;
  /** The shortest input found with the same error, as Latin-1. */
  readonly input: string;
}

/** What a run says of one target. */
export interface FuzzResult {
  readonly name: string;
  readonly unit: string;
  readonly inputs: number;
  readonly bytes: number;
  readonly units: number;
  readonly findings: readonly Finding[];
  /** Bytes of memory beyond those at the start, after a collection, at most. */
  readonly heldBytesMax: number;
}

export interface FuzzOptions {
  readonly seed: number;
  readonly ms: number;
  /** Go on, whatever the time, until there were so many units. */
  readonly unitsMin?: number;
}

/** Findings after which a target is left: the next ones are likely the same. */
const findingsMax = 3;

/** Milliseconds between two looks at the memory. */
const sampleMs = 500;

/** Inputs of a target that are always made, so that a slow machine tries each reader. */
const inputsMin = 20;

/** Bytes held after a collection; node was started with --expose-gc. */
function heldBytes(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

export async function fuzz(target: Target, { seed, ms, unitsMin = 0 }: FuzzOptions): Promise<FuzzResult> {
  const findings: Finding[] = [];
  const totals = { inputs: 0, bytes: 0, units: 0 };
  const begun = performance.now();
  // What is made once, such as tables and compiled code, isn't counted.
  for (let number = 0; number < inputsMin; number++) {
    await checked(target, inputOf(target, seed, number), seed, number).catch(() => {});
  }
  const before = heldBytes();
  let heldMax = 0;
  let sampledMs = performance.now();
  for (let number = 0; findings.length < findingsMax; number++) {
    const now = performance.now();
    if (number >= inputsMin && now - begun >= ms && totals.units >= unitsMin) break;
    if (now - sampledMs >= sampleMs) {
      heldMax = Math.max(heldMax, heldBytes() - before);
      sampledMs = performance.now();
    }
    const input = inputOf(target, seed, number);
    totals.inputs++;
    totals.bytes += input.length;
    try {
      totals.units += await checked(target, input, seed, number);
    } catch (error) {
      findings.push(await minimal(target, input, error, seed, number));
    }
  }
  const { name, unit } = target;
  return { name, unit, ...totals, findings, heldBytesMax: Math.max(heldMax, heldBytes() - before) };
}

function inputOf(target: Target, seed: number, number: number): Buffer {
  return target.make(new Random(seedOf(seed, target.name, number)));
}

async function checked(target: Target, input: Buffer, seed: number, number: number): Promise<number> {
  return await target.check(input, new Random(seedOf(seed, `${target.name} check`, number)));
}

/** Checks that are spent on making one input shorter. */
const shrinksMax = 2_000;

/** The input with all parts taken out that the same error doesn't need. */
async function minimal(target: Target, input: Buffer, error: unknown, seed: number, number: number): Promise<Finding> {
  const kind = kindOf(error);
  let shortest = input;
  let left = shrinksMax;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < shortest.length && left > 0; left--) {
      const shorter = Buffer.concat([shortest.subarray(0, at), shortest.subarray(at + size)]);
      if (await isSame(target, shorter, kind, seed, number)) shortest = shorter;
      else at += size;
    }
  }
  return { number, error: textOf(error), input: shortest.toString("latin1") };
}

async function isSame(target: Target, input: Buffer, kind: string, seed: number, number: number): Promise<boolean> {
  try {
    await checked(target, input, seed, number);
    return false;
  } catch (error) {
    return kindOf(error) === kind;
  }
}

/** What stays the same of an error while its input gets shorter. */
function kindOf(error: unknown): string {
  return textOf(error).replaceAll(/\d+/g, "#").slice(0, 60);
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [, place = ""] = /\n {4}at .*?((?:src|test)\/[\w./-]+:\d+)/.exec(error.stack ?? "") ?? [];
  return `${error.name}: ${error.message.split("\n")[0]}${place === "" ? "" : ` (${place})`}`;
}
