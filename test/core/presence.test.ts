import assert from "node:assert/strict";
import { test } from "node:test";
import { Presence } from "../../src/core/presence.ts";

test("Presence calls its listeners once when the caller leaves, and none that was taken back", () => {
  const caller = new Presence();
  const heard: string[] = [];
  const first = () => heard.push("first");
  const second = () => heard.push("second");
  caller.onLeave(first);
  caller.onLeave(second);
  caller.onLeave(() => heard.push("third"));
  caller.offLeave(second);
  assert.equal(caller.gone, false);
  caller.leave();
  caller.leave();
  assert.deepEqual([caller.gone, heard], [true, ["first", "third"]]);
});

test("Presence lets a listener take itself or another back while the caller leaves", () => {
  const caller = new Presence();
  const heard: string[] = [];
  const last = () => heard.push("last");
  const first = () => {
    heard.push("first");
    caller.offLeave(first);
    caller.offLeave(last);
  };
  caller.onLeave(first);
  caller.onLeave(last);
  caller.leave();
  assert.deepEqual([caller.gone, heard], [true, ["first"]]);
});

test("Presence has left for good once all that wait for the same reply have", () => {
  const [first, second, third] = [new Presence(), new Presence(), new Presence()];
  first.join(second);
  first.join(third);
  let left = 0;
  first.onLeave(() => left++);
  first.leave();
  second.leave();
  assert.deepEqual([first.gone, left], [false, 0], "the third still waits");
  third.leave();
  assert.deepEqual([first.gone, left], [true, 1]);
});

test("Presence that was joined by one that has left waits for nobody but itself", () => {
  const [first, second] = [new Presence(), new Presence()];
  second.leave();
  first.join(second);
  first.join(first);
  first.leave();
  assert.equal(first.gone, true);
});
