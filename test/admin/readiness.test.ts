import assert from "node:assert/strict";
import { test } from "node:test";
import { Status } from "../../src/admin/status.ts";
import type { StatusLineState } from "../../src/admin/status-sources.ts";
import { lineStates } from "../../src/line/states.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { lineSource, oneLineSources, played, statusOf } from "./worlds.ts";

const ready = new Set<StatusLineState>(["idle", "awaiting", "open"]);

const readyOf = (status: Status) => {
  const { status: code, text } = status.readyz();
  return { status: code, answer: JSON.parse(text) };
};

for (const state of [...lineStates, "open"] as const) {
  test(`Status.readyz() is ${ready.has(state) ? "200" : "503 with the reason and what to do"} while a line is ${state}`, () => {
    const status = new Status("1.2.3");
    status.setSources(oneLineSources(played(state, { reason: "why it is so" })));
    const { status: code, answer } = readyOf(status);
    assert.equal(code, ready.has(state) ? 200 : 503);
    assert.equal(statusOf(status).ready, ready.has(state));
    if (ready.has(state)) {
      assert.deepEqual(answer, { status: "ready" });
      return;
    }
    assert.equal(answer.status, "not ready");
    const [{ cure, ...reason }] = answer.reasons;
    assert.deepEqual(reason, { what: "line", line: "till", state, reason: "why it is so" });
    assert.match(cure, /^(wait|the line is closed for good|sudo posline doctor --line till$)/);
  });
}

test("Status.readyz() names every line that isn't clean, in order, and no other", () => {
  const status = new Status("1.2.3");
  const lines = { a: played("down"), "b c": played("recovering"), d: played("idle"), e: played("awaiting") };
  status.setSources({ lines: Object.entries(lines).map(([name, live]) => lineSource(name, live)), services: [] });
  const { answer } = readyOf(status);
  assertMapped(answer.reasons, ["a", "b c"], ({ line }: { line: string }) => line);
  assert.match(answer.reasons[1].cure, /: sudo posline doctor --line 'b c'$/);
  lines.a.state = "idle";
  lines["b c"].state = "idle";
  assert.equal(readyOf(status).status, 200);
});

for (const state of ["idle", "awaiting"] as const) {
  test(`Status.readyz() is 503 while the queue of a line that is ${state} is full, as the next call is refused`, () => {
    const status = new Status("1.2.3");
    const live = played(state, { waiting: 63 });
    status.setSources(oneLineSources(live));
    assert.equal(readyOf(status).status, 200);
    live.waiting = 64;
    const { status: code, answer } = readyOf(status);
    assert.equal(code, 503);
    assert.equal(statusOf(status).ready, false);
    const [{ cure, ...reason }] = answer.reasons;
    const why = "64 calls are waiting, which is the limit: more are refused";
    assert.deepEqual(reason, { what: "line", line: "till", state: "queue-full", reason: why });
    assert.match(cure, /posline logs --live$/);
    live.waiting = 0;
    assert.equal(readyOf(status).status, 200);
  });
}

test("Status.readyz() says that a recovery usually ends by itself only as long as that is likely", (t) => {
  const status = new Status("1.2.3");
  const live = played("recovering");
  status.setSources(oneLineSources(live));
  status.line("till").state("recovering", "the device opened");
  const cure = () => readyOf(status).answer.reasons[0].cure;
  assert.match(
    cure(),
    /^wait: this takes a few seconds, at 9600 baud up to half a minute; if it takes longer: sudo posline doctor --line till$/,
  );
  const began = performance.now();
  t.mock.method(performance, "now", () => began + 240_000);
  assert.equal(cure(), "sudo posline doctor --line till");
});

test("Status.readyz() quotes a line's name so that a shell takes the cure as it stands", () => {
  const status = new Status("1.2.3");
  status.setSources({ lines: [lineSource("a'; reboot '", played("down"))], services: [] });
  assert.equal(readyOf(status).answer.reasons[0].cure, "sudo posline doctor --line 'a'\\''; reboot '\\'''");
});

test("Status.readyz() is 503 while posline stops, also with every line clean", () => {
  const status = new Status("1.2.3");
  status.setSources(oneLineSources(played("idle")));
  status.stopping();
  const { status: code, answer } = readyOf(status);
  assert.equal(code, 503);
  assert.equal(answer.reasons[0].what, "process");
  assert.equal(answer.reasons[0].state, "stopping");
});

for (const onFailure of ["refuse", "relay"] as const) {
  test(`Status.readyz() is ${onFailure === "refuse" ? 503 : 200} while the journal fails under onFailure ${onFailure}`, () => {
    const status = new Status("1.2.3");
    const live = { state: "ok", unknown: () => [] };
    status.setSources({ ...oneLineSources(played("idle")), journal: { folder: "/var/lib/posline", onFailure, live } });
    assert.equal(readyOf(status).status, 200);
    live.state = "the disk is full: free some space";
    const { status: code, answer } = readyOf(status);
    assert.equal(code, onFailure === "refuse" ? 503 : 200);
    assert.equal(statusOf(status).journal.state, live.state);
    if (onFailure === "relay") {
      const notes = ["the journal can't be written: requests are sent without a record: the disk is full: free some space"];
      assert.deepEqual(answer, { status: "ready", notes });
      assert.deepEqual(statusOf(status).notes, notes);
      live.state = "ok";
      assert.deepEqual(readyOf(status).answer, { status: "ready" });
      return;
    }
    assert.deepEqual(statusOf(status).notes, [], "it is a reason");
    const [{ cure, ...reason }] = answer.reasons;
    assert.deepEqual(reason, { what: "journal", state: "failing", reason: live.state });
    assert.match(cure, /fix the disk/);
  });
}

test("Status.readyz() is 200 while the log can't be written, and notes it as /status does", () => {
  const status = new Status("1.2.3");
  const log = { state: "ok", dropped: { budget: 1, reader: 0 } };
  status.setSources({ ...oneLineSources(played("idle")), log });
  assert.deepEqual(readyOf(status), { status: 200, answer: { status: "ready" } });
  log.state = "the log can't be written (ENOSPC): make room on its disk";
  log.dropped.reader = 12;
  assert.deepEqual(readyOf(status), { status: 200, answer: { status: "ready", notes: [log.state] } });
  assert.deepEqual(statusOf(status).notes, [log.state]);
  assert.deepEqual(statusOf(status).log, log);
});

test("Status.readyz() says that what was in doubt before is not known while the journal has not been read", () => {
  const status = new Status("1.2.3");
  const live = { state: "there is no folder /x: create it", isReadable: false, unknown: () => [] };
  status.setSources({ ...oneLineSources(played("idle")), journal: { folder: "/x", onFailure: "relay", live } });
  const { status: code, answer } = readyOf(status);
  assert.equal(code, 200);
  assert.deepEqual(answer.notes, [
    "the journal can't be written: requests are sent without a record: there is no folder /x: create it",
    "the journal has not been read since posline started: what was in doubt before is not known",
  ]);
  assert.equal(statusOf(status).journal.readable, false);
  live.isReadable = true;
  assert.equal(readyOf(status).answer.notes.length, 1);
  assert.equal(statusOf(status).journal.readable, true);
});

test("Status.readyz() is 200 with nothing to show", () => {
  assert.equal(readyOf(new Status("1.2.3")).status, 200);
});

test("Status.readyz() is 503 while a service of a clean line is unheard, with the cause and the fix, and 200 once it is heard", () => {
  const status = new Status("1.2.3");
  let state: "heard" | "unheard" = "unheard";
  const cause = { cause: "not one byte comes back", cure: "switch the terminal on" };
  const liveness = () => [
    { service: "bank" as const, state, heardMs: undefined, cause: state === "heard" ? undefined : cause },
    { service: "qr" as const, state: "heard" as const, heardMs: 1, cause: undefined },
  ];
  status.setSources(oneLineSources(played("idle", { liveness })));
  const { status: code, answer } = readyOf(status);
  assert.equal(code, 503);
  assert.equal(statusOf(status).ready, false);
  assert.deepEqual(answer.reasons, [
    { what: "service", line: "till", service: "bank", state: "unheard", reason: cause.cause, cure: cause.cure },
  ]);
  const { heard } = statusOf(status).services.bank;
  assert.deepEqual(heard, { state: "unheard", reason: cause.cause, cure: cause.cure });
  state = "heard";
  assert.equal(readyOf(status).status, 200);
});

test("Status.status() says why a service is silent only while its line is open: of one that is down the line does", () => {
  const status = new Status("1.2.3");
  const cause = { cause: "bank has not answered since the line opened", cure: "send bank any request" };
  const liveness = () => [{ service: "bank" as const, state: "unheard" as const, heardMs: undefined, cause }];
  const live = played("down", { liveness, reason: "there is no device /dev/till" });
  status.setSources(oneLineSources(live));
  assert.deepEqual(statusOf(status).services.bank.heard, { state: "unheard" });
  live.state = "idle";
  assert.deepEqual(statusOf(status).services.bank.heard, { state: "unheard", reason: cause.cause, cure: cause.cure });
});

test("Status.readyz() is 200 where posline asks nothing, and says so", () => {
  const status = new Status("1.2.3");
  const liveness = () => [{ service: "bank" as const, state: "unproven" as const, heardMs: undefined, cause: undefined }];
  status.setSources(oneLineSources(played("idle", { liveness })));
  const { status: code, answer } = readyOf(status);
  assert.equal(code, 200);
  assert.deepEqual(answer, {
    status: "ready",
    notes: ["posline sends no probe to bank on line till: only a call shows whether it is there"],
  });
});

test("Status.readyz() of a line that recovers names the line alone, not its services too", () => {
  const status = new Status("1.2.3");
  const liveness = () => [
    { service: "bank" as const, state: "unheard" as const, heardMs: undefined, cause: { cause: "why", cure: "do" } },
  ];
  status.setSources(oneLineSources(played("recovering", { liveness, reason: "why: do" })));
  assertMapped(readyOf(status).answer.reasons, ["line"], ({ what }: { what: string }) => what);
});
