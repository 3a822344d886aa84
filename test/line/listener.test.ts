import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { silenceMs } from "../../src/config/limits.ts";
import type { Contract } from "../../src/contract/contract.ts";
import { contractOnLine, contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName, Handler } from "../../src/core/call.ts";
import { checkFirst, Fault } from "../../src/core/fault.ts";
import type { ConnectionHandler, OpenTransport } from "../../src/device/transport.ts";
import { unreadQuietMs, writeMsMin } from "../../src/line/limits.ts";
import { LineListener } from "../../src/line/listener.ts";
import type { Decoded, Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { watched } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { configOf } from "./lines.ts";

const time = virtualTime();

const replyOf = (text: string) => ({ payload: [Buffer.from(text)], status: undefined, code: undefined, queueMs: 0, lineMs: 0 });

const tills: Till[] = [];
afterEach(() => Promise.all(tills.splice(0).map(({ listener }) => listener.stop())));

/** A listener with what it was asked, and what it answered. */
class Till {
  readonly calls: Call[] = [];
  readonly told: string[] = [];
  readonly discards: string[] = [];
  readonly errors: unknown[] = [];
  /** Why frames asked nobody. */
  readonly causes: string[] = [];
  echoes = 0;
  /** Whether its log fails. */
  logFails = false;
  readonly device = new FakeDevice();
  readonly listener: LineListener;
  #read = 0;
  readonly #decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });

  constructor(
    services: readonly ContractName[],
    handler: Handler = async () => replyOf('{"status":"success"}'),
    onLine: Partial<Record<ContractName, Contract>> = {},
  ) {
    this.listener = new LineListener({
      config: configOf(),
      open: this.device.open,
      services: services.map((service) => ({
        contract: onLine[service] ?? contracts[service],
        handler: (call) => {
          this.calls.push(call);
          return handler(call);
        },
      })),
      report: {
        discard: ({ reason }) => this.discards.push(reason),
        state: (reason) => this.told.push(reason),
        exchange: () => {
          if (this.logFails) throw new Error("the log is full");
        },
        unaddressed: (_, cause) => this.causes.push(cause),
        echoes: () => this.echoes++,
        error: (error) => this.errors.push(error),
      },
    });
    this.listener.start();
    tills.push(this);
  }

  async open(): Promise<this> {
    await time.advance(silenceMs + 1);
    return this;
  }

  /** What was answered since the last time. */
  async answers(): Promise<string[]> {
    await time.settle();
    const bytes = this.device.written.slice(this.#read);
    this.#read = this.device.written.length;
    const decoded: readonly Decoded[] = this.#decoder.push(Buffer.concat(bytes));
    return decoded.map((item) => (item.kind === "frame" ? Buffer.concat(item.payload).toString() : item.reason));
  }

  async ask(framing: Framing, text: string): Promise<string[]> {
    this.device.reply(framing, text);
    return this.answers();
  }
}

test("LineListener hands each service its calls, by framing, by the port in front or without one, and answers in their framing", async () => {
  const till = await new Till(["fiscal", "bank", "qr"], async ({ service }) => replyOf(`{"by":"${service}"}`)).open();
  const asks = [
    ["length", '/sale\n{"pay_id":"A"}', "bank", "/sale", '{"pay_id":"A"}'],
    ["length", ':8887/sale\n{"pay_id":"B"}', "qr", "/sale", '{"pay_id":"B"}'],
    ["length", ':8888/sale\n{"pay_id":"A"}', "bank", "/sale", '{"pay_id":"A"}'],
    ["length", ":8888/terminals", "bank", "/terminals", ""],
    ["stx", "command=/sale&data=e30=&sign=x", "fiscal", "/sale", "data=e30=&sign=x"],
  ] as const;
  for (const [framing, text, by] of asks) assert.deepEqual(await till.ask(framing, text), [`{"by":"${by}"}`], text);
  assertMapped(
    till.calls,
    asks.map(([, , ...asked]) => asked),
    ({ contract, route, body }) => [contract, route, Buffer.concat(body).toString()],
  );
  assert.equal(till.device.written.at(-1)?.[0], 2, "STX");
  assert.equal(new Set(till.calls.map(({ requestId }) => requestId)).size, asks.length);
  assert.deepEqual(till.causes, []);
});

test("LineListener lets the port that a qr service has on its line select it, and the contract's own no more", async () => {
  const qr = contractOnLine({ contract: "qr", linePort: 9001 });
  const till = await new Till(["bank", "qr"], undefined, { qr }).open();
  assert.equal((await till.ask("length", ":9001/check\n{}")).length, 1);
  assert.deepEqual(await till.ask("length", ":8887/check\n{}"), []);
  assertMapped(till.calls, ["qr"], ({ contract }) => contract);
  assert.deepEqual(till.causes, [
    ":8887 selects no service of this line, which has bank (:8888), qr (:9001) in frames with a length",
  ]);
});

test("LineListener hands a request that selects none of its services to nobody, answers nothing, and says why", async () => {
  for (const [services, text, cause] of [
    [
      ["bank"],
      ':8887/check\n{"pay_id":"A"}',
      ":8887 selects no service of this line, which has bank (:8888) in frames with a length",
    ],
    [
      ["bank", "qr"],
      ":9001/sale\n{}",
      ":9001 selects no service of this line, which has bank (:8888), qr (:8887) in frames with a length",
    ],
    [
      ["qr"],
      "/sale\n{}",
      "a route without a :port selects no service of this line, which has qr (:8887) in frames with a length",
    ],
    [
      ["qr"],
      ":8008/sale\ndata=e30=&sign=x",
      ":8008 selects no service of this line, which has qr (:8887) in frames with a length",
    ],
    // Fiscal has frames of its own (fiscal.md, Endpoints).
    [
      ["fiscal", "bank"],
      ":8008/sale\ndata=e30=&sign=x",
      ":8008 selects no service of this line, which has bank (:8888) in frames with a length",
    ],
    [["fiscal", "bank"], "sale", "it begins with neither a route nor a :port and a route"],
    [["bank"], ":888700/sale\n{}", "it begins with neither a route nor a :port and a route"],
  ] as const) {
    const till = await new Till(services).open();
    assert.deepEqual(await till.ask("length", text), [], text);
    assert.deepEqual([till.calls, till.errors, till.causes], [[], [], [cause]]);
    await till.listener.stop();
  }
});

test("LineListener drops a bank or qr frame with a wrong CRC, and takes the next after a silence", async () => {
  const till = await new Till(["bank", "qr"]).open();
  const bytes = frame("length", "/sale\n{}");
  bytes.writeUInt8(0, bytes.length - 1);
  till.device.send(bytes);
  await time.advance(500);
  assert.deepEqual(await till.answers(), []);
  assert.deepEqual(till.discards, ["checksum"]);
  assert.equal(till.calls.length, 0);
  assert.equal((await till.ask("length", "/sale\n{}")).length, 1);
});

test("LineListener hears a till that sends anew every two seconds soon again after a header that lied", async () => {
  const till = await new Till(["bank"]).open();
  const bytes = frame("length", "/check\n{}");
  bytes.writeUInt8(0x40, 1);
  till.device.send(bytes);
  let tries = 0;
  while (till.calls.length === 0 && tries++ < 10) {
    await time.advance(2_000);
    till.device.reply("length", "/check\n{}");
  }
  assert.equal(tries, 3, "the payload's five seconds");
});

/** A frame of which a byte is wrong. */
function damaged(text: string): Buffer {
  const bytes = frame("stx", text);
  bytes.writeUInt8(bytes.readUInt8(5) ^ 1, 5);
  return bytes;
}

for (const [what, bytes, code, message] of [
  ["a wrong CRC", damaged("command=/sale&data=e30=&sign=x"), 2, /^Cannot read the frame: its CRC is wrong$/],
  [
    "no command",
    frame("stx", "data=e30=&sign=x"),
    3,
    /^Cannot read the request: the form has no command: add command, the operation's route$/,
  ],
  ["a field twice", frame("stx", "command=/sale&data=e30=&data=e30=&sign=x"), 2, /the form has data twice: send it once$/],
] as const) {
  test(`LineListener answers a fiscal frame with ${what} with code ${code}, asks nobody, and says nothing where no fiscal is`, async () => {
    const till = await new Till(["fiscal"]).open();
    till.device.send(bytes);
    const [answer] = await till.answers();
    const { message: said, ...rest } = JSON.parse(answer ?? "");
    assert.deepEqual([rest, till.calls], [{ status: "error", code }, []]);
    assert.match(said, message);
    const bank = await new Till(["bank"]).open();
    bank.device.send(bytes);
    assert.deepEqual([await bank.answers(), bank.calls], [[], []], "nobody here speaks so");
  });
}

test("LineListener answers one frame that it can't read, and the next one after a silence or a good request", async () => {
  const till = await new Till(["fiscal"]).open();
  const broken = damaged("command=/sale&data=e30=&sign=x");
  const asks = [() => till.device.reply("stx", "who is there"), () => till.device.send(broken)];
  const counts: number[] = [];
  for (const ask of [...asks, ...asks]) {
    ask();
    await time.advance(unreadQuietMs / 2);
    counts.push((await till.answers()).length);
  }
  assert.deepEqual(counts, [1, 0, 0, 0], "the silence is counted from what came last");
  await time.advance(unreadQuietMs);
  assert.equal((await till.ask("stx", "who is there")).length, 1);
  assert.equal((await till.ask("stx", "command=/sale&data=e30=&sign=x")).length, 1);
  assert.equal((await till.ask("stx", "who is there")).length, 1);
});

test("LineListener answers no frame that the line gives back to it, whole or damaged, and none of another listener's answers", async () => {
  const farEnds: Record<string, (answer: string) => Buffer> = {
    echo: (answer) => frame("stx", answer),
    "echo that damages": damaged,
    "another listener": () => frame("stx", '{"status":"error","code":2,"message":"Cannot read the request"}'),
  };
  for (const [name, farEnd] of Object.entries(farEnds)) {
    const till = await new Till(["fiscal", "bank"]).open();
    till.device.reply("stx", "command=/sale&data=e30=&sign=x");
    let written = 0;
    for (let round = 0; round < 20; round++) {
      for (const answer of await till.answers()) {
        written++;
        till.device.send(farEnd(answer));
      }
      await time.advance(200);
    }
    assert.ok(written <= (name === "echo" ? 1 : 2), `${name}: ${written} frames`);
    // What the line gives back is shown, for whoever looks why.
    if (name === "echo") assert.deepEqual([till.causes.length, till.echoes], [0, 1]);
    assert.equal(till.calls.length, 1, name);
    assert.equal((await till.ask("length", "/sale\n{}")).length, 1, name);
    assert.equal((await till.ask("length", '{"status":"success"}')).length, 0, name);
    assert.equal((await till.ask("stx", "command=/sale&data=e30=&sign=x")).length, 1, name);
    await till.listener.stop();
  }
});

test("LineListener writes a handler's fault in the service's envelope, and an error as an internal one", async () => {
  let failure: Error = new Fault("timeout", "No reply");
  const till = await new Till(["bank", "fiscal"], async () => {
    throw failure;
  }).open();
  const [bank] = await till.ask("length", "/sale\n{}");
  assert.deepEqual(JSON.parse(bank ?? ""), { status: "error", code: -3, message: "No reply", outcome: "unknown" });
  const [fiscal] = await till.ask("stx", "command=/sale&data=e30=&sign=x");
  assert.equal(JSON.parse(fiscal ?? "").code, 5);
  failure = new TypeError("secret");
  const [internal] = await till.ask("length", "/sale\n{}");
  assert.deepEqual(JSON.parse(internal ?? ""), {
    status: "error",
    code: -3,
    message: `Cannot answer: internal error in posline, please report it. ${checkFirst.bank}`,
    outcome: "unknown",
  });
});

test("LineListener answers one request after the other, in order, and no more than sixteen that wait", async () => {
  const open: (() => void)[] = [];
  const till = await new Till(
    ["bank"],
    ({ body }) =>
      new Promise((resolve) => {
        open.push(() => resolve(replyOf(Buffer.concat(body).toString())));
      }),
  ).open();
  for (let number = 0; number < 30; number++) till.device.reply("length", `/sale\n{"n":${number}}`);
  const answers: string[] = [];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    assert.equal(open.length, 0, "one at a time");
    next();
    answers.push(...(await till.answers()));
  }
  assert.deepEqual(
    answers,
    Array.from({ length: 17 }, (_, number) => `{"n":${number}}`),
  );
});

test("LineListener carries out nothing that lay in the line before it opened", async () => {
  const till = new Till(["bank", "fiscal"]);
  await time.settle();
  till.device.reply("length", "/sale\n{}");
  till.device.send(damaged("command=/sale"));
  await till.open();
  assert.deepEqual(await till.answers(), []);
  assert.equal(till.calls.length, 0);
  assert.equal((await till.ask("length", "/sale\n{}")).length, 1);
});

test("LineListener gives no answer on an opening that was asked for on the one before, and its caller has left", async () => {
  let answer = () => {};
  const till = await new Till(
    ["bank"],
    () =>
      new Promise((resolve) => {
        answer = () => resolve(replyOf('{"late":true}'));
      }),
  ).open();
  till.device.reply("length", "/sale\n{}");
  await time.settle();
  let left = 0;
  const caller = till.calls[0]?.caller;
  assert.ok(caller);
  caller.onLeave(() => left++);
  till.device.unplug();
  assert.deepEqual([caller.gone, left], [true, 1]);
  till.device.plug();
  await time.advance(3_000);
  assert.equal(till.device.openings, 2);
  answer();
  assert.deepEqual(await till.answers(), []);
  const [asked] = [till.ask("length", "/check\n{}")];
  await time.settle();
  answer();
  await asked;
  assert.deepEqual(await till.answers(), ['{"late":true}']);
});

test("LineListener.stop() lets the answer that is being written go out whole, and answers nothing more", async () => {
  const till = await new Till(["bank"], async ({ route }) => replyOf(`{"route":"${route}"}`)).open();
  till.device.takesBytes = 5;
  till.device.reply("length", "/sale\n{}");
  till.device.reply("length", "/check\n{}");
  await time.settle();
  const stopped = watched(till.listener.stop());
  till.device.reply("length", "/refund\n{}");
  await time.advance(1_000);
  assert.deepEqual([stopped.isOver, till.device.isOpen], [false, true]);
  till.device.takeRest();
  await stopped.ended;
  assert.deepEqual(await till.answers(), ['{"route":"/sale"}']);
  assert.deepEqual([till.device.isOpen, till.calls.length], [false, 1]);
});

test("LineListener.stop() gives up an answer that the device doesn't take within a write's time", async () => {
  const till = await new Till(["bank"]).open();
  till.device.takesBytes = 5;
  till.device.reply("length", "/sale\n{}");
  await time.settle();
  const stopped = watched(till.listener.stop());
  assert.ok(await time.until(() => stopped.isOver, 2 * writeMsMin));
  assert.equal(till.device.isOpen, false);
});

test("LineListener tells that it opened, was lost and couldn't be opened", async () => {
  const till = await new Till(["bank"]).open();
  till.device.unplug();
  await time.advance(500);
  assert.deepEqual(till.told.slice(0, 3), [
    "the device opened",
    "the device was unplugged or hung up",
    "there is no device: check the cable",
  ]);
});

test("LineListener answers though its log fails, and reports that", async () => {
  const till = await new Till(["bank"]).open();
  till.logFails = true;
  assert.deepEqual(await till.ask("length", "/sale\n{}"), ['{"status":"success"}']);
  assert.match(String(till.errors), /the log is full/);
});

test("LineListener shows its report what comes, what goes out, and what was half heard when the device was lost", async () => {
  const device = new FakeDevice();
  const told: string[] = [];
  const traces: unknown[] = [];
  const words = (items: readonly Decoded[]) => items.map((item) => (item.kind === "frame" ? "frame" : item.reason)).join();
  const handler = async (call: Call) => {
    traces.push(call.trace);
    return replyOf("{}");
  };
  const listener = new LineListener({
    config: configOf(),
    open: device.open,
    services: [{ contract: contracts.bank, service: "bank-2", handler }],
    newTrace: () => "00-trace",
    report: {
      discard: ({ reason }) => told.push(`discard ${reason}`),
      state: (reason, isOpen) => told.push(`${isOpen ? "open" : "closed"}: ${reason}`),
      received: (items) => told.push(`received ${words(items)}`),
      writes: (bytes) => told.push(`writes ${Buffer.concat(bytes).equals(frame("length", "{}"))}`),
      exchange: ({ call, given }) => told.push(`${call.service} ${call.contract} ${given ? "given" : "kept back"}`),
    },
  });
  listener.start();
  await time.advance(silenceMs + 1);
  device.reply("length", "/sale\n{}");
  await time.settle();
  device.send(frame("length", "/sale\n{}").subarray(0, 5));
  device.unplug("unplugged");
  await time.advance(200);
  assert.deepEqual(told.filter((each) => each !== "received ").slice(0, 8), [
    ...["open: the device opened", "received frame", "writes true", "bank-2 bank given", "received reset"],
    ...["discard reset", "closed: unplugged", "closed: there is no device: check the cable"],
  ]);
  assert.deepEqual(traces, ["00-trace"]);
  await listener.stop();
});

test("LineListener.stop() and finish() end once the device is given back, however long its system takes", async () => {
  for (const how of ["stop", "finish"] as const) {
    const device = new FakeDevice();
    const slow: OpenTransport = async (handler) => {
      const connection = await device.open(handler);
      const close = async () => {
        await new Promise<void>((resolve) => time.after(500, resolve));
        await connection.close();
      };
      return { wroteBytes: 0, write: (pieces) => connection.write(pieces), close };
    };
    const services = [{ contract: contracts.bank, handler: async () => replyOf("{}") }];
    const report = { discard: () => {}, state: () => {} };
    const listener = new LineListener({ config: configOf(), open: slow, services, report });
    listener.start();
    await time.advance(silenceMs + 1);
    const ended = watched(listener[how]());
    await time.advance(499);
    assert.deepEqual([ended.isOver, device.isOpen], [false, true]);
    await time.advance(1);
    assert.deepEqual([ended.isOver, device.isOpen], [true, false]);
  }
});

test("LineListener makes nothing of a broken request that still waited when the device was lost", async () => {
  const till = await new Till(["fiscal"], () => new Promise(() => {})).open();
  till.device.reply("stx", "command=/sale&data=e30=&sign=x");
  const broken = damaged("command=/sale&data=e30=&sign=x");
  till.device.send(broken);
  await time.settle();
  till.device.unplug();
  assert.deepEqual([till.calls.length, till.discards.length], [1, 1]);
  assert.equal(till.told.at(-1), "the device was unplugged or hung up");
  assert.deepEqual(till.errors, []);
});

test("LineListener answers what comes first on a connection that the far end opened, and on the next one right behind it", async () => {
  const [asked, answer] = [frame("length", "/check\n{}"), frame("length", '{"status":"success"}')];
  const ends: ConnectionHandler[] = [];
  const written: Buffer[][] = [];
  const accepting: OpenTransport = async (handler) => {
    const own: Buffer[] = [];
    ends.push(handler);
    written.push(own);
    const write = (pieces: readonly Buffer[]) => {
      own.push(...pieces);
      handler.onWritten();
    };
    return { isAccepted: true, wroteBytes: 0, write, close: async () => {} };
  };
  const services = [{ contract: contracts.bank, handler: async () => replyOf('{"status":"success"}') }];
  const listener = new LineListener({
    config: configOf(),
    open: accepting,
    services,
    report: { discard: () => {}, state: () => {} },
  });
  listener.start();
  await time.settle();
  for (const n of [0, 1]) {
    const end = ends[n];
    assert.ok(end !== undefined, `connection ${n} is awaited`);
    asked.copy(end.space());
    end.onBytes(asked.length);
    await time.settle();
    assert.deepEqual(Buffer.concat(written[n] ?? []), answer);
    end.onClosed("the far end closed the connection");
    await time.settle();
  }
  assert.equal(ends.length, 3);
  await listener.stop();
});
