import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BridgeLine, bridgeLine } from "../../src/bridge/bridge-line.ts";
import { serviceDefaults } from "../../src/config/limits.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault, type Outcome } from "../../src/core/fault.ts";
import { type Connection, OpenError, type OpenTransport } from "../../src/device/transport.ts";
import { LineSet } from "../../src/process/line-set.ts";
import type { Served, SharedLine } from "../../src/process/served.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { configOf, idOf, requestFor, silentReport } from "../line/lines.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { watched } from "../support/promises.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";

/**
 * Tests src/process/line-set.ts, src/bridge/bridge-line.ts, src/recovery/owed-calls.ts.
 *
 * Random lives of two terminals whose configuration is loaded anew again and again, while customers take their time: speeds, names and
 * paths of lines change, two paths are swapped, services come, go, and are called otherwise, cables are drawn, terminals are switched
 * off. No call ever gets another call's answer, what wasn't sent isn't carried out, nothing is carried out twice, each call ends, and the
 * lines come back.
 */

// More than the default when what outlives a reload is changed; a campaign draws new worlds.
const campaign = process.env["SAFETY_RUNS"];
const numRuns = Number(campaign ?? 150);
const seed = campaign === undefined ? { seed: 20_261_123 } : {};

const time = virtualTime();

/** Longer than all recoveries that a life can leave behind. */
const hourMs = 3_600_000;

/** How a terminal does with what it is asked. */
interface Habits {
  /** Milliseconds that it takes for a probe, once it has been used. */
  readonly probeMs: number;
  /** What it answers to bank's; its contract's where absent. */
  readonly odd: string | undefined;
}

/** Serves one request after the other, in order. Whoever opens it waits until the one before has closed it, as of a serial port. */
class Terminal {
  readonly carriedOut: string[] = [];
  readonly takesMs = new Map<string, number>();
  readonly device = new FakeDevice((framing, text) => this.#take(framing, text));
  /** Milliseconds that it takes for a probe. */
  probeMs = 5;
  readonly #odd: string | undefined;
  #isOn = true;
  /** How many times it was switched off: what it owed by then is lost. */
  #endings = 0;
  #freeMs = 0;
  #isHeld = false;

  constructor({ odd }: Habits) {
    this.#odd = odd;
  }

  /** @param node Its real node, whatever path leads to it. */
  open(node: string): OpenTransport {
    return async (handler) => {
      if (this.#isHeld) throw new OpenError("it is in use");
      const opening = await this.device.open(handler);
      this.#isHeld = true;
      return new Held(opening, node, () => {
        this.#isHeld = false;
      });
    };
  }

  /** Answers nothing for so long, and then all that it was asked. */
  hang(ms: number): void {
    this.#freeMs = time.nowMs + ms;
  }

  switch(isOn: boolean): void {
    this.#isOn = isOn;
    if (isOn) return;
    this.#endings++;
    this.#freeMs = 0;
  }

  #take(framing: Framing, text: string): void {
    if (!this.#isOn) return;
    const endings = this.#endings;
    const id = idOf(text);
    if (id !== "") this.carriedOut.push(id);
    const isOdd = id === "" && framing === "length" && this.#odd !== undefined;
    const probe = isOdd ? this.#odd : probeReply({ framing, text, number: 0 });
    const answer = id === "" ? probe : `{"status":"success","id":"${id}"}`;
    const tookMs = id === "" ? this.probeMs : (this.takesMs.get(id) ?? 5);
    this.#freeMs = Math.max(time.nowMs, this.#freeMs) + tookMs;
    if (answer === undefined) return;
    time.after(this.#freeMs - time.nowMs, () => {
      if (this.#endings === endings) this.device.reply(framing, answer);
    });
  }
}

/** An opening that its device is free again after. */
class Held implements Connection {
  readonly device: string;
  readonly #opening: Connection;
  readonly #closed: () => void;

  constructor(opening: Connection, device: string, closed: () => void) {
    this.#opening = opening;
    this.device = device;
    this.#closed = closed;
  }

  get wroteBytes(): number {
    return this.#opening.wroteBytes;
  }

  write(pieces: readonly Buffer[]): void {
    this.#opening.write(pieces);
  }

  async close(): Promise<void> {
    await this.#opening.close();
    this.#closed();
  }
}

/** What a configuration says: where each terminal's line leads, what it is called, and whom it serves besides the bank. */
interface Wish {
  readonly paths: readonly [string, string];
  readonly names: readonly [string, string];
  readonly baudRate: number;
  readonly bankName: string;
  readonly hasFiscal: boolean;
  /** Nothing is asked, and only silence proves it. */
  readonly isQuiet: boolean;
}

type Step =
  | {
      readonly do: "call";
      readonly line: number;
      readonly isFiscal: boolean;
      readonly takesMs: number;
      readonly timeoutMs: number;
    }
  | { readonly do: "reload"; readonly wish: Wish }
  /** Of the first terminal; random lives have none, since one of over five minutes with a sale in it can't be told from a terminal that is off. */
  | { readonly do: "hang"; readonly hangMs: number }
  | { readonly do: "unplug" | "switch off" | "switch on"; readonly terminal: number };

interface Life {
  readonly habits: Habits;
  readonly steps: readonly { readonly step: Step; readonly waitMs: number }[];
  /** How long the customer of the first sale takes when all is over. */
  readonly lastTakesMs: number;
}

const first: Wish = {
  paths: ["/dev/a", "/dev/b"],
  names: ["one", "two"],
  baudRate: 115_200,
  bankName: "bank",
  hasFiscal: true,
  isQuiet: false,
};

const wishes: fc.Arbitrary<Wish> = fc.record({
  paths: fc.constantFrom<readonly [string, string]>(
    ["/dev/a", "/dev/b"],
    ["/dev/serial/a", "/dev/b"],
    ["/dev/b", "/dev/a"],
    ["/dev/serial/b", "/dev/serial/a"],
  ),
  names: fc.constantFrom<readonly [string, string]>(["one", "two"], ["two", "one"], ["three", "two"]),
  baudRate: fc.constantFrom(9_600, 115_200),
  bankName: fc.constantFrom("bank", "card"),
  hasFiscal: fc.boolean(),
  isQuiet: fc.boolean(),
});

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("call" as const),
      line: fc.nat(1),
      isFiscal: fc.boolean(),
      takesMs: fc.oneof(fc.integer({ min: 5, max: 300 }), fc.integer({ min: 5, max: 260_000 })),
      timeoutMs: fc.constantFrom(10_000, 30_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("reload" as const), wish: wishes }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom("unplug" as const, "switch off" as const, "switch on" as const),
      terminal: fc.nat(1),
    }),
  },
);

const lives: fc.Arbitrary<Life> = fc.record({
  habits: fc.record({
    probeMs: fc.constantFrom(5, 300, 1_500),
    odd: fc.constantFrom(undefined, undefined, '{"status":"success"}', '{"status":"error","code":-29}'),
  }),
  steps: fc.array(
    fc.record({ step: steps, waitMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 60_000 })) }),
    { maxLength: 24 },
  ),
  lastTakesMs: fc.constantFrom(5, 35_000, 60_000),
});

/** How a call ended. */
type Ended = { readonly id: string; outcome?: Outcome; text?: string };

class Box {
  readonly terminals: readonly Terminal[];
  readonly ended: Ended[] = [];
  readonly #at: Readonly<Record<string, number>> = { "/dev/a": 0, "/dev/serial/a": 0, "/dev/b": 1, "/dev/serial/b": 1 };
  readonly #set: LineSet<BridgeLine>;
  #wish = first;

  constructor(habits: Habits) {
    this.terminals = [new Terminal(habits), new Terminal(habits)];
    this.#set = new LineSet<BridgeLine>({
      make: (line, place) => bridgeLine(line, place, { open: this.#open(line.config.path) }, silentReport, []),
      lasting: ({ config }) => config.contract,
    });
  }

  #open(path: string): OpenTransport {
    const at = this.#at[path] ?? 0;
    return (handler) => (this.terminals[at] as Terminal).open(`/dev/ttyUSB${at}`)(handler);
  }

  load(wish: Wish): void {
    this.#wish = wish;
    this.#set.take(this.#set.prepare([this.#line(0), this.#line(1)]));
  }

  #line(at: 0 | 1): SharedLine {
    const { paths, names, baudRate, bankName, hasFiscal, isQuiet } = this.#wish;
    const name = names[at];
    const recovery = isQuiet ? "quiet" : "barrier";
    const served = (service: string, contract: ContractName) => {
      const settings = { ...serviceDefaults, merchantId: contract === "fiscal" ? "M" : undefined, replyTimeoutMs: {} };
      // What a line takes of it.
      return { service, config: { ...settings, contract, line: name, port: 1 } as unknown as Served["config"] };
    };
    return {
      name,
      config: configOf({ path: paths[at], baudRate, recovery, lateReplyMs: 30_000, queueWaitMs: 60_000 }),
      served: [served(bankName, "bank"), ...(hasFiscal ? [served("fiscal", "fiscal")] : [])],
    };
  }

  call({ line: at, isFiscal, takesMs, timeoutMs }: Step & { do: "call" }): void {
    const { names, bankName, hasFiscal } = this.#wish;
    const id = `C${this.ended.length}`;
    const ended: Ended = { id };
    this.ended.push(ended);
    for (const terminal of this.terminals) terminal.takesMs.set(id, takesMs);
    const service: ContractName = isFiscal && hasFiscal ? "fiscal" : "bank";
    const request = {
      ...requestFor(id, { service, replyTimeoutMs: timeoutMs }),
      service: service === "bank" ? bankName : service,
    };
    this.#lineNamed(names[at])
      .run(request)
      .then(
        ({ payload }) => Object.assign(ended, { outcome: "answered", text: Buffer.concat(payload).toString() }),
        (error: unknown) => Object.assign(ended, { outcome: error instanceof Fault ? error.outcome : String(error) }),
      );
  }

  #lineNamed(name: string | undefined): BridgeLine["line"] {
    const found = this.#set.all.find(({ line }) => line.name === name);
    assert.ok(found);
    return found.line;
  }

  get areReady(): boolean {
    return this.#set.all.every(({ line }) => line.state === "idle");
  }

  stop(): Promise<void> {
    return this.#set.stop();
  }
}

async function live({ habits, steps: all, lastTakesMs }: Life): Promise<void> {
  const box = new Box(habits);
  box.load(first);
  assert.ok(await time.until(() => box.areReady, hourMs), "the lines are ready at the start");
  for (const terminal of box.terminals) terminal.probeMs = habits.probeMs;
  for (const { step, waitMs } of all) {
    if (step.do === "call") box.call(step);
    else if (step.do === "reload") box.load(step.wish);
    else if (step.do === "hang") box.terminals[0]?.hang(step.hangMs);
    else if (step.do !== "unplug") box.terminals[step.terminal]?.switch(step.do === "switch on");
    else {
      const device = box.terminals[step.terminal]?.device;
      device?.unplug();
      time.after(3_000, () => device?.plug());
    }
    await time.advance(waitMs);
  }
  for (const terminal of box.terminals) terminal.switch(true);
  await sellOn(box, lastTakesMs);
  assert.ok(await time.until(() => box.ended.every(({ outcome }) => outcome !== undefined), hourMs), "each call ends");
  for (const { id, outcome, text } of box.ended) {
    const times = box.terminals.flatMap(({ carriedOut }) => carriedOut).filter((each) => each === id).length;
    assert.ok(times <= (outcome === "not-sent" ? 0 : 1), `${id} is ${outcome}, and was carried out ${times} times`);
    if (outcome === "answered") assert.equal(text, `{"status":"success","id":"${id}"}`);
    else assert.ok(outcome === "not-sent" || outcome === "unknown", outcome);
  }
  assert.ok(await time.until(() => box.areReady, hourMs), "the lines come back");
  const stopped = watched(box.stop());
  await time.advance(200_000);
  assert.ok(stopped.isOver);
  time.forgetTimers();
}

/** What was left behind may come to light several sales later. */
async function sellOn(box: Box, firstTakesMs: number): Promise<void> {
  for (let n = 0; n < 5; n++) {
    assert.ok(await time.until(() => box.areReady, hourMs), "the lines are ready again");
    for (const line of [0, 1])
      box.call({ do: "call", line, isFiscal: false, takesMs: n === 0 ? firstTakesMs : 5, timeoutMs: 30_000 });
    await time.advance(31_000);
  }
}

const call = (takesMs: number) => ({ do: "call", line: 0, isFiscal: false, takesMs, timeoutMs: 30_000 }) as const;
const reload = (wish: Partial<Wish>) => ({ do: "reload", wish: { ...first, ...wish } }) as const;

/** A sale times out, the line gets the same device by another path, and what follows waits for the customer all the same. */
const otherPath: Life = {
  habits: { probeMs: 5, odd: undefined },
  steps: [
    { step: call(90_000), waitMs: 31_000 },
    { step: reload({ paths: ["/dev/serial/a", "/dev/b"] }), waitMs: 31_000 },
    { step: call(20_000), waitMs: 0 },
  ],
  lastTakesMs: 5,
};

/** A sale times out on a line that asks nothing; the one that follows asks again, and knows from before that it may. */
const quietMeanwhile: Life = {
  habits: { probeMs: 5, odd: undefined },
  steps: [
    { step: reload({ isQuiet: true }), waitMs: 310_000 },
    { step: call(85_000), waitMs: 31_000 },
    { step: reload({}), waitMs: 0 },
  ],
  lastTakesMs: 60_000,
};

/** Each line leaves probes behind that have no answer yet, more together than one process may. */
const manyReloads: Life = {
  habits: { probeMs: 1_500, odd: undefined },
  steps: [
    { step: call(150_000), waitMs: 31_000 },
    ...[9_600, 115_200, 9_600, 115_200].map((baudRate) => ({ step: reload({ baudRate }), waitMs: 30_000 })),
  ],
  lastTakesMs: 35_000,
};

/** It hangs for ten minutes and answers all it was asked; somebody has reloaded meanwhile, and the sales begin right before it wakes. */
const hangOver = (probeMs: number, beforeMs: number): Life => ({
  habits: { probeMs, odd: undefined },
  steps: [
    { step: reload({ hasFiscal: false }), waitMs: 10_000 },
    { step: { do: "hang", hangMs: 600_000 }, waitMs: 560_000 },
    { step: reload({ hasFiscal: false, baudRate: 9_600 }), waitMs: 40_000 - beforeMs },
    ...Array.from({ length: 8 }, () => ({ step: call(700), waitMs: 31_000 })),
  ],
  lastTakesMs: 5,
});

/** A fiscal receipt is out when fiscal is taken away, bank is asked once, and then asked nothing any more. */
const goneAndQuiet: Life = {
  habits: { probeMs: 1_500, odd: '{"status":"success"}' },
  steps: [
    { step: { ...call(40_100), isFiscal: true, timeoutMs: 10_000 }, waitMs: 0 },
    { step: reload({ hasFiscal: false, baudRate: 9_600 }), waitMs: 10_054 },
    { step: reload({ hasFiscal: false, baudRate: 9_600, isQuiet: true }), waitMs: 0 },
  ],
  lastTakesMs: 5,
};

const hangs = [700, 1_500].flatMap((probeMs) => [1_000, 10_000, 29_000].map((beforeMs) => hangOver(probeMs, beforeMs)));

test("LineSet gives no call another's answer, whatever reloads change meanwhile, in random lives", async () => {
  const examples = [otherPath, quietMeanwhile, manyReloads, goneAndQuiet, ...hangs].map((each): [Life] => [each]);
  await fc.assert(fc.asyncProperty(lives, live), { numRuns, ...seed, examples });
});
