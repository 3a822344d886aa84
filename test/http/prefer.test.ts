import assert from "node:assert/strict";
import { test } from "node:test";
import { followMsMax } from "../../src/http/limits.ts";
import { followMsOf } from "../../src/http/prefer.ts";

test("followMsOf() reads the seconds of Prefer: wait, among other preferences and in any writing of RFC 7240", () => {
  for (const [header, ms] of [
    ["wait=60", 60_000],
    ["wait=0", 0],
    ["WAIT = 7", 7_000],
    ['wait="10"', 10_000],
    ["respond-async, wait=10", 10_000],
    ["wait=10; foo=bar", 10_000],
    ["wait=10, wait=20", 10_000],
    ["wait=999999", followMsMax],
  ] as const) {
    assert.equal(followMsOf(header), ms, header);
  }
});

test("followMsOf() ignores what is not a number of seconds", () => {
  for (const header of [
    ...[undefined, "", "wait", "wait=", "wait=soon", "wait=-1", "wait=1.5", "wait=1e3", "await=5", "wait=1234567"],
  ]) {
    assert.equal(followMsOf(header), undefined, header);
  }
});
