import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import { type CapturedFrame, readCaptured, writeCaptured } from "../../src/capture/captured-frame.ts";
import { frameText } from "../../src/capture/frame-text.ts";
import { LineTap } from "../../src/capture/line-tap.ts";
import { ending, hasEnded, lineOver, requestFor } from "../line/lines.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { secretsIn, seededSecrets } from "../support/secrets.ts";
import { probeReply } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** A line that is watched, and a device that answers probes, and calls as a test says. */
function bench(answer: (device: FakeDevice, text: string) => void) {
  const device: FakeDevice = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe === undefined) answer(device, text);
    else device.reply(framing, probe);
  });
  const tap = new LineTap();
  const frames: CapturedFrame[] = [];
  const stop = tap.add({ unmasked: false, take: (some) => frames.push(...some) });
  const observe = tap.watch({ name: "till", secrets: [seededSecrets.merchantId] });
  const { line } = lineOver(device.open, { observe, config: { lateReplyMs: 500 } });
  after(() => line.stop(0));
  line.start();
  return {
    device,
    tap,
    frames,
    stop,
    line,
    has: (role: string) => until(() => frames.some((each) => each.role === role), role),
  };
}

const shown = ({ role, direction, service, route, checksum, outcome }: CapturedFrame) =>
  [role, direction, service, route, checksum, outcome].filter((each) => each !== undefined).join(" ");

test("LineTap shows the probe of an opening, a request and its reply, with what each is", async () => {
  const { frames, line, has } = bench((device) => device.reply("length", '{"status":"success"}'));
  const end = ending(line, requestFor("A-1"));
  await has("reply");
  assert.ok(hasEnded(end));
  // A fresh line is probed more than once.
  assert.deepEqual(frames.slice(0, 2).map(shown), ["probe out bank good", "probe answer in bank good"]);
  assert.deepEqual(frames.slice(-2).map(shown), ["request out bank /sale good", "reply in bank /sale good answered"]);
  const [request, reply] = frames.slice(-2);
  assert.equal(request?.requestId, "A-1");
  assert.equal(request?.payload.toString(), '/sale\n{"xx":"xxx"}');
  assert.equal(request?.wireBytes, 4 + (request?.payload.length ?? 0) + 2);
  assert.ok((reply?.timeMs ?? 0) >= (request?.timeMs ?? 0) && Math.abs((reply?.timeMs ?? 0) - Date.now()) < 5_000);
});

test("LineTap shows a wrong checksum with both readings, the ending as unknown, and the frame nobody asked for as late", async () => {
  const { frames, device, line, has } = bench((fake) => {
    const bad = frame("length", `{"status":"success","card":"${seededSecrets.card}"}`);
    bad[bad.length - 1] = (bad.at(-1) ?? 0) ^ 1;
    fake.send(bad);
  });
  const end = ending(line, requestFor("A-1"));
  await until(() => hasEnded(end), "the call to end");
  await has("ended");
  const discard = frames.find(({ role }) => role === "discard");
  assert.equal(discard?.checksum, "wrong");
  assert.match(discard?.sums ?? "", /^got [0-9a-f]{4}, arc [0-9a-f]{4}, umts [0-9a-f]{4}$/);
  const ended = frames.find(({ role }) => role === "ended");
  assert.equal(`${ended?.outcome} ${ended?.reason} ${ended?.requestId}`, "unknown reply-corrupt A-1");
  await until(() => line.state === "idle", "the line to be clean");
  device.reply("length", '{"status":"error"}');
  await has("late");
  assert.match(frameText(discard as CapturedFrame, false), /discard 52 bytes checksum wrong \(got .*\)\n0{8} {2}00 00 00 2e /);
});

test("LineTap's times keep their order where the process is put aside while it reads the clocks", async () => {
  const { frames, line, has } = bench((device) => device.reply("length", '{"status":"success"}'));
  const end = ending(line, requestFor("A-1"));
  await has("reply");
  assert.ok(hasEnded(end));
  const wall = Date.now.bind(Date);
  const slow = mock.method(Date, "now", () => {
    const read = wall();
    const began = performance.now();
    while (performance.now() - began < 20);
    return read;
  });
  const before = ending(line, requestFor("A-2"));
  await until(() => frames.filter(({ role }) => role === "reply").length === 2, "the second reply");
  slow.mock.restore();
  const after = ending(line, requestFor("A-3"));
  await until(() => frames.filter(({ role }) => role === "reply").length === 3, "the third reply");
  assert.ok(hasEnded(before) && hasEnded(after));
  const times = frames.map(({ timeMs }) => timeMs);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
});

test("LineTap masks for each watcher but those who may see all, and looks at nothing while nobody watches", async () => {
  const { frames, tap, stop, line, has } = bench((device) =>
    device.reply("length", `{"status":"success","rrn":"${seededSecrets.card}"}`),
  );
  const open: CapturedFrame[] = [];
  const stopOpen = tap.add({ unmasked: true, take: (some) => open.push(...some) });
  await line.run(requestFor(seededSecrets.card));
  await has("reply");
  assert.deepEqual(secretsIn(frames.map(writeCaptured).join("")), []);
  assert.deepEqual(secretsIn(frames.map(({ payload }) => payload.toString()).join("")), []);
  assert.ok(frames.every(({ masked }) => masked));
  assert.deepEqual(secretsIn(Buffer.concat(open.map(({ payload }) => payload))), [seededSecrets.card]);
  assert.ok(open.every(({ masked }) => !masked));
  stop();
  stopOpen();
  const seen = frames.length;
  await line.run(requestFor("A-2"));
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual([frames.length, open.length], [seen, seen]);
});

test("readCaptured() gives what writeCaptured() wrote, and undefined for anything else", async () => {
  const { frames, line, has } = bench((device) => device.reply("length", '{"status":"success"}'));
  await line.run(requestFor("A-1"));
  await has("reply");
  for (const each of frames) {
    const read = readCaptured(writeCaptured(each));
    assert.deepEqual(JSON.parse(JSON.stringify(read)), JSON.parse(JSON.stringify(each)));
  }
  for (const text of ["", "{}", "null", '{"posline":"1.0","masked":true}', '{"role":"x"}'])
    assert.equal(readCaptured(text), undefined);
});
