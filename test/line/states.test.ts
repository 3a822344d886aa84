import assert from "node:assert/strict";
import { test } from "node:test";
import { type LineState, lineStates, nextState, stateEvents, transitionTable } from "../../src/line/states.ts";

/** The table once more, written by hand: up, send, frame, stray, fail, clean, down, close; "-" is an empty cell. */
const byHand: Readonly<Record<LineState, string>> = {
  down: "recovering - - - - - - closed",
  recovering: "- - recovering recovering - idle down closed",
  idle: "- awaiting idle recovering - - down closed",
  awaiting: "- - idle awaiting recovering idle down closed",
  closed: "- - - - - - - -",
};

for (const state of lineStates) {
  const cells = byHand[state].split(" ");
  stateEvents.forEach((event, column) => {
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

test("lineStates and stateEvents name each state and event once", () => {
  assert.equal(new Set(lineStates).size, 5);
  assert.equal(new Set(stateEvents).size, 8);
});

test("transitionTable() has a row for each state and a column for each event", () => {
  const rows = transitionTable().split("\n");
  assert.equal(rows.length, lineStates.length + 2);
  assert.match(rows[0] ?? "", /state.*event.*up.*close/);
  for (const row of rows) assert.equal(row.split("|").length, stateEvents.length + 3);
  assert.ok(rows.includes("| **down** | recovering |  |  |  |  |  |  | closed |"));
});
