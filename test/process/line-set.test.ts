import assert from "node:assert/strict";
import { test } from "node:test";
import { lineDefaults } from "../../src/config/limits.ts";
import type { Connection, ConnectionHandler } from "../../src/device/transport.ts";
import { LineSet, type OnLine, type Place } from "../../src/process/line-set.ts";
import type { SharedLine } from "../../src/process/served.ts";
import type { Owed } from "../../src/recovery/owed-calls.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { watched } from "../support/promises.ts";

/** A line that runs nothing: it notes what it is told, and ends when the test says so. */
class Noted implements OnLine {
  started = 0;
  readonly stops: [string, number][] = [];
  readonly place: Place;
  end = () => {};
  owed: Owed | undefined;
  lastDevice: string | undefined;
  readonly #ended = new Promise<void>((resolve) => {
    this.end = resolve;
  });

  constructor(place: Place) {
    this.place = place;
  }

  start(): void {
    this.started++;
  }

  stop(why: string, graceMs: number): Promise<void> {
    this.stops.push([why, graceMs]);
    return this.#ended;
  }

  /** Whether its device may be opened. */
  async opens(): Promise<string> {
    const handler: ConnectionHandler = {
      space: () => Buffer.alloc(0),
      onBytes: () => {},
      onWritten: () => {},
      onClosed: () => {},
    };
    const opening: Connection = { write: () => {}, wroteBytes: 0, close: async () => {} };
    return this.place
      .open(async () => opening)(handler)
      .then(
        () => "opens",
        (error: Error) => error.message,
      );
  }
}

const shared = (name: string, baudRate = 115_200): SharedLine => ({
  name,
  config: { ...lineDefaults, path: `/dev/${name}`, baudRate },
  served: [],
});
const setOf = () => new LineSet<Noted>({ make: (_, place) => new Noted(place), lasting: () => undefined });
const take = (set: LineSet<Noted>, ...lines: SharedLine[]) => set.take(set.prepare(lines));
/** A line, and the one that takes its place. */
function replacedOf() {
  const set = setOf();
  take(set, shared("a"));
  const [first] = set.all;
  take(set, shared("a", 9_600));
  const [second] = set.all;
  assert.ok(first !== undefined && second !== undefined);
  return { set, first, second };
}
const ended = () => new Promise((resolve) => setImmediate(resolve));

test("LineSet goes on with a line that a configuration doesn't change, and starts and ends the others", async () => {
  const set = setOf();
  take(set, shared("a"), shared("b"));
  const [a, b] = set.all;
  take(set, shared("a"), shared("c"));
  assert.equal(set.all[0], a);
  assert.deepEqual([a?.started, a?.stops.length, a?.place.isCurrent], [1, 0, true]);
  assert.deepEqual([b?.stops, b?.place.isCurrent], [[["the configuration was changed", Number.POSITIVE_INFINITY]], false]);
  assert.deepEqual([set.all[1]?.started, await set.all[1]?.opens()], [1, "opens"]);
});

test("LineSet lets a changed line's successor open no device before the line has ended", async () => {
  const { set, first, second } = replacedOf();
  take(set, shared("a", 19_200));
  const [third] = set.all;
  for (const line of [second, third])
    assert.match((await line?.opens()) ?? "", /the previous exchange is still finishing under the old configuration/);
  second?.end();
  await ended();
  assert.match(
    (await third?.opens()) ?? "",
    /the previous exchange is still finishing under the old configuration/,
    "the first has not ended",
  );
  first?.end();
  await ended();
  assert.equal(await third?.opens(), "opens");
});

test("LineSet lets a line's successor wait for a predecessor that ends at once, without a word", async () => {
  const { first, second } = replacedOf();
  const opening = second.opens();
  await ended();
  first.end();
  assert.equal(await opening, "opens");
});

test("LineSet lets a line that was replaced, or is to stop, open no device after its wait", async () => {
  for (const giveUp of [(set: LineSet<Noted>) => take(set, shared("a", 19_200)), (set: LineSet<Noted>) => void set.stop()]) {
    const { set, first, second } = replacedOf();
    const opening = second?.opens();
    await ended();
    giveUp(set);
    first?.end();
    second?.end();
    assert.match((await opening) ?? "", /given up while it waited|still finishing/);
  }
});

test("LineSet.stop() gives all lines a minute, also those that were ending without a limit", async () => {
  const { set, first, second } = replacedOf();
  const stopped = watched(set.stop());
  assert.deepEqual(first?.stops.at(-1), ["posline is shutting down", 60_000]);
  assert.deepEqual(second?.stops, [["posline is shutting down", 60_000]]);
  second?.end();
  await ended();
  assert.equal(stopped.isOver, false);
  first?.end();
  await ended();
  assert.equal(stopped.isOver, true);
});

test("LineSet.discard() ends a running line's successor while that line is the one whose state counts", async () => {
  const set = setOf();
  take(set, shared("a"));
  const [running] = set.all;
  const prepared = set.prepare([shared("a", 9_600)]);
  const made = prepared.get("a")?.onLine;
  made?.end();
  await set.discard(prepared, "the new configuration was refused");
  assert.deepEqual([made?.stops.length, made?.place.isCurrent], [1, false]);
  assert.deepEqual([running?.stops, running?.place.isCurrent], [[], true]);
});

test("LineSet hands on who owes a call to the next line on its device, whatever its name", async () => {
  const set = setOf();
  take(set, shared("a"));
  const [first] = set.all;
  if (first !== undefined) first.owed = { served: ["bank"], owing: ["bank"] };
  take(set, shared("a", 9_600));
  const [second] = set.all;
  assert.deepEqual(second?.place.owing, ["bank"], "the first has the device no more, and has not quite ended");
  first?.end();
  await ended();
  assert.deepEqual(second?.place.owing, ["bank"]);
  // One that was replaced before it had the device knows nothing.
  take(set, shared("a", 19_200), shared("c"), { ...shared("b"), config: shared("a").config });
  second?.end();
  await ended();
  assertMapped(set.all, [["bank"], [], ["bank"]], ({ place }) => place.owing);
});

test("LineSet hands on who owes a call by the real node, too, where the path is another one", async () => {
  const set = setOf();
  take(set, shared("a"));
  const [first] = set.all;
  if (first !== undefined) Object.assign(first, { lastDevice: "/dev/ttyUSB0", owed: { served: ["bank"], owing: ["bank"] } });
  take(set, shared("b"));
  const [second] = set.all;
  first?.end();
  await ended();
  assert.deepEqual(second?.place.owing, [], "it has another device, as far as is known");
  if (second !== undefined) second.lastDevice = "/dev/ttyUSB0";
  assert.deepEqual(second?.place.owing, ["bank"]);
});

test("LineSet hands on who owes a call at a line's device as far as that outlasts a process", () => {
  const set = new LineSet<Noted>({
    make: (_, place) => new Noted(place),
    lasting: () => undefined,
    owing: ({ path }) => (path === "/dev/a" ? ["fiscal"] : []),
  });
  take(set, shared("a"), shared("b"));
  assertMapped(set.all, [["fiscal"], []], ({ place }) => place.owing);
});
