import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineReport } from "../../src/line/line.ts";
import { tee } from "../../src/process/line-report.ts";
import { discard, frame } from "../admin/worlds.ts";

test("tee() tells both all that a line says, each once, the first one first", () => {
  const heard: unknown[] = [];
  const ear = (name: string): LineReport => ({
    state: (...said) => heard.push([name, "state", ...said]),
    discard: (...said) => heard.push([name, "discard", ...said]),
    late: (...said) => heard.push([name, "late", ...said]),
    probeAnswered: (...said) => heard.push([name, "barrier", ...said]),
    unheard: (...said) => heard.push([name, "unheard", ...said]),
    heardAgain: (...said) => heard.push([name, "heard again", ...said]),
  });
  const both = tee(ear("log"), ear("status"));
  const [noise, late, answer] = [discard("noise", 3), frame(9), { operations: [] }];
  both.state("down", "gone");
  both.discard(noise);
  both.late(late);
  both.probeAnswered("bank", answer);
  const said = [
    ["state", "down", "gone"],
    ["discard", noise],
    ["late", late],
    ["barrier", "bank", answer],
  ];
  assert.deepEqual(
    heard,
    said.flatMap((each) => [
      ["log", ...each],
      ["status", ...each],
    ]),
  );
});

test("tee() gives the first alone what the other reads when it is asked: who is silent, and who answers again", () => {
  const heard: unknown[] = [];
  const { unheard, heardAgain } = tee(
    {
      ...{ state: () => {}, discard: () => {}, late: () => {}, probeAnswered: () => {} },
      unheard: (...said) => heard.push(said),
      heardAgain: (...said) => heard.push(said),
    },
    { state: () => {}, discard: () => {}, late: () => {}, probeAnswered: () => {} },
  );
  const cause = { cause: "not one byte comes back", cure: "switch it on" };
  unheard("bank", cause);
  heardAgain("bank");
  assert.deepEqual(heard, [["bank", cause], ["bank"]]);
});
