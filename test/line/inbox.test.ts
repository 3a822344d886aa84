import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineConfig } from "../../src/config/config.ts";
import { silenceMs } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Inbox, type Job } from "../../src/line/inbox.ts";
import { corruptQuietMs, standstillBeatMs } from "../../src/line/limits.ts";
import { type LineExchange, LineListener } from "../../src/line/listener.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { configOf } from "./lines.ts";

const time = virtualTime();

/** Milliseconds for which the till awaits an answer. */
const awaitedMs = 30_000;

/** A listener that answers the newest request alone, services that answer when a test lets them, and the till's end of the line. */
class Gateway {
  readonly device = new FakeDevice();
  readonly calls: { readonly call: Call; readonly waitedMs: number; answer(text: string): void; fail(fault: Error): void }[] =
    [];
  readonly exchanges: LineExchange[] = [];
  readonly errors: unknown[] = [];
  unaddressed = 0;
  /** Called when bytes are dropped. */
  onDiscard = () => {};
  readonly listener: LineListener;
  readonly #decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
  #read = 0;

  private constructor(config: Partial<LineConfig>) {
    const handler = (call: Call, waitedMs: number) =>
      new Promise<Reply>((resolve, reject) => {
        const answer = (text: string) =>
          resolve({ payload: [Buffer.from(text)], status: undefined, code: undefined, queueMs: 0, lineMs: 0 });
        this.calls.push({ call, waitedMs, answer, fail: reject });
      });
    this.listener = new LineListener({
      config: configOf(config),
      open: this.device.open,
      answering: "newest",
      services: [contracts.bank, contracts.fiscal].map((contract) => ({ contract, handler, awaitedMs: () => awaitedMs })),
      report: {
        discard: () => this.onDiscard(),
        state: () => {},
        exchange: (exchange) => this.exchanges.push(exchange),
        unaddressed: () => this.unaddressed++,
        error: (error) => this.errors.push(error),
      },
    });
    this.listener.start();
  }

  static async open(config: Partial<LineConfig> = {}): Promise<Gateway> {
    const gateway = new Gateway(config);
    await time.advance(silenceMs + 1);
    return gateway;
  }

  async ask(text: string, framing: "length" | "stx" = "length"): Promise<void> {
    this.device.reply(framing, text);
    await this.settle();
  }

  /** Answers the latest call, and gives what went out since the last time. */
  async answer(text: string): Promise<string[]> {
    this.calls.at(-1)?.answer(text);
    return this.written();
  }

  /** Before an answer goes out, and behind each wait, the loop is let go round twice; two answers may go out. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await time.settle();
  }

  async written(): Promise<string[]> {
    await this.settle();
    const bytes = this.device.written.slice(this.#read);
    this.#read = this.device.written.length;
    return this.#decoder
      .push(Buffer.concat(bytes))
      .map((item) => (item.kind === "frame" ? Buffer.concat(item.payload).toString() : item.reason));
  }

  get endings(): string[] {
    return this.exchanges.map(({ call, ending, given }) => {
      const name = Buffer.concat(call.body).toString();
      return `${name} ${ending instanceof Fault ? ending.outcome : "answered"} ${given ? "given" : "kept back"}`;
    });
  }
}

type Step = (gateway: Gateway) => unknown;

const ask =
  (text: string, framing?: "stx"): Step =>
  (gateway) =>
    gateway.ask(text, framing);
/** Answers the latest call: what goes out then. */
const answer =
  (text: string, ...wanted: readonly string[]): Step =>
  async (gateway) =>
    assert.deepEqual(await gateway.answer(text), wanted, `answered ${text}`);
const given = (text: string) => answer(text, text);
const kept = (text: string) => answer(text);
const writes =
  (...wanted: readonly string[]): Step =>
  async (gateway) =>
    assert.deepEqual(await gateway.written(), wanted);
const calls =
  (count: number): Step =>
  (gateway) =>
    assert.equal(gateway.calls.length, count, "calls");
const ends =
  (...wanted: readonly string[]): Step =>
  (gateway) =>
    assert.deepEqual(gateway.endings, wanted);
const hasLeft =
  (gone: boolean): Step =>
  (gateway) =>
    assert.equal(gateway.calls.at(-1)?.call.caller.gone, gone, "gone");
const send =
  (...bytes: readonly Uint8Array[]): Step =>
  (gateway) => {
    gateway.device.send(Buffer.concat(bytes));
    return gateway.settle();
  };
/** Where the process stood still, an answer may be read before what was asked. */
const unread =
  (text: string): Step =>
  (gateway) =>
    setImmediate(() => gateway.device.reply("length", text));
const wait =
  (ms: number): Step =>
  async (gateway) => {
    await time.advance(ms);
    await gateway.settle();
  };
const replug: Step = async ({ device }) => {
  device.unplug();
  device.plug();
  await time.advance(3_000);
};

/** An answer that takes 8.4 s at 2400 baud. */
const longAnswer = `{"print_data":"${"x".repeat(2_000)}"}`;

/** A frame of which a byte of the payload is another one. */
function damaged(framing: "length" | "stx", text: string): Buffer {
  const bytes = frame(framing, text);
  bytes.writeUInt8(bytes.readUInt8(8) ^ 1, 8);
  return bytes;
}

const formText = "command=/sale&data=e30=&sign=x";
const form = frame("stx", formText);
const [confirm, check] = [frame("length", '/confirm\n{"pay_id":"A"}'), frame("length", "/check\n2")];
/** The same request once more, broken, and once more, begun. */
const again = [send(confirm), send(damaged("length", '/confirm\n{"pay_id":"A"}')), wait(2 * corruptQuietMs)];
const noForm = "Cannot read the request: it is not a form of command, data and sign";
const slow = { baudRate: 2_400 };

for (const [what, config, ...steps] of [
  [
    "keeps an answer back when another request came meanwhile, and answers that one",
    {},
    ...[ask("/sale\n1"), ask("/check\n2"), calls(1), hasLeft(true), kept("1"), calls(2), hasLeft(false), given("2")],
    ends("1 answered kept back", "2 answered given"),
  ],
  [
    "never carries out a request that waits when another comes",
    {},
    ...[ask("/sale\n1"), ask("/sale\n2"), ask("/sale\n3"), ask("/check\n4"), kept("1"), given("4"), calls(2)],
    ends("2 not-sent kept back", "3 not-sent kept back", "1 answered kept back", "4 answered given"),
  ],
  [
    "answers the same request asked again once, carries it out once, and takes it for a new one once it was answered",
    {},
    ...[ask("/sale\n1"), ask("/sale\n1"), hasLeft(false), given("1"), calls(1)],
    // Asked again after another, it is the newest again.
    ...[ask("/sale\n2"), ask("/check\n3"), ask("/sale\n2"), given("2"), calls(2), ask("/sale\n2"), calls(3)],
  ],
  ["keeps an answer back when another request lies unread", {}, ...[ask("/sale\n1"), unread("/check\n2"), kept("1"), calls(2)]],
  ["carries out once what is asked again, and lies unread", {}, ...[ask("/sale\n1"), unread("/sale\n1"), given("1"), calls(1)]],
  [
    "keeps an answer back when what the till asked lies unread behind noise",
    {},
    ...[ask("/sale\n1"), send(Buffer.alloc(4, 0xff)), kept("1")],
    // Where the process stood still, the silence behind the noise is over before what came in it is read.
    (gateway) => {
      gateway.onDiscard = () => setImmediate(() => gateway.device.reply("length", "/check\n2"));
    },
    ...[wait(corruptQuietMs + 1), writes(), calls(2), given("2")],
  ],
  [
    "keeps an answer back that comes later than any till awaits it",
    {},
    ...[ask("/sale\n1"), wait(awaitedMs), given("1"), ask("/sale\n2"), wait(awaitedMs + 1), kept("2")],
    ...[ends("1 answered given", "2 answered kept back"), ask("/check\n3"), given("3")],
  ],
  [
    "carries out once what is asked again, whole or damaged, or is begun while its answer is on the wire",
    slow,
    ...[ask("/sale\n1"), given(longAnswer), ends("1 answered given"), wait(1_000), ask("/sale\n1")],
    ...[send(damaged("length", "/sale\n1")), wait(1_000), ask("/sale\n1"), wait(6_300)],
    ...[send(frame("length", "/sale\n1").subarray(0, 8)), wait(200), send(frame("length", "/sale\n1").subarray(8))],
    ...[calls(1), writes(), ask("/sale\n1"), calls(2)],
  ],
  [
    "hands on another request, and one that only reads, while an answer is on the wire",
    slow,
    ...[ask("/sale\n1"), given(longAnswer), ask("/check\n2"), calls(2), given(longAnswer), ask("/check\n2"), calls(3)],
    given(longAnswer),
  ],
  [
    "takes what is asked again for a new request at once where its answer is soon out",
    { baudRate: 115_200 },
    ...[ask("/sale\n1"), given(longAnswer), ask("/sale\n1"), calls(2), given(longAnswer)],
  ],
  [
    "takes what is asked again for a new request once its answer is out on a slow line",
    slow,
    ...[ask("/sale\n1"), given(longAnswer), wait(8_500), ask("/sale\n1"), calls(2)],
  ],
  [
    "carries out a request at once that comes behind a frame that asks nobody, which is answered by nothing",
    {},
    ...[ask("who is there", "stx"), wait(corruptQuietMs / 2), ask("/sale\n1"), calls(1), given("one")],
  ],
  [
    "takes a request of other bytes or another framing for another one",
    {},
    ...[ask("/sale\n1"), ask("/sale\n1 "), kept("{}"), ask("/sale\n1 ", "stx"), kept("{}"), wait(corruptQuietMs)],
    writes(`{"status":"error","code":2,"message":"${noForm}"}`),
    ({ unaddressed }: Gateway) => assert.equal(unaddressed, 1),
  ],
  ...(["stx", "length"] as const).map(
    (framing) =>
      [
        `says nothing of what came broken during a request in a frame of ${framing}, and keeps its answer back`,
        {},
        ...[ask("/sale\n1"), send(damaged(framing, "command=/check_status")), wait(1_000), kept("1")],
        ...[ends("1 answered kept back"), ask("/check\n2"), given("2")],
      ] as const,
  ),
  [
    "gives the answer in spite of noise, but not before what is coming has ended",
    {},
    ...[ask("/sale\n1"), send(Buffer.from("AT\r\n")), wait(10_000), given("1")],
    // It may hide the beginning of a request, for as long as no silence tells.
    ...[ask("/sale\n2"), send(Buffer.from("AT\r\n")), kept("2"), wait(1_000), writes("2")],
    ...[ask("/sale\n2"), send(check.subarray(0, 7)), kept("2"), send(check.subarray(7)), given("3")],
  ],
  [
    "keeps the answer back after as much noise as can hide a request",
    {},
    ...[ask("/sale\n1"), send(Buffer.from("AT\r\n"), check), wait(1_000), kept("1"), ask("/check\n2"), given("2")],
  ],
  [
    "answers on a new opening only what was asked again on it",
    {},
    ...[ask("/sale\n1"), replug, ({ device }: Gateway) => assert.equal(device.openings, 2), ask("/sale\n1"), given("1")],
    ...[ask("/sale\n2"), replug, kept("2"), calls(2)],
  ],
  [
    "answers no broken frame that a good one follows in the same read",
    {},
    send(damaged("stx", formText), form),
    calls(1),
    writes(),
  ],
  ...(
    [
      [[damaged("stx", formText), form.subarray(0, 9)], form.subarray(9)],
      [[damaged("stx", formText)], form],
    ] as const
  ).map(
    ([first, second], n) =>
      [
        `answers no broken frame behind which another ${n === 0 ? "has begun" : "comes"}`,
        {},
        ...[send(...first), wait(corruptQuietMs / 2), send(second), wait(corruptQuietMs), writes(), calls(1), given("1")],
      ] as const,
  ),
  [
    "gives an answer to the same request that was still coming, though a copy before it came broken",
    {},
    ...[...again, send(confirm.subarray(0, 10)), kept("1"), send(confirm.subarray(10)), writes("1"), calls(1)],
    // Another one that was coming is carried out, and gets its own answer.
    ...[...again, send(check.subarray(0, 6)), kept("1"), send(check.subarray(6)), writes(), calls(3), given("2")],
  ],
  [
    "carries nothing out before what comes behind it has ended",
    {},
    ...[send(confirm, check.subarray(0, 6)), calls(0), send(check.subarray(6)), calls(1)],
    ({ calls: [first] }: Gateway) => assert.equal(first?.call.route, "/check"),
  ],
] satisfies readonly (readonly [what: string, config: Partial<LineConfig>, ...steps: Step[]])[]) {
  test(`LineListener of the newest ${what}`, async () => {
    const gateway = await Gateway.open(config);
    for (const step of steps) await step(gateway);
    await gateway.listener.stop();
  });
}

test("LineListener of the newest answers a frame that is broken in two once it is quiet", async () => {
  const gateway = await Gateway.open();
  const cut = Buffer.from(form);
  cut.writeUInt8(3, 12);
  gateway.device.send(cut);
  await time.advance(1_000);
  const [error, ...more] = await gateway.written();
  assert.deepEqual([JSON.parse(error ?? "").code, more, gateway.calls.length], [2, [], 0]);
  await gateway.listener.stop();
});

test("LineListener.finish() doesn't wait for the wire, and a lost line begins anew", async () => {
  const gateway = await Gateway.open({ baudRate: 2_400 });
  await gateway.ask("/sale\n1");
  await gateway.answer(longAnswer);
  gateway.device.unplug();
  gateway.device.plug();
  await time.advance(3_000);
  await gateway.ask("/sale\n1");
  assert.equal(gateway.calls.length, 2);
  await gateway.answer(longAnswer);
  await gateway.listener.finish();
  assert.equal(gateway.device.isOpen, false);
});

test("LineListener tells the handler how long a call has waited", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await time.advance(5_000);
  await gateway.ask("/check\n2");
  await time.advance(7_000);
  await gateway.answer("{}");
  assertMapped(gateway.calls, [0, 7_000], ({ waitedMs }) => Math.round(waitedMs));
  await gateway.answer("{}");
  assertMapped(
    gateway.exchanges,
    [
      [0, 12_000],
      [7_000, 0],
    ],
    ({ waitedMs, tookMs }) => [Math.round(waitedMs), Math.round(tookMs)],
  );
  await gateway.listener.stop();
});

test("LineListener writes a fault in the words that it brings, and reports an error that is none", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  gateway.calls[0]?.fail(new Fault("unavailable", "m", { payload: [Buffer.from('{"status":"error","own":1}')] }));
  assert.deepEqual(await gateway.written(), ['{"status":"error","own":1}']);
  await gateway.ask("/sale\n2");
  gateway.calls[1]?.fail(new TypeError("a bug"));
  assert.match((await gateway.written())[0] ?? "", /internal error in posline, please report it\. Outcome unknown/);
  assert.deepEqual(gateway.errors.map(String), ["TypeError: a bug"]);
  await gateway.listener.stop();
});

test("LineListener.finish() lets the request in work be answered, refuses what waits, and gives the device back", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  const finished = gateway.listener.finish();
  await time.advance(5_000);
  assert.equal(gateway.device.isOpen, true);
  assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
  await finished;
  assert.equal(gateway.device.isOpen, false);

  const busy = await Gateway.open();
  await busy.ask("/sale\n1");
  await busy.ask("/sale\n2");
  const ended = busy.listener.finish();
  const [refusal] = await busy.answer('{"n":1}');
  assert.match(
    refusal ?? "",
    /"code":-3,"message":"Cannot send \/sale: posline is shutting down\. Nothing was sent: it may be sent again, unless an earlier try is in doubt"/,
  );
  assert.equal(busy.calls.length, 1);
  await ended;
});

test("LineListener of the newest says of a request that it gave up that nothing was sent, and how long it had waited", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await gateway.ask("/sale\n2");
  await time.advance(3_000);
  await gateway.ask("/check\n3");
  const [givenUp] = gateway.exchanges;
  assert.ok(givenUp?.ending instanceof Fault);
  assert.deepEqual([givenUp.ending.reason, givenUp.waitedMs, givenUp.tookMs], ["caller-left", 3_000, 0]);
  assert.match(givenUp.ending.message, /Cannot send \/sale: .*no longer waits.*Nothing was sent/);
  assert.equal(givenUp.given, false);
  await gateway.answer("{}");
  await gateway.answer("{}");
  await gateway.listener.stop();
});

/** A request in a frame. */
function jobOf(text: string): Job {
  const payload = [Buffer.from(text)];
  return {
    heardMs: 0,
    frame: { kind: "frame", framing: "length", payload, payloadBytes: text.length, wireBytes: text.length + 6 },
  };
}

test("Inbox of all requests gives up the seventeenth that waits, and none for bytes that can't be read", () => {
  const givenUp: Job[] = [];
  const inbox = new Inbox("all", (job) => givenUp.push(job));
  inbox.take(jobOf("/sale\n0"));
  assert.deepEqual(inbox.next(), jobOf("/sale\n0"));
  for (let number = 1; number <= 17; number++) inbox.take(jobOf(`/sale\n${number}`));
  assert.deepEqual(givenUp, [jobOf("/sale\n17")]);
  inbox.supersede();
  assert.equal(inbox.wanted, true);
  assert.deepEqual(inbox.next(), jobOf("/sale\n1"));
});

test("a gateway that stood still takes what it reads then for as old as it may be, and what comes later for new", async () => {
  const sale = frame("length", '/sale\n{"pay_id":"A","amount":1}');
  for (const parts of [[sale], [sale.subarray(0, 20), sale.subarray(20)]]) {
    for (const isTimerFirst of [false, true]) {
      const gateway = await Gateway.open();
      await time.advance(3_600_000);
      await gateway.ask("/check\n{}");
      assert.equal(gateway.calls.at(-1)?.waitedMs, 0, "an idle hour is no standstill");
      await gateway.answer("one");
      time.nowMs += 40_000;
      const timers = isTimerFirst ? time.advance(0) : Promise.resolve();
      for (const part of parts) {
        gateway.device.send(part);
        if (parts.length === 1) continue;
        // Its rest is read once the process is known to run again.
        await time.advance(10);
        await gateway.settle();
      }
      await timers;
      await gateway.settle();
      const waitedMs = gateway.calls.at(-1)?.waitedMs ?? 0;
      assert.ok(waitedMs >= 40_000 && waitedMs <= 40_000 + standstillBeatMs + 100, `${waitedMs}`);
      assert.deepEqual(await gateway.answer("two"), []);
      await time.advance(10);
      await gateway.settle();
      await gateway.ask('/check\n{"pay_id":"A"}');
      assert.equal(gateway.calls.at(-1)?.waitedMs, 0);
      assert.deepEqual(await gateway.answer("three"), ["three"]);
      await gateway.listener.stop();
    }
  }
});

test("Inbox of the newest request carries out the last of those that come at one time, and none that bytes behind it supersede", () => {
  const givenUp: Job[] = [];
  const inbox = new Inbox("newest", (job) => givenUp.push(job));
  for (const text of ["/sale\n1", "/sale\n2", "/sale\n2"]) inbox.take(jobOf(text));
  assert.deepEqual(givenUp, [jobOf("/sale\n1")]);
  assert.deepEqual(inbox.next(), jobOf("/sale\n2"));
  assert.equal(inbox.next(), undefined);
  inbox.take(jobOf("/sale\n3"));
  inbox.supersede();
  assert.equal(inbox.next(), undefined);
});
