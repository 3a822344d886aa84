import { isObject } from "../../../src/core/json-object.ts";
import type { Random } from "./random.ts";

/** What spoils an input: its bytes, whatever they mean, and JSON by its grammar, so that what comes out is still JSON. */

/** Bytes that mean something to one of the readers. */
const meaning = Buffer.from('\0\u0002\u0003\n\r\t "\\{}[]:,&=%+-0123456789eE/.;<\u007f\u0080\u00c0\u00ff', "latin1");

/** Changes some bytes: flips, inserts, deletes, repeats, moves, cuts, or takes a part of another input. */
export function mutated(random: Random, input: Buffer, others: readonly Buffer[] = []): Buffer {
  let bytes: Buffer = Buffer.from(input);
  for (let times = 1 + random.size(6); times > 0; times--) bytes = mutatedOnce(random, bytes, others);
  return bytes;
}

function mutatedOnce(random: Random, bytes: Buffer, others: readonly Buffer[]): Buffer {
  const at = random.below(bytes.length + 1);
  const to = Math.min(bytes.length, at + random.size(32));
  const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)];
  switch (random.below(8)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
      return flipped;
    }
    case 1: {
      const set = Buffer.from(bytes);
      if (at < bytes.length) set[at] = random.pick([...meaning]);
      return set;
    }
    case 2:
      return Buffer.concat([before, Buffer.from([random.pick([...meaning])]), part, after]);
    case 3:
      return Buffer.concat([before, after]);
    case 4:
      return Buffer.concat([before, ...Array.from({ length: 1 + random.size(8) }, () => part), after]);
    case 5:
      return random.chance(0.3) ? before : Buffer.concat([before, after, part]);
    case 6: {
      if (others.length === 0) return Buffer.concat([after, before]);
      const other = random.pick(others);
      const from = random.below(other.length + 1);
      return Buffer.concat([before, other.subarray(from, from + random.size(other.length)), after]);
    }
    default:
      return Buffer.concat([before, random.bytes(random.size(16)), after]);
  }
}

/** Names that objects have already, and that mean something in the contracts. */
const names = [
  ...["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "toJSON", "then", "length", ""],
  ...["status", "code", "message", "data", "operations", "systems", "pay_id", "documentExtID", "documentID", "trans"],
  ...["docStatus", "printError", "txn_id", "amount", "time", "state", "line", "service", "reason"],
];

/** Numbers as JSON writes them, and as `JSON.stringify` would not. */
const numbers = [
  ...["0", "-0", "1", "-1", "15", "44", "1e999", "-1e999", "1e-999", "0.1", "9007199254740993", "4294967296"],
  "8640000000000001",
];

const texts = [
  ...[
    ...["", "success", "error", "APPROVED", "ERROR", "REVERSED", "1", "0", "__proto__", "constructor", "toString"],
    "hasOwnProperty",
  ],
  ...[
    ...["4111111111111111", "\ud800", "\u0000", "\u001b[2J", "\r\n", "2026-11-22T10:00:00.000Z"],
    ...["+275760-09-13T00:00:00.001Z", "\u202e"],
  ],
  "x".repeat(300),
];

/** Some value as JSON text, of at most so many levels. */
export function randomJson(random: Random, depth = 3): string {
  const kind = random.below(depth > 0 ? 8 : 5);
  if (kind === 0) return random.pick(["null", "true", "false"]);
  if (kind <= 2) return random.pick(numbers);
  if (kind <= 4) return JSON.stringify(random.pick(texts));
  const length = random.size(4);
  if (kind === 5) return `[${Array.from({ length }, () => randomJson(random, depth - 1)).join()}]`;
  return randomObject(random, depth);
}

/** The same, always an object. Its names may repeat. */
export function randomObject(random: Random, depth = 3): string {
  const members = Array.from(
    { length: random.size(6) },
    () => `${JSON.stringify(random.pick(names))}:${randomJson(random, depth - 1)}`,
  );
  return `{${members.join()}}`;
}

/** Writes a value with some of its parts replaced, left out, doubled, renamed or buried in lists. */
export function mutatedJson(random: Random, value: unknown, share = 0.15): string {
  const inner = (each: unknown) => mutatedJson(random, each, share);
  if (random.chance(share)) return random.chance(0.1) ? buried(random, inner(value)) : randomJson(random, 2);
  if (Array.isArray(value)) {
    const items = value.flatMap((each) => (random.chance(share / 2) ? [] : [inner(each)]));
    if (random.chance(share)) items.push(...items);
    return `[${items.join()}]`;
  }
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).flatMap(([name, each]) => {
    if (random.chance(share / 2)) return [];
    const member = `${JSON.stringify(random.chance(share / 3) ? random.pick(names) : name)}:${inner(each)}`;
    return random.chance(share / 4) ? [member, `${JSON.stringify(name)}:${randomJson(random, 1)}`] : [member];
  });
  if (random.chance(share)) members.push(`${JSON.stringify(random.pick(names))}:${randomJson(random, 2)}`);
  return `{${members.join()}}`;
}

/** Around the limits of nesting, or far beyond. */
function buried(random: Random, text: string): string {
  const depth = random.pick([1, 60, 64, 65, 2_000]);
  return random.chance(0.5)
    ? `${"[".repeat(depth)}${text}${"]".repeat(depth)}`
    : `${'{"a":'.repeat(depth)}${text}${"}".repeat(depth)}`;
}
