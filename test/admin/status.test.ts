import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import fc from "fast-check";
import type { LineObserver } from "../../src/admin/line-metrics.ts";
import { Status } from "../../src/admin/status.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { discard, frame, lineSource, oneLineSources, played, recordOf, statusOf } from "./worlds.ts";

const wall = Date.parse("2026-11-20T10:33:08.000Z");
let time: VirtualTime;
beforeEach(() => {
  time = new VirtualTime();
  mock.timers.enable({ apis: ["Date"], now: wall });
});
afterEach(() => {
  time.restore();
  mock.timers.reset();
});

/** Moves both clocks. */
async function advance(ms: number): Promise<void> {
  await time.advance(ms);
  mock.timers.setTime(Date.now() + ms);
}

/** A status of one line, clean, with its observer. */
function clean() {
  const status = new Status("1.2.3");
  const live = played("idle", { waiting: 0, device: "/dev/ttyUSB0" });
  const observer = status.line("till");
  status.setSources(oneLineSources(live));
  observer.state("recovering", "the device opened");
  observer.state("idle", "the probe was answered");
  return { status, live, observer };
}

test("Status.status() has every field of a bridge that has just begun, and nothing that isn't known yet", () => {
  const { status } = clean();
  assert.deepEqual(statusOf(status), {
    version: "1.2.3",
    pid: process.pid,
    started: "2026-11-20T10:33:08.000Z",
    uptimeS: 0,
    state: "running",
    ready: true,
    reasons: [],
    notes: [],
    lines: {
      till: {
        state: "idle",
        sinceMs: 0,
        reason: "a reason",
        device: { path: "/dev/till", node: "/dev/ttyUSB0" },
        queue: { waiting: 0, max: 64 },
        stalledMs: 0,
        counters: {
          answered: 0,
          notSent: 0,
          unknown: 0,
          reasons: {},
          late: 0,
          discards: {
            noise: { count: 0, bytes: 0 },
            checksum: { count: 0, bytes: 0 },
            oversize: { count: 0, bytes: 0 },
            reset: { count: 0, bytes: 0 },
          },
          openings: 1,
          losses: 0,
          recoveries: 0,
        },
      },
    },
    services: {
      bank: { line: "till", host: "127.0.0.1", port: 8888, counters: { answered: 0, notSent: 0, unknown: 0, reasons: {} } },
    },
    journal: { state: "off" },
  });
});

test("Status.status() counts time by the monotonic clock, and goes on when the box's clock is set by years", async () => {
  const { status } = clean();
  await advance(61_999);
  mock.timers.setTime(Date.parse("2036-01-01T00:00:00.000Z"));
  const { started, uptimeS, lines } = statusOf(status);
  assert.equal(started, "2026-11-20T10:33:08.000Z");
  assert.equal(uptimeS, 61);
  assert.equal(lines.till.sinceMs, 61_999);
});

test("Status.status() shows the last exchange with its time and its key masked, as the log does", async () => {
  const { status } = clean();
  status.exchange(recordOf("bank", "answered"));
  await advance(1_500);
  const failed = { key: "4111111111111111", route: "/refund", code: -3, status: "error", reason: "no-reply" } as const;
  status.exchange(recordOf("bank", "unknown", failed));
  const { lastExchange, counters } = statusOf(status).lines.till;
  assert.deepEqual(lastExchange, {
    time: "2026-11-20T10:33:09.500Z",
    requestId: "6fcc1715-1",
    service: "bank",
    route: "/refund",
    key: "411111******1111",
    outcome: "unknown",
    reason: "no-reply",
    status: "error",
    code: -3,
    queueMs: 1.23,
    lineMs: 8.77,
  });
  assert.deepEqual([counters.answered, counters.notSent, counters.unknown], [1, 0, 1]);
  assert.deepEqual(counters.reasons, { "no-reply": 1 });
  assert.deepEqual(statusOf(status).services.bank.counters, {
    answered: 1,
    notSent: 0,
    unknown: 1,
    reasons: { "no-reply": 1 },
  });
});

test("Status.status() counts late frames and discards by reason with their bytes, and shows the last late frame", async () => {
  const { status, observer } = clean();
  observer.discard(discard("noise", 3));
  observer.discard(discard("noise", 4));
  observer.discard(discard("checksum", 20));
  observer.late(frame(10));
  await advance(250);
  observer.late(frame(26));
  const { counters, lastLate } = statusOf(status).lines.till;
  assert.equal(counters.late, 2);
  assert.deepEqual(counters.discards, {
    noise: { count: 2, bytes: 7 },
    checksum: { count: 1, bytes: 20 },
    oversize: { count: 0, bytes: 0 },
    reset: { count: 0, bytes: 0 },
  });
  assert.deepEqual(lastLate, { time: "2026-11-20T10:33:08.250Z", framing: "length", bytes: 26 });
});

test("Status.status() says how long a line has been in its state: idle and awaiting are one, another reason is no change", async () => {
  const { status, live, observer } = clean();
  await advance(1_000);
  live.state = "awaiting";
  assert.equal(statusOf(status).lines.till.sinceMs, 1_000);
  observer.state("recovering", "no reply came");
  live.state = "recovering";
  await advance(300);
  assert.equal(statusOf(status).lines.till.sinceMs, 300);
  observer.state("down", "the device is gone");
  await advance(200);
  observer.state("down", "there is no device");
  live.state = "down";
  await advance(100);
  assert.equal(statusOf(status).lines.till.sinceMs, 300);
  // A state that the line hasn't told of yet is a new one.
  live.state = "idle";
  assert.equal(statusOf(status).lines.till.sinceMs, 0);
});

test("Status.status() counts openings, losses and recoveries, each once", () => {
  const { status, observer } = clean();
  const counted = () => {
    const { openings, losses, recoveries } = statusOf(status).lines.till.counters;
    return [openings, losses, recoveries];
  };
  observer.state("recovering", "no reply came");
  assert.deepEqual(counted(), [1, 0, 1]);
  observer.state("idle", "the probe was answered");
  observer.state("down", "the device is gone");
  observer.state("down", "there is no device");
  assert.deepEqual(counted(), [1, 1, 1]);
  observer.state("recovering", "the device opened");
  observer.state("down", "the device is gone");
  assert.deepEqual(counted(), [2, 2, 1]);
  observer.state("closed", "posline is shutting down");
  assert.deepEqual(counted(), [2, 2, 1]);
});

test("Status.status() shows the queue, the device and a stall as they are when it is asked", () => {
  const { status, live } = clean();
  Object.assign(live, { waiting: 7, stalled: 12_345.6, device: undefined });
  const { queue, stalledMs, device } = statusOf(status).lines.till;
  assert.deepEqual(queue, { waiting: 7, max: 64 });
  assert.equal(stalledMs, 12_346);
  assert.deepEqual(device, { path: "/dev/till" });
});

test("Status.status() shows a gateway's lines and services: open or down, no queue, and where it asks", () => {
  const status = new Status("1.2.3");
  const observer = status.line("till");
  const live = { state: "down" as "down" | "open", reason: "not opened yet" };
  status.setSources({
    lines: [{ name: "till", path: "/dev/ttyS1", live }],
    services: [{ service: "qr", line: "till", upstream: "https://terminal.lan" }],
  });
  assert.equal(status.readyz().status, 503);
  observer.state("open", "the device opened");
  live.state = "open";
  observer.state("down", "gone");
  observer.state("open", "the device opened");
  status.exchange(recordOf("qr", "answered", { httpStatus: undefined }));
  const { lines, services, ready } = statusOf(status);
  assert.equal(ready, true);
  assert.equal(lines.till.state, "open");
  assert.equal(lines.till.queue, undefined);
  assert.deepEqual(lines.till.device, { path: "/dev/ttyS1" });
  assert.deepEqual([lines.till.counters.openings, lines.till.counters.losses], [2, 1]);
  assert.deepEqual(services.qr, {
    line: "till",
    upstream: "https://terminal.lan",
    counters: { answered: 1, notSent: 0, unknown: 0, reasons: {} },
  });
});

test("Status.status() shows a service's operations as the last probe told them, and not before", async () => {
  const { status, observer } = clean();
  assert.equal(statusOf(status).services.bank.offer, undefined);
  observer.probeAnswered("bank", { status: "success", data: { operations: ["sale", "refund"] } });
  await advance(1_000);
  observer.probeAnswered("bank", { status: "success", operations: ["sale"] });
  assert.deepEqual(statusOf(status).services.bank.offer, { operations: ["sale"], toldAt: "2026-11-20T10:33:09.000Z" });
});

const operation = (n: number) => ({
  time: new Date(wall + n).toISOString(),
  requestId: `r-${n}`,
  service: "bank",
  route: "/sale",
  key: n === 0 ? undefined : `pay-4111111111111111-${n}`,
  amount: "1500",
  cause: "no outcome recorded",
});

test("Status.status() shows the journal with its newest 100 unknown operations, the last first, and how many there are", () => {
  const { status, live } = clean();
  let known: ReturnType<typeof operation>[] = [];
  const journal = { state: "ok", unknown: () => known };
  status.setSources({ ...oneLineSources(live), journal: { folder: "/var/lib/posline", onFailure: "relay", live: journal } });
  assert.deepEqual(statusOf(status).journal, {
    state: "ok",
    folder: "/var/lib/posline",
    onFailure: "relay",
    readable: true,
    unknown: { total: 0, newest: [] },
  });
  known = Array.from({ length: 130 }, (_, n) => operation(n));
  const { unknown } = statusOf(status).journal;
  assert.equal(unknown.total, 130);
  assert.equal(unknown.newest.length, 100);
  assert.deepEqual(unknown.newest[0], { ...operation(129), key: "pay-411111******1111-129" });
  assert.equal(unknown.newest[99].requestId, "r-30");
  // Where the journal itself gives only the newest, it says how many there are.
  status.setSources({
    ...oneLineSources(live),
    journal: { folder: "/x", onFailure: "relay", live: { ...journal, unknownTotal: 4_000 } },
  });
  assert.equal(statusOf(status).journal.unknown.total, 4_000);
});

test("Status.status() keeps lines and services in the configuration's order, in every answer", () => {
  const status = new Status("1.2.3");
  const names = ["till", "bar", "__proto__", "a b"];
  status.setSources({
    lines: names.map((name) => lineSource(name, played())),
    services: (["qr", "fiscal", "bank"] as const).map((service) => ({ service, line: "bar" })),
  });
  assert.deepEqual(Object.keys(statusOf(status).lines), names);
  assert.deepEqual(Object.keys(statusOf(status).services), ["qr", "fiscal", "bank"]);
  assert.equal(status.status().text, status.status().text);
});

test("Status.setSources() keeps the counters of what a new configuration keeps, and forgets what it takes away", () => {
  const { status, live } = clean();
  status.exchange(recordOf("bank", "answered"));
  status.line("bar");
  status.setSources({ ...oneLineSources(live), lines: [lineSource("bar", played()), lineSource("till", live)] });
  assert.equal(statusOf(status).lines.till.counters.answered, 1);
  // The bank moves to another line, and its requests count there from now on.
  status.setSources({ lines: [lineSource("bar", played())], services: [{ service: "bank", line: "bar" }] });
  status.exchange(recordOf("bank", "answered"));
  const { lines, services } = statusOf(status);
  assert.deepEqual(Object.keys(lines), ["bar"]);
  assert.equal(lines.bar.counters.answered, 1);
  assert.equal(services.bank.counters.answered, 2);
  status.setSources(oneLineSources(live));
  assert.equal(statusOf(status).lines.till.counters.answered, 0);
});

test("Status.line() counts the opening of a line that takes another's place as an opening, and no recovery", () => {
  const { status } = clean();
  const next = status.line("till");
  next.state("recovering", "the device opened");
  next.state("idle", "the probe was answered");
  const { openings, losses, recoveries } = statusOf(status).lines.till.counters;
  assert.deepEqual([openings, losses, recoveries], [2, 0, 0]);
});

test("Status.status() lets nothing out that a terminal's screen would carry out", () => {
  const { status, live, observer } = clean();
  live.reason = "gone\u001b[2J\u009b2J\u202egnp";
  observer.probeAnswered("bank", { operations: ["\u009b31msale\u007f\u2028"] });
  const { text } = status.status();
  assert.doesNotMatch(text, /[^\n\u0020-\u007e]/u);
  assert.equal(JSON.parse(text).lines.till.reason, live.reason);
});

test("Status.healthz() is 200, and says so when the process stops", () => {
  const { status, live } = clean();
  live.state = "down";
  assert.deepEqual([status.healthz().status, JSON.parse(status.healthz().text)], [200, { status: "ok" }]);
  status.stopping();
  assert.deepEqual([status.healthz().status, JSON.parse(status.healthz().text)], [200, { status: "stopping" }]);
  assert.equal(statusOf(status).state, "stopping");
});

test("Status.routes has the four paths", async () => {
  const { status } = clean();
  const { routes } = status;
  assert.deepEqual(Object.keys(routes), ["GET /healthz", "GET /readyz", "GET /status", "GET /metrics"]);
  for (const route of Object.values(routes)) assert.equal((await route()).status, 200);
});

const outcomes = ["answered", "not-sent", "unknown"] as const;
const happening = fc.oneof(
  fc.record({ service: fc.constantFrom(...contractNames), outcome: fc.constantFrom(...outcomes) }),
  fc.record({ line: fc.constantFrom("a", "b"), event: fc.constantFrom("open", "clean", "fail", "lose", "late") }),
  fc.record({
    line: fc.constantFrom("a", "b"),
    bytes: fc.nat(9),
    reason: fc.constantFrom("noise" as const, "checksum" as const, "oversize" as const, "reset" as const),
  }),
);

test("Status's counters add up whatever happens: lines to services, openings to losses, discards to their bytes (property)", () => {
  const lineOf: Readonly<Record<ContractName, "a" | "b">> = { fiscal: "a", bank: "b", qr: "b" };
  fc.assert(
    fc.property(fc.array(happening), (all) => {
      const status = new Status("1.2.3");
      const lives = { a: played("down"), b: played("down") };
      const observers: Readonly<Record<string, LineObserver>> = { a: status.line("a"), b: status.line("b") };
      status.setSources({
        lines: [lineSource("a", lives.a), lineSource("b", lives.b)],
        services: contractNames.map((service) => ({ service, line: lineOf[service] })),
      });
      const next = { open: "recovering", clean: "idle", fail: "recovering", lose: "down" } as const;
      const from = { open: ["down"], clean: ["recovering"], fail: ["idle"], lose: ["recovering", "idle"] } as const;
      let bytes = 0;
      for (const each of all) {
        if ("service" in each) {
          status.exchange(recordOf(each.service, each.outcome));
        } else if ("reason" in each) {
          observers[each.line]?.discard(discard(each.reason, each.bytes));
          bytes += each.bytes;
        } else if (each.event === "late") {
          observers[each.line]?.late(frame(9));
        } else {
          const live = each.line === "a" ? lives.a : lives.b;
          const states: readonly string[] = from[each.event];
          if (!states.includes(live.state)) continue;
          live.state = next[each.event];
          observers[each.line]?.state(live.state, each.event);
        }
      }
      const { lines, services } = statusOf(status);
      for (const outcome of ["answered", "notSent", "unknown"]) {
        assert.equal(lines.a.counters[outcome], services.fiscal.counters[outcome]);
        assert.equal(lines.b.counters[outcome], services.bank.counters[outcome] + services.qr.counters[outcome]);
      }
      let [ended, discarded, discardedBytes, late] = [0, 0, 0, 0];
      for (const name of ["a", "b"]) {
        const { counters, state } = lines[name];
        assert.equal(counters.openings - counters.losses, state === "down" ? 0 : 1);
        ended += counters.answered + counters.notSent + counters.unknown;
        late += counters.late;
        for (const { count, bytes } of Object.values<{ count: number; bytes: number }>(counters.discards)) {
          discarded += count;
          discardedBytes += bytes;
        }
      }
      assert.equal(ended, all.filter((each) => "service" in each).length);
      assert.equal(late, all.filter((each) => "event" in each && each.event === "late").length);
      assert.equal(discarded, all.filter((each) => "reason" in each).length);
      assert.equal(discardedBytes, bytes);
    }),
  );
});
