import assert from "node:assert/strict";
import { test } from "node:test";
import { type LineEvent, type LineState, lineEvents, lineStates, nextState, transitionTable } from "../../src/line/states.ts";
import { LineStatus } from "../../src/line/status.ts";

/** The table once more, written by hand: up, send, frame, stray, fail, clean, down, close; "-" is an empty cell. */
const byHand: Readonly<Record<LineState, string>> = {
  down: "recovering - - - - - - closed",
  recovering: "- - recovering recovering - idle down closed",
  idle: "- awaiting idle recovering - - down closed",
  awaiting: "- - idle awaiting recovering - down closed",
  closed: "- - - - - - - -",
};

for (const state of lineStates) {
  const cells = byHand[state].split(" ");
  lineEvents.forEach((event, column) => {
    const wanted = cells[column];
    if (wanted === "-") {
      test(`nextState(${state}, ${event}) throws, because the cell is empty`, () => {
        assert.throws(() => nextState(state, event), new RegExp(`Cannot take ${event} on a line: it is ${state}`));
      });
    } else {
      test(`nextState(${state}, ${event}) is ${wanted}`, () => {
        assert.equal(nextState(state, event), wanted);
      });
    }
  });
}

test("lineStates and lineEvents name each state and event once", () => {
  assert.equal(new Set(lineStates).size, 5);
  assert.equal(new Set(lineEvents).size, 8);
});

test("transitionTable() has a row for each state and a column for each event", () => {
  const rows = transitionTable().split("\n");
  assert.equal(rows.length, lineStates.length + 2);
  for (const row of rows) assert.equal(row.split("|").length, lineEvents.length + 3);
  assert.ok(rows.includes("| **down** | recovering |  |  |  |  |  |  | closed |"));
});

test("LineStatus tells each change with its reason, and no exchange's coming and going", () => {
  const told: string[] = [];
  const status = new LineStatus((state, reason) => told.push(`${state}: ${reason}`));
  const events: readonly [LineEvent, string][] = [
    ["up", "opened"],
    ["stray", ""],
    ["clean", "proven"],
    ["send", ""],
    ["stray", ""],
    ["frame", ""],
    ["send", ""],
    ["fail", "no reply"],
    ["down", "unplugged"],
  ];
  for (const [event, why] of events) status.take(event, why);
  assert.deepEqual(told, ["recovering: opened", "idle: proven", "recovering: no reply", "down: unplugged"]);
  assert.equal(status.reason, "unplugged");
});

test("LineStatus.explain tells a new reason once", () => {
  const told: string[] = [];
  const status = new LineStatus((state, reason) => told.push(`${state}: ${reason}`));
  status.explain("there is no device");
  status.explain("there is no device");
  status.explain("no permission");
  assert.deepEqual(told, ["down: there is no device", "down: no permission"]);
});
