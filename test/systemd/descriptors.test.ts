import assert from "node:assert/strict";
import { test } from "node:test";
import { passedDescriptors } from "../../src/systemd/descriptors.ts";

const pid = 812;
const env = (LISTEN_FDS: string, LISTEN_FDNAMES?: string, LISTEN_PID = String(pid)) => ({
  LISTEN_PID,
  LISTEN_FDS,
  ...(LISTEN_FDNAMES === undefined ? {} : { LISTEN_FDNAMES }),
});

test("passedDescriptors tells the notification socket from the others, in whatever order they come", () => {
  assert.deepEqual(passedDescriptors(env("3", "posline.socket:notify:posline.socket"), pid), {
    notify: 4,
    tap: undefined,
    sockets: [3, 5],
  });
  assert.deepEqual(passedDescriptors(env("1", "notify"), pid), { notify: 3, tap: undefined, sockets: [] });
  assert.deepEqual(passedDescriptors(env("2"), pid), { notify: undefined, tap: undefined, sockets: [3, 4] });
  assert.deepEqual(passedDescriptors(env("3", "posline.socket:tap:notify"), pid), { notify: 5, tap: 4, sockets: [3] });
});

test("passedDescriptors takes nothing that was meant for another process", () => {
  const none = { notify: undefined, tap: undefined, sockets: [] };
  assert.deepEqual(passedDescriptors(env("3", "a:b:c", "811"), pid), none);
  assert.deepEqual(passedDescriptors({ LISTEN_FDS: "3" }, pid), none);
  assert.deepEqual(passedDescriptors({}, pid), none);
});

test("passedDescriptors refuses a number of descriptors that is none", () => {
  for (const count of ["-1", "x", "1.5", "65"]) assert.throws(() => passedDescriptors(env(count), pid), /LISTEN_FDS/, count);
});
