import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { LineConfig } from "../../src/config/config.ts";
import { silenceMs } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Inbox, type Job } from "../../src/line/inbox.ts";
import { corruptQuietMs, standstillBeatMs } from "../../src/line/limits.ts";
import { type LineExchange, LineListener } from "../../src/line/listener.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { configOf } from "./lines.ts";

const time = new VirtualTime();
after(() => time.restore());

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

test("LineListener of the newest keeps an answer back when another request came meanwhile, and answers that one", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await gateway.ask("/check\n2");
  assert.equal(gateway.calls.length, 1, "one at a time");
  assert.equal(gateway.calls[0]?.call.caller.gone, true);
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  assert.equal(gateway.calls.length, 2);
  assert.equal(gateway.calls[1]?.call.caller.gone, false);
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  assert.deepEqual(gateway.endings, ["1 answered kept back", "2 answered given"]);
  await gateway.listener.stop();
});

test("LineListener of the newest never carries out a request that waits when another comes", async () => {
  const gateway = await Gateway.open();
  for (const text of ["/sale\n1", "/sale\n2", "/sale\n3", "/check\n4"]) await gateway.ask(text);
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  assert.deepEqual(await gateway.answer('{"n":4}'), ['{"n":4}']);
  assert.equal(gateway.calls.length, 2);
  assert.deepEqual(gateway.endings, [
    "2 not-sent kept back",
    "3 not-sent kept back",
    "1 answered kept back",
    "4 answered given",
  ]);
  await gateway.listener.stop();
});

test("LineListener of the newest answers the same request asked again once, and carries it out once", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await gateway.ask("/sale\n1");
  assert.equal(gateway.calls[0]?.call.caller.gone, false);
  assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
  assert.equal(gateway.calls.length, 1);
  // Asked again after another, it is the newest again.
  await gateway.ask("/sale\n2");
  await gateway.ask("/check\n3");
  await gateway.ask("/sale\n2");
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  assert.equal(gateway.calls.length, 2);
  // Once it was answered, it is a new request.
  await gateway.ask("/sale\n2");
  assert.equal(gateway.calls.length, 3);
  await gateway.listener.stop();
});

test("LineListener of the newest keeps an answer back when what the till asked meanwhile lies unread, and carries out no copy", async () => {
  for (const [again, answers, calls] of [
    ["/check\n2", [], 2],
    ["/sale\n1", ['{"n":1}'], 1],
  ] as const) {
    const gateway = await Gateway.open();
    await gateway.ask("/sale\n1");
    // Where the process stood still, the answer may be read first.
    setImmediate(() => gateway.device.reply("length", again));
    assert.deepEqual(await gateway.answer('{"n":1}'), answers);
    assert.equal(gateway.calls.length, calls);
    await gateway.listener.stop();
  }
});

test("LineListener of the newest keeps an answer back when what the till asked lies unread behind noise", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  gateway.device.send(Buffer.alloc(4, 0xff));
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  // Where the process stood still, the silence behind the noise is over before what came in it is read.
  gateway.onDiscard = () => setImmediate(() => gateway.device.reply("length", "/check\n2"));
  await time.advance(corruptQuietMs + 1);
  assert.deepEqual([await gateway.written(), gateway.calls.length], [[], 2]);
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  await gateway.listener.stop();
});

test("LineListener keeps an answer back that comes later than any till awaits it", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await time.advance(awaitedMs);
  assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
  await gateway.ask("/sale\n2");
  await time.advance(awaitedMs + 1);
  assert.deepEqual(await gateway.answer('{"n":2}'), []);
  assert.deepEqual(gateway.endings, ["1 answered given", "2 answered kept back"]);
  await gateway.ask("/check\n3");
  assert.deepEqual(await gateway.answer('{"n":3}'), ['{"n":3}']);
  await gateway.listener.stop();
});

/** An answer that takes 8.4 s at 2400 baud. */
const longAnswer = `{"print_data":"${"x".repeat(2_000)}"}`;

test("LineListener of the newest carries out once what is asked again while its answer is on the wire", async () => {
  const gateway = await Gateway.open({ baudRate: 2_400 });
  await gateway.ask("/sale\n1");
  assert.equal((await gateway.answer(longAnswer)).length, 1);
  assert.deepEqual(gateway.endings, ["1 answered given"], "it is reported at once");
  await time.advance(1_000);
  await gateway.ask("/sale\n1");
  // A repetition that is damaged doesn't end it either.
  const damaged = frame("length", "/sale\n1");
  damaged.writeUInt8(damaged.readUInt8(6) ^ 1, 6);
  gateway.device.send(damaged);
  await time.advance(1_000);
  await gateway.ask("/sale\n1");
  await time.advance(6_300);
  // Begun before the answer's end, it was sent by a till that hadn't got it.
  const again = frame("length", "/sale\n1");
  gateway.device.send(again.subarray(0, 8));
  await time.advance(200);
  await gateway.settle();
  gateway.device.send(again.subarray(8));
  await gateway.settle();
  assert.equal(gateway.calls.length, 1);
  assert.deepEqual(await gateway.written(), []);
  await gateway.ask("/sale\n1");
  assert.equal(gateway.calls.length, 2, "whoever has the answer asks anew");
  await gateway.listener.stop();
});

test("LineListener of the newest carries out once what lies unread as its answer is out", async () => {
  const gateway = await Gateway.open({ baudRate: 2_400 });
  await gateway.ask("/sale\n1");
  assert.equal((await gateway.answer(longAnswer)).length, 1);
  // Where the process stood still, that the answer is out is seen before what was asked again meanwhile is read.
  const readNext = () => setImmediate(() => gateway.device.reply("length", "/sale\n1"));
  time.after(8_000, () => setImmediate(readNext));
  await time.advance(9_000);
  await gateway.settle();
  assert.equal(gateway.calls.length, 1);
  await gateway.listener.stop();
});

test("LineListener of the newest hands on another request, and one that only reads, while an answer is on the wire", async () => {
  const gateway = await Gateway.open({ baudRate: 2_400 });
  for (const [text, count] of [
    ["/sale\n1", 1],
    ["/check\n2", 2],
    ["/check\n2", 3],
  ] as const) {
    await gateway.ask(text);
    assert.equal(gateway.calls.length, count);
    assert.equal((await gateway.answer(longAnswer)).length, 1);
  }
  await gateway.listener.stop();
});

test("LineListener of the newest takes what is asked again for a new request at once where its answer is soon out", async () => {
  const gateway = await Gateway.open({ baudRate: 115_200 });
  for (const count of [1, 2]) {
    await gateway.ask("/sale\n1");
    assert.equal(gateway.calls.length, count);
    assert.equal((await gateway.answer(longAnswer)).length, 1);
  }
  await gateway.listener.stop();
});

test("LineListener of the newest takes what is asked again for a new request once its answer is out on a slow line", async () => {
  const gateway = await Gateway.open({ baudRate: 2_400 });
  await gateway.ask("/sale\n1");
  assert.equal((await gateway.answer(longAnswer)).length, 1);
  await time.advance(8_500);
  await gateway.settle();
  await gateway.ask("/sale\n1");
  assert.equal(gateway.calls.length, 2);
  await gateway.listener.stop();
});

test("LineListener of the newest carries out a request at once that comes behind a frame that asks nobody", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("who is there", "stx");
  await time.advance(corruptQuietMs / 2);
  await gateway.ask("/sale\n1");
  assert.equal(gateway.calls.length, 1);
  assert.deepEqual(await gateway.answer("one"), ["one"], "the first one is answered by nothing");
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

test("LineListener of the newest takes a request of other bytes or another framing for another one", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await gateway.ask("/sale\n1 ");
  assert.deepEqual(await gateway.answer("{}"), []);
  await gateway.ask("/sale\n1 ", "stx");
  assert.deepEqual(await gateway.answer("{}"), []);
  await time.advance(corruptQuietMs);
  assert.deepEqual(await gateway.written(), [
    '{"status":"error","code":2,"message":"Cannot read the request: it is not a form of command, data and sign"}',
  ]);
  assert.equal(gateway.unaddressed, 1);
  await gateway.listener.stop();
});

test("LineListener of the newest says nothing of what came broken during a request, and keeps its answer back", async () => {
  const gateway = await Gateway.open();
  for (const framing of ["stx", "length"] as const) {
    await gateway.ask("/sale\n1");
    const bytes = frame(framing, "command=/check_status");
    bytes.writeUInt8(bytes.readUInt8(6) ^ 1, 6);
    gateway.device.send(bytes);
    await time.advance(1_000);
    assert.deepEqual(await gateway.answer('{"n":1}'), [], framing);
    assert.deepEqual(gateway.endings.splice(-1), ["1 answered kept back"]);
  }
  await gateway.ask("/check\n2");
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  await gateway.listener.stop();
});

test("LineListener of the newest gives the answer in spite of noise, but not before what is coming has ended", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  gateway.device.send(Buffer.from("AT\r\n"));
  await time.advance(10_000);
  assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
  await gateway.ask("/sale\n2");
  // It may hide the beginning of a request, for as long as no silence tells.
  gateway.device.send(Buffer.from("AT\r\n"));
  assert.deepEqual(await gateway.answer('{"n":2}'), []);
  await time.advance(1_000);
  assert.deepEqual(await gateway.written(), ['{"n":2}']);
  await gateway.ask("/sale\n2");
  const next = frame("length", "/check\n3");
  gateway.device.send(next.subarray(0, 7));
  assert.deepEqual(await gateway.answer('{"n":2}'), []);
  gateway.device.send(next.subarray(7));
  await gateway.settle();
  assert.deepEqual(await gateway.answer('{"n":3}'), ['{"n":3}']);
  await gateway.listener.stop();
});

test("LineListener of the newest keeps the answer back after as much noise as can hide a request", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  gateway.device.send(Buffer.concat([Buffer.from("AT\r\n"), frame("length", "/check\n2")]));
  await time.advance(1_000);
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  await gateway.ask("/check\n2");
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  await gateway.listener.stop();
});

test("LineListener of the newest answers on a new opening only what was asked again on it", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  gateway.device.unplug();
  gateway.device.plug();
  await time.advance(3_000);
  assert.equal(gateway.device.openings, 2);
  await gateway.ask("/sale\n1");
  assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
  await gateway.ask("/sale\n2");
  gateway.device.unplug();
  gateway.device.plug();
  await time.advance(3_000);
  assert.deepEqual(await gateway.answer('{"n":2}'), []);
  assert.equal(gateway.calls.length, 2);
  await gateway.listener.stop();
});

test("LineListener tells the handler how long a call has waited", async () => {
  const gateway = await Gateway.open();
  await gateway.ask("/sale\n1");
  await time.advance(5_000);
  await gateway.ask("/check\n2");
  await time.advance(7_000);
  await gateway.answer("{}");
  assert.deepEqual(
    gateway.calls.map(({ waitedMs }) => Math.round(waitedMs)),
    [0, 7_000],
  );
  await gateway.answer("{}");
  assert.deepEqual(
    gateway.exchanges.map(({ waitedMs, tookMs }) => [Math.round(waitedMs), Math.round(tookMs)]),
    [
      [0, 12_000],
      [7_000, 0],
    ],
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
    /"code":-3,"message":"Cannot send \/sale: posline is shutting down\. Nothing was sent, it is safe to send again"/,
  );
  assert.equal(busy.calls.length, 1);
  await ended;
});

test("LineListener.finish() ends at once when nothing is asked", async () => {
  const gateway = await Gateway.open();
  await gateway.listener.finish();
  assert.equal(gateway.device.isOpen, false);
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

test("LineListener of the newest carries out the last request of one read, once, and answers nothing else", async () => {
  for (const [texts, carriedOut] of [
    [['/confirm\n{"pay_id":"A"}', '/confirm\n{"pay_id":"A"}'], '{"pay_id":"A"}'],
    [['/sale\n{"pay_id":"OLD"}', '/sale\n{"pay_id":"NEW"}'], '{"pay_id":"NEW"}'],
  ] as const) {
    const gateway = await Gateway.open();
    gateway.device.send(Buffer.concat(texts.map((text) => frame("length", text))));
    await time.settle();
    assert.deepEqual(
      gateway.calls.map(({ call }) => Buffer.concat(call.body).toString()),
      [carriedOut],
    );
    assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
    await gateway.listener.stop();
  }
});

test("LineListener of the newest answers no broken frame that a good one follows in the same read", async () => {
  const gateway = await Gateway.open();
  const good = frame("stx", "command=/sale&data=e30=&sign=x");
  const bad = Buffer.from(good);
  bad.writeUInt8(bad.readUInt8(6) ^ 1, 6);
  gateway.device.send(Buffer.concat([bad, good]));
  await time.settle();
  assert.deepEqual([gateway.calls.length, await gateway.written()], [1, []]);
  await gateway.listener.stop();
});

test("LineListener of the newest answers no broken frame behind which another comes, and one broken in two once it is quiet", async () => {
  const good = frame("stx", "command=/sale&data=e30=&sign=x");
  const bad = Buffer.from(good);
  bad.writeUInt8(bad.readUInt8(6) ^ 1, 6);
  for (const [first, second] of [
    [Buffer.concat([bad, good.subarray(0, 9)]), good.subarray(9)],
    [bad, good],
  ] as const) {
    const gateway = await Gateway.open();
    gateway.device.send(first);
    await time.advance(corruptQuietMs / 2);
    gateway.device.send(second);
    await time.advance(corruptQuietMs);
    assert.deepEqual(await gateway.written(), []);
    assert.equal(gateway.calls.length, 1);
    assert.deepEqual(await gateway.answer('{"n":1}'), ['{"n":1}']);
    await gateway.listener.stop();
  }
  const gateway = await Gateway.open();
  const cut = Buffer.from(good);
  cut.writeUInt8(3, 12);
  gateway.device.send(cut);
  await time.advance(1_000);
  const [answer, ...more] = await gateway.written();
  assert.deepEqual([JSON.parse(answer ?? "").code, more, gateway.calls.length], [2, [], 0]);
  await gateway.listener.stop();
});

test("LineListener of the newest gives an answer to the same request that was still coming when the answer came", async () => {
  const gateway = await Gateway.open();
  const bytes = frame("length", '/confirm\n{"pay_id":"A"}');
  gateway.device.send(bytes);
  await time.advance(5_000);
  gateway.device.send(bytes.subarray(0, 10));
  await time.settle();
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  gateway.device.send(bytes.subarray(10));
  assert.deepEqual([await gateway.written(), gateway.calls.length], [['{"n":1}'], 1]);
  await gateway.listener.stop();
});

test("LineListener of the newest gives an answer to the same request that was still coming, though a copy before it came broken", async () => {
  const gateway = await Gateway.open();
  const bytes = frame("length", '/confirm\n{"pay_id":"A"}');
  const damaged = Buffer.from(bytes);
  damaged.writeUInt8(damaged.readUInt8(8) ^ 1, 8);
  gateway.device.send(bytes);
  await time.settle();
  gateway.device.send(damaged);
  await time.advance(2 * corruptQuietMs);
  gateway.device.send(bytes.subarray(0, 10));
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  gateway.device.send(bytes.subarray(10));
  assert.deepEqual([await gateway.written(), gateway.calls.length], [['{"n":1}'], 1]);
  // Another one that was coming is carried out, and gets its own answer.
  gateway.device.send(bytes);
  await time.settle();
  gateway.device.send(damaged);
  await time.advance(2 * corruptQuietMs);
  const next = frame("length", "/check\n2");
  gateway.device.send(next.subarray(0, 6));
  assert.deepEqual(await gateway.answer('{"n":1}'), []);
  gateway.device.send(next.subarray(6));
  assert.deepEqual([await gateway.written(), gateway.calls.length], [[], 3]);
  assert.deepEqual(await gateway.answer('{"n":2}'), ['{"n":2}']);
  await gateway.listener.stop();
});

test("LineListener of the newest carries nothing out before what comes behind it has ended", async () => {
  const gateway = await Gateway.open();
  const next = frame("length", '/sale\n{"pay_id":"NEW"}');
  gateway.device.send(Buffer.concat([frame("length", '/sale\n{"pay_id":"OLD"}'), next.subarray(0, 9)]));
  await time.settle();
  assert.equal(gateway.calls.length, 0);
  gateway.device.send(next.subarray(9));
  await gateway.settle();
  assert.deepEqual(
    gateway.calls.map(({ call }) => Buffer.concat(call.body).toString()),
    ['{"pay_id":"NEW"}'],
  );
  await gateway.listener.stop();
});
