import assert from "node:assert/strict";
import { test } from "node:test";
import { startBefore, suspectOf } from "../../scripts/replay-test.ts";
import { FlightRecorder, LineRecorder, type RecordingSize } from "../../src/capture/recorder.ts";
import { parseRecordings, type RecordedEvent, type Recording, recordingText } from "../../src/capture/recording.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import { bytesOf } from "../../src/core/pieces.ts";
import { replay } from "../../src/lab/replay/replay.ts";
import { lineService } from "../../src/line/caller.ts";
import { LineEngine } from "../../src/line/engine.ts";
import type { LineEvent } from "../../src/line/events.ts";
import { Exchange, type LineRequest } from "../../src/line/exchange.ts";
import type { Decoded, Frame, Framing } from "../../src/wire/decoded.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { configOf, merchantId, requestFor } from "../line/lines.ts";
import { secretsIn, seededSecrets } from "../support/secrets.ts";
import { bothReplies, probeReplies, questionReplies } from "../support/terminal.ts";

const config = configOf({ idleProbeMs: 0, lateReplyMs: 4_000, queueCallsMax: 400 });
const services = contractNames.map((name) => lineService(contracts[name], { crc16: "arc", quiet: false, merchantId }));

/** An engine with its recorder, given events by hand, a millisecond apart. */
class Recorded {
  now = 1_000;
  readonly recorder: LineRecorder;
  readonly engine = new LineEngine({ name: "till", config, services });

  constructor(size?: RecordingSize) {
    this.recorder = new LineRecorder({ name: "till", config, services }, size);
  }

  give(event: LineEvent, afterMs = 1): void {
    this.now += afterMs;
    this.recorder.observe(event, this.engine.handle(event, this.now), this.now, this.engine);
  }

  call(id: string, settings: Partial<LineRequest> = {}): Exchange {
    const request = { ...requestFor(id), ...settings };
    const times = { cameMs: this.now, waitUntilMs: this.now + 15_000 };
    const exchange = new Exchange("till", request, frameOf(request.framing, request.payload, "arc"), times);
    this.give({ at: "call", exchange });
    return exchange;
  }

  receive(...items: readonly Decoded[]): void {
    this.give({ at: "received", items, receiving: { phase: "idle", heardMs: this.now, burstUntilMs: 0 } });
  }

  open(): void {
    this.give({ at: "opened", seed: 7 });
    this.give({ at: "drained" });
    this.prove();
  }

  /** Until each service has been proven in step, by a terminal that answers each question at once. */
  prove(): void {
    for (let turn = 0; this.engine.state !== "idle"; turn++) {
      assert.ok(turn < 1_000, "the line doesn't come in step");
      this.ask();
      this.answer();
    }
  }

  /** Until a question of posline's own is being written. */
  ask(): void {
    while (this.engine.rest?.isWriting === false) this.give({ at: "tick" }, 100);
  }

  /** The answer to the question that is being written. */
  answer(): void {
    const { services = [], askedMs } = this.engine.rest?.recovery ?? {};
    const out = services.find((each) => each.open !== undefined && each.askedMs === askedMs);
    const name = contractNames.find((each) => each === out?.service);
    assert.ok(name !== undefined && out?.open !== undefined);
    this.give({ at: "wrote" });
    this.receive(frame(questionReplies[name][out.open], contracts[name].framing));
  }

  get recording(): Recording {
    const [recording] = parseRecordings(recordingText(this.recorder.recording([])));
    assert.ok(recording !== undefined);
    return recording;
  }
}

function frame(text: string | Buffer, framing: Framing = "length", wireBytes?: number): Frame {
  const payload = Buffer.from(text);
  return {
    kind: "frame",
    framing,
    payload: [payload],
    payloadBytes: payload.length,
    wireBytes: wireBytes ?? payload.length + 6,
  };
}

/** Replays it whole, and gives its events. */
function same(recording: Recording): readonly RecordedEvent[] {
  return [...replay(recording)].map(({ event, decided, difference }) => {
    assert.equal(difference, undefined, JSON.stringify([event, decided]));
    assert.ok(decided !== undefined, `${event.at} isn't replayed`);
    return event;
  });
}

const itemsOf = (events: readonly RecordedEvent[]) => events.flatMap((event) => (event.at === "received" ? event.items : []));

test("LineRecorder keeps of a long reply only what the engine reads in it", () => {
  const life = new Recorded();
  life.open();
  for (const text of [
    JSON.stringify({ status: "success", code: 7, data: { print: "x".repeat(100_000), operations: ["sale"] } }),
    JSON.stringify({ status: "error", code: 123_456_789, print: "x".repeat(5_000) }),
    "[".repeat(5_000),
    `[${"1,".repeat(70_000)}1]`,
    `{${"x".repeat(5_000)}`,
  ]) {
    life.call("A", { replyTimeoutMs: 4_000, shapedAs: "probe" });
    life.give({ at: "wrote" });
    life.receive(frame(text));
    life.prove();
  }
  // For nobody: what probe it may answer is read as well.
  life.receive(
    frame(JSON.stringify({ status: "success", code: 7, data: { print: "x".repeat(100_000), operations: ["sale"] } })),
  );
  const events = same(life.recording);
  const { length } = recordingText(life.recording);
  assert.ok(length < 100_000, `${length} characters, of replies of 350,000`);
  const kept = itemsOf(events).flatMap((item) => (item.kind === "frame" ? [item.like ?? item.unread ?? []].flat() : []));
  assert.deepEqual(kept, [
    { status: "success", code: 7 },
    { status: "error", code: 99_999 },
    "nested deeper than 64 levels",
    "made of more than 65536 entries",
    "not a JSON object",
    { status: "success", code: 7, data: { operations: [] } },
  ]);
});

test("LineRecorder keeps of a reply what tells the answer to the second question, and which of the two a call's may look like", () => {
  const life = new Recorded();
  life.give({ at: "opened", seed: 7 });
  life.give({ at: "drained" });
  const long = (text: string) => JSON.stringify({ ...JSON.parse(text), print: "x".repeat(5_000) });
  life.receive(frame(long(bothReplies.terminals)));
  life.receive(frame(long(bothReplies.shift), "stx"));
  life.receive(frame(long('{"status":"success","code":0,"documentID":4,"isShiftOpen":"true"}'), "stx"));
  life.prove();
  life.call("A", { route: "/terminals", shapedAs: "second" });
  life.give({ at: "wrote" });
  life.receive(frame(long(bothReplies.terminals)));
  const events = same(life.recording);
  const kept = itemsOf(events).flatMap((item) => (item.kind === "frame" ? (item.like ?? []) : []));
  assert.deepEqual(kept, [
    { status: "success", data: { terminals: [] } },
    { status: "success", code: 0, isShiftOpen: "?" },
    { status: "success", code: 0 },
    // Of a call's own reply it is looked for nowhere.
    { status: "success" },
  ]);
  assert.deepEqual(
    events.flatMap((event) => (event.at === "opened" ? [event.seed] : [])),
    [7],
  );
  const call = events.find((event) => event.at === "call");
  assert.equal(call?.at === "call" && call.shapedAs, "second");
});

test("LineRecorder keeps of what came back that it did, of a call and of posline's own question, and no byte of it", () => {
  const life = new Recorded();
  life.open();
  const { frame: sent } = life.call("A", { route: "/sale" });
  life.give({ at: "wrote" });
  const payload = Buffer.concat(sent).subarray(4, -2);
  life.receive({ ...frame(payload, "length", bytesOf(sent)), isEcho: true });
  assert.equal(life.engine.state, "awaiting");
  life.receive(frame('{"status":"success"}'));
  const events = same(life.recording);
  const echoes = itemsOf(events).filter((item) => item.kind === "frame" && item.isEcho === true);
  assert.deepEqual(echoes, [
    { kind: "frame", framing: "length", payloadBytes: payload.length, wireBytes: bytesOf(sent), isEcho: true },
  ]);
  assert.match(JSON.stringify(events), /"do":"echo".*"do":"echoes".*"do":"answer"/s);
});

test("LineRecorder tells an echo, a login prompt and noise apart, and shows no byte of them", () => {
  const life = new Recorded();
  life.give({ at: "opened" });
  life.give({ at: "drained" });
  life.give({ at: "tick" }, 50);
  life.give({ at: "wrote" });
  life.receive({ ...frame("/supported_operations", "length"), isEcho: true });
  life.give({ at: "tick" }, 9_999);
  life.give({ at: "wrote" });
  const noise = { kind: "discard", reason: "noise", wireBytes: 20 } as const;
  life.receive({ ...noise, head: Buffer.from("kiosk-77 login: ").toString("hex") });
  life.receive({ ...noise, head: Buffer.from(seededSecrets.card).toString("hex") });
  life.give({ at: "lost", reason: "unplugged", nothingWritten: false, discards: [{ ...noise, head: "34353339" }] });
  const { recording } = life;
  const events = same(recording);
  const text = recordingText(recording);
  assert.match(JSON.stringify(events), /"isEcho":true.*\n?.*what was sent comes back/);
  for (const secret of ["kiosk-77", Buffer.from("kiosk-77").toString("hex"), "34353339"])
    assert.ok(!text.includes(secret), secret);
  assert.deepEqual(secretsIn(text), []);
});

test("LineRecorder notes when a caller's leaving decided something, though no event says it", () => {
  const life = new Recorded();
  life.open();
  const query = life.call("Q", { repeatable: true });
  life.give({ at: "wrote" });
  query.request.caller.leave();
  life.receive(frame("not JSON"));
  const events = same(life.recording);
  const last = events.at(-1);
  assert.deepEqual(last?.left, [1]);
  assert.match(JSON.stringify(last?.decided), /"do":"fail","call":1,"outcome":"unknown"/, "it isn't sent again for nobody");
});

test("replay() gives no event to an engine while its state isn't known, and begins at the first rest", () => {
  const life = new Recorded({ segmentChars: 6_144, segmentsMax: 3 });
  life.open();
  life.call("A");
  // Never at rest: the next one waits before this one is answered.
  for (let n = 0; n < 90; n++) {
    life.call(`W${n}`);
    life.give({ at: "wrote" });
    life.receive(frame('{"status":"success","code":0}'));
  }
  assert.ok(life.recording.entries[0]?.at === "gap");
  for (const { decided, difference } of replay(life.recording)) assert.deepEqual([decided, difference], [undefined, undefined]);
  life.give({ at: "wrote" });
  life.receive(frame('{"status":"success","code":0}'));
  life.call("B");
  const steps = [...replay(life.recording)];
  assert.deepEqual(steps.at(-1)?.decided, steps.at(-1)?.event.decided);
});

test("A recording has what was before the line's first rest, marked as what can't be replayed", () => {
  const life = new Recorded({ segmentChars: 6_144, segmentsMax: 3 });
  life.open();
  life.call("A");
  for (let n = 0; n < 90; n++) {
    life.call(`W${n}`);
    life.give({ at: "wrote" });
    life.receive(frame('{"status":"success","code":0}'));
  }
  life.give({ at: "wrote" });
  life.receive(frame('{"status":"success","code":0}'));
  const { recording } = life;
  const { entries } = recording;
  assert.ok(entries.length > 50, `${entries.length} entries`);
  assert.deepEqual([entries[0]?.at, entries.at(-1)?.at], ["gap", "rest"]);
  const before = [...replay(recording)];
  assert.ok(before.every(({ decided, difference }) => decided === undefined && difference === undefined));
  assert.equal(suspectOf(recording), 0);
  assert.equal(startBefore(entries, entries.length - 1), -1);
  life.call("B");
  assert.equal(suspectOf(life.recording), entries.length + 1);
  assert.equal(startBefore(life.recording.entries, entries.length + 1), entries.length - 1);
});

test("replay() finds a decision that is another, and stops there", () => {
  const life = new Recorded();
  life.open();
  life.call("A");
  life.give({ at: "wrote" });
  life.receive(frame('{"status":"success","code":0}'));
  life.call("B");
  const text = recordingText(life.recording);
  const [changed] = parseRecordings(
    text.replace('"do":"answer","call":1,"status":"success"', '"do":"answer","call":1,"status":"error"'),
  );
  assert.ok(changed !== undefined);
  const last = [...replay(changed)].at(-1);
  assert.equal(last?.difference, "it decides otherwise than it did then");
  assert.deepEqual(last?.decided, [{ do: "answer", call: 1, status: "success", code: 0 }]);
});

test("FlightRecorder keeps a line's recording over one reload, and no longer", () => {
  const recorder = new FlightRecorder();
  for (const requestId of ["first", "second", "third"]) {
    const observe = recorder.watch({ name: "till", config, services });
    const engine = new LineEngine({ name: "till", config, services });
    const request = { ...requestFor("A"), requestId };
    const exchange = new Exchange("till", request, [], { cameMs: 1, waitUntilMs: 2 });
    const event: LineEvent = { at: "call", exchange };
    observe(event, engine.handle(event, 1), 1, engine);
  }
  // Lines of configurations that were refused.
  for (let n = 0; n < 3; n++) {
    const observe = recorder.watch({ name: "till", config, services });
    const engine = new LineEngine({ name: "till", config, services });
    const event: LineEvent = { at: "stop", graceMs: 0, why: "the new configuration was refused" };
    observe(event, engine.handle(event, 1), 1, engine);
  }
  const recordings = parseRecordings(recorder.text([]));
  const ids = recordings.flatMap(({ entries }) => entries.flatMap((entry) => (entry.at === "call" ? [entry.requestId] : [])));
  assert.deepEqual(ids, ["second", "third"]);
  for (const recording of recordings) same(recording);
});

test("LineRecorder shows of replies nothing but what is harmless", () => {
  const life = new Recorded();
  life.open();
  life.call("A", { requestId: seededSecrets.card });
  life.give({ at: "wrote" });
  life.receive(
    frame(JSON.stringify({ status: "success", code: 0, seeded: seededSecrets, data: Object.values(seededSecrets) })),
  );
  life.receive(frame(probeReplies.bankSupported));
  const { recording } = life;
  assert.deepEqual(secretsIn(recordingText(recording)), []);
  same(recording);
});
