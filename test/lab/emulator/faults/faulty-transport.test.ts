import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { type Connection, type ConnectionHandler, OpenError } from "../../../../src/device/transport.ts";
import { faultyTransport, type TransportStep } from "../../../../src/lab/emulator/faults/faulty-transport.ts";
import { VirtualTime } from "../../../support/virtual-time.ts";

const time = new VirtualTime();
after(() => time.restore());

/** What a transport may be asked, with the moment of each byte; it takes over `takesBytes` of a write, and the rest when it is told. */
class Below {
  takesBytes = Number.POSITIVE_INFINITY;
  openings = 0;
  closes = 0;
  handler: ConnectionHandler | undefined;
  text = "";
  readonly atMs: number[] = [];
  #writing = false;
  #rest = 0;
  #opening: { wroteBytes: number } | undefined;

  readonly open = async (handler: ConnectionHandler): Promise<Connection> => {
    this.openings++;
    this.handler = handler;
    this.#writing = false;
    const opening = {
      wroteBytes: 0,
      write: (pieces: readonly Buffer[]) => {
        assert.equal(this.#writing, false, "one write at a time");
        const bytes = Buffer.concat(pieces);
        this.text += bytes.toString("latin1");
        for (let n = 0; n < bytes.length; n++) this.atMs.push(time.nowMs);
        this.#writing = true;
        opening.wroteBytes = Math.min(bytes.length, this.takesBytes);
        this.#rest = bytes.length - opening.wroteBytes;
        if (this.#rest === 0) this.takeRest();
      },
      close: async () => {
        this.closes++;
        this.handler = undefined;
      },
    };
    this.#opening = opening;
    return opening;
  };

  takeRest(): void {
    if (this.#opening !== undefined) this.#opening.wroteBytes += this.#rest;
    this.#rest = 0;
    this.#writing = false;
    this.handler?.onWritten();
  }
}

/** The user of a faulty connection: closes it when it is lost, as a framed link does. */
class User implements ConnectionHandler {
  readonly memory = Buffer.alloc(8);
  heardText = "";
  wrotes = 0;
  readonly losses: string[] = [];
  opening: Connection | undefined;
  space(): Buffer {
    return this.memory;
  }
  onBytes(n: number): void {
    this.heardText += this.memory.toString("latin1", 0, n);
  }
  coalesceMs(): number {
    return 17;
  }
  onWritten(): void {
    this.wrotes++;
  }
  onClosed(reason: string): void {
    this.losses.push(reason);
    void this.opening?.close();
  }
}

const bytes = (text: string) => Buffer.from(text, "latin1");

/** A faulty transport that does with each frame what `plans` says for its text. */
async function bench(plans: Readonly<Record<string, readonly TransportStep[]>>, msPerByte = 0) {
  const below = new Below();
  const stepsFor = (frame: readonly Buffer[]) => plans[Buffer.concat(frame).toString("latin1")];
  const open = faultyTransport({ open: below.open, stepsFor, msPerByte });
  const user = new User();
  user.opening = await open(user);
  return { below, user, open, opening: user.opening, began: time.nowMs };
}

test("faultyTransport() passes frames without a fault unchanged, both ways", async () => {
  const { below, user, opening } = await bench({});
  below.takesBytes = 3;
  opening.write([bytes("hel"), bytes("lo")]);
  assert.deepEqual([below.text, opening.wroteBytes, user.wrotes], ["hello", 3, 0]);
  below.takeRest();
  assert.deepEqual([opening.wroteBytes, user.wrotes], [5, 1]);
  assert.equal(below.handler?.space(), user.memory);
  below.handler?.space().write("heard", "latin1");
  below.handler?.onBytes(5);
  assert.equal(user.heardText, "heard");
  assert.equal(below.handler?.coalesceMs?.(), 17);
  below.handler?.onClosed("gone");
  assert.deepEqual(user.losses, ["gone"]);
  assert.equal(below.closes, 1);
});

test("faultyTransport() keeps the pauses between bytes, counted from when they have left on the wire", async () => {
  const plan = [{ bytes: bytes("ab") }, { waitMs: 100 }, { bytes: bytes("cd") }, { waitMs: 50 }, { bytes: bytes("e") }];
  const { below, user, opening, began } = await bench({ frame: plan }, 10);
  opening.write([bytes("frame")]);
  assert.equal(user.wrotes, 1);
  await time.advance(1_000);
  assert.equal(below.text, "abcde");
  assert.deepEqual(
    below.atMs.map((at) => at - began),
    [0, 0, 120, 120, 190],
  );
  assert.equal(user.wrotes, 1);
});

test("faultyTransport() writes what comes meanwhile behind what is under way, whole and in order", async () => {
  const plan = [{ bytes: bytes("a1") }, { waitMs: 100 }, { bytes: bytes("a2") }];
  const { below, user, opening } = await bench({ a: plan });
  opening.write([bytes("a")]);
  await time.advance(10);
  const memory = bytes("b");
  opening.write([memory]);
  memory.fill("x");
  opening.write([bytes("a")]);
  opening.write([bytes("c")]);
  assert.equal(user.wrotes, 4);
  await time.advance(1_000);
  assert.equal(below.text, "a1a2ba1a2c");
});

test("faultyTransport() holds a frame back until the next one, and writes it right before that, whatever becomes of that", async () => {
  const hold = (text: string) => [{ hold: bytes(text) }];
  const { below, user, opening } = await bench({ a: hold("A"), b: hold("B"), c: [], d: [{ bytes: bytes("D!") }] });
  opening.write([bytes("a")]);
  await time.advance(10_000);
  assert.deepEqual([below.text, user.wrotes], ["", 1]);
  opening.write([bytes("b")]);
  assert.equal(below.text, "A");
  opening.write([bytes("c")]);
  assert.equal(below.text, "AB");
  opening.write([bytes("a")]);
  opening.write([bytes("d")]);
  assert.equal(below.text, "ABAD!");
  opening.write([bytes("plain")]);
  assert.equal(below.text, "ABAD!plain");
  assert.equal(user.wrotes, 6);
});

test("faultyTransport() queues only so much ahead: above 256 KiB a writer waits until there is room again", async () => {
  const much = Buffer.alloc(300 * 1024, "x");
  const { below, user, opening } = await bench({ a: [{ waitMs: 100 }, { bytes: much }] });
  opening.write([bytes("a")]);
  assert.deepEqual([user.wrotes, opening.wroteBytes], [0, 0]);
  await time.advance(99);
  assert.equal(user.wrotes, 0);
  await time.advance(1);
  assert.deepEqual([user.wrotes, opening.wroteBytes, below.text.length], [1, 1, much.length]);
});

test("faultyTransport() loses the connection for an unplug, and refuses to open anew until its time has passed", async () => {
  const { below, user, open, opening } = await bench({ a: [{ unplugMs: 2_000 }] });
  const handler = below.handler;
  opening.write([bytes("a")]);
  assert.deepEqual([user.losses, user.wrotes, below.closes], [["the emulator has unplugged it"], 0, 1]);
  // What comes late from the lost opening reaches nobody.
  assert.notEqual(handler?.space(), user.memory);
  handler?.onBytes(3);
  handler?.onWritten();
  handler?.onClosed("again");
  assert.deepEqual([user.heardText, user.wrotes, user.losses.length], ["", 0, 1]);
  await time.advance(1_500);
  await assert.rejects(open(user), (error) => error instanceof OpenError && /it comes back by itself/.test(error.message));
  assert.equal(below.openings, 1);
  await time.advance(500);
  (await open(user)).write([bytes("new")]);
  assert.equal(below.text, "new");
});

test("faultyTransport() unplugs both ends where it is given `unplug`", async () => {
  const below = new Below();
  const pulled: number[] = [];
  const unplug = (ms: number) => {
    pulled.push(ms);
    below.handler?.onClosed("the cable is out");
  };
  const user = new User();
  const open = faultyTransport({ open: below.open, stepsFor: () => [{ unplugMs: 70 }], msPerByte: 0, unplug });
  user.opening = await open(user);
  user.opening.write([bytes("a")]);
  assert.deepEqual([pulled, user.losses], [[70], ["the cable is out"]]);
});

for (const end of ["close", "loss"] as const) {
  test(`faultyTransport() does nothing more after a ${end} amid its steps`, async () => {
    const plan = [{ bytes: bytes("1") }, { waitMs: 100 }, { bytes: bytes("2") }, { unplugMs: 5 }];
    const { below, user, open, opening } = await bench({ a: plan, b: [{ hold: bytes("B") }] });
    opening.write([bytes("a")]);
    await time.advance(50);
    opening.write([bytes("b")]);
    if (end === "close") await opening.close();
    else below.handler?.onClosed("gone");
    await time.advance(1_000);
    assert.equal(below.text, "1");
    assert.equal(user.losses.length, end === "close" ? 0 : 1);
    (await open(user)).write([bytes("new")]);
    assert.equal(below.text, "1new");
  });
}

test("faultyTransport() writes all bytes of all steps in order and reports each write once, whatever the faults", async () => {
  const delivery = fc.oneof(
    fc.string({ minLength: 1, maxLength: 4 }).map((text): TransportStep => ({ bytes: bytes(text) })),
    fc.integer({ min: 1, max: 50 }).map((waitMs): TransportStep => ({ waitMs })),
    fc.string({ minLength: 1, maxLength: 4 }).map((text): TransportStep => ({ hold: bytes(text) })),
  );
  const write = fc.record({
    plan: fc.option(fc.array(delivery, { maxLength: 4 }), { nil: undefined }),
    pauseMs: fc.integer({ min: 0, max: 80 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 12 }), async (writes) => {
      const plans = Object.fromEntries(writes.flatMap(({ plan }, n) => (plan === undefined ? [] : [[`<${n}>`, plan]])));
      const { below, user, opening } = await bench(plans, 0.5);
      let expected = "";
      let held = "";
      for (const [n, { plan, pauseMs }] of writes.entries()) {
        opening.write([bytes(`<${n}>`)]);
        assert.equal(user.wrotes, n + 1);
        assert.equal(opening.wroteBytes, `<${n}>`.length);
        expected += held;
        held = "";
        for (const each of plan ?? [{ bytes: bytes(`<${n}>`) }]) {
          if ("bytes" in each) expected += each.bytes.toString("latin1");
          if ("hold" in each) held += each.hold.toString("latin1");
        }
        await time.advance(pauseMs);
      }
      await time.advance(10_000);
      assert.equal(below.text, expected);
    }),
    { numRuns: 100 },
  );
});
