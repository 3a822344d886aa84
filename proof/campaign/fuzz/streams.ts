import assert from "node:assert/strict";
import { readCaptured } from "../../../src/capture/captured-frame.ts";
import { frameText } from "../../../src/capture/frame-text.ts";
import { PcapngWriter, upperPdu } from "../../../src/capture/pcapng.ts";
import { upperPduOf } from "../../../src/capture/upper-pdu.ts";
import { EventStreamReader, type LiveEvent, logLineOf } from "../../../src/logs/event-stream.ts";
import { withoutColours } from "../../../src/logs/terminal-text.ts";
import { LogView } from "../../../src/logs/view.ts";
import { corpusLines } from "./corpus.ts";
import { mutated, mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** What a running posline sends to its commands, or something that only looks like one: events, tapped frames, lines of a log. */

const events = corpusLines("events.jsonl");
const tapped = corpusLines("tap.jsonl");
const logged = corpusLines("log.jsonl");

const eventNames = ["exchange", "line", "discard", "late", "service", "operation", "ready", "lost", "toString"] as const;

function lineOf(random: Random, lines: readonly string[]): string {
  if (random.chance(0.1)) return randomObject(random);
  return mutatedJson(random, JSON.parse(random.pick(lines)), 0.1);
}

function eventText(random: Random): string {
  const head = random.chance(0.8) ? `id: ${random.below(1_000)}\n` : random.pick([": comment\n", "retry: 1\n", "id\n", ""]);
  return `${head}event: ${random.pick(eventNames)}\ndata: ${lineOf(random, events)}\n\n`;
}

function many(random: Random, one: () => string): Buffer {
  const bytes = Buffer.from(Array.from({ length: 1 + random.size(9) }, one).join(""));
  if (random.chance(0.02)) return Buffer.concat([Buffer.from("data: "), Buffer.alloc(200_000, 0x61), bytes]);
  return random.chance(0.4) ? mutated(random, bytes) : bytes;
}

function readEvents(pieces: readonly Buffer[]): readonly LiveEvent[] {
  const found: LiveEvent[] = [];
  const reader = new EventStreamReader();
  for (const piece of pieces) reader.push(piece, (event) => found.push(event));
  return found;
}

const eventStream: Target = {
  name: "the stream of /events",
  unit: "events",
  make: (random) => many(random, () => eventText(random)),
  check: (input, random) => {
    const found = readEvents([input]);
    assert.equal(JSON.stringify(readEvents(random.pieces(input))), JSON.stringify(found), "however it was cut");
    for (const event of found) {
      const line = logLineOf(event);
      if (line !== undefined) assert.equal(typeof JSON.parse(line), "object");
    }
    return found.length;
  },
};

const tapStream: Target = {
  name: "the stream of /tap",
  unit: "frames",
  make: (random) => many(random, () => `${lineOf(random, tapped)}\n`),
  check: (input, random) => {
    const writer = new PcapngWriter(upperPdu, "posline");
    let frames = 0;
    for (const line of input.toString("utf8").split("\n")) {
      const frame = readCaptured(line);
      if (frame === undefined) continue;
      frames++;
      assert.match(frameText(frame, random.chance(0.5)), /^\d\d:\d\d:\d\d\.\d{3} /);
      const { line: name, timeMs, direction } = frame;
      const block = writer.packet({ line: name, timeMs, direction, bytes: upperPduOf(frame) });
      assert.equal(block.length % 4, 0);
    }
    return frames;
  },
};

const log: Target = {
  name: "lines of a log",
  unit: "lines",
  make: (random) => many(random, () => `${random.chance(0.2) ? "<4>" : ""}${lineOf(random, logged)}\n`),
  check: (input, random) => {
    const shown: Buffer[] = [];
    const view = new LogView({
      ...{ criteria: {}, last: undefined, json: random.chance(0.2), colour: random.chance(0.5), terminal: true },
      out: (bytes) => shown.push(bytes),
    });
    for (const piece of random.pieces(input)) view.push(piece);
    view.endLine();
    view.caughtUp();
    // Colours are posline's own; all else that could command a terminal is not let through.
    assert.doesNotMatch(withoutColours(Buffer.concat(shown).toString("utf8")).replaceAll(/[\t\n]/g, ""), /\p{Cc}/u);
    return input.filter((byte) => byte === 0x0a).length;
  },
};

export const streamTargets: readonly Target[] = [eventStream, tapStream, log];
