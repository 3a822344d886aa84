import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { durationBoundsMs } from "../../src/admin/duration-histogram.ts";
import { metrics } from "../../src/admin/metrics.ts";
import { Status } from "../../src/admin/status.ts";
import type { LiveJournal, StatusSources } from "../../src/admin/status-sources.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { faultReasons } from "../../src/core/fault.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { discard, frame, lineSource, played, recordOf } from "./worlds.ts";

/** Tests src/admin/metrics.ts, src/admin/metrics-text.ts, src/admin/process-metrics.ts, src/admin/service-metrics.ts. */

let time: VirtualTime;
beforeEach(() => {
  time = new VirtualTime();
  mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-11-20T10:33:08.000Z") });
});
afterEach(() => {
  time.restore();
  mock.timers.reset();
});

/** The value of each series, by its name and labels as they are written. */
async function scrape(status: Status): Promise<ReadonlyMap<string, number>> {
  const { status: code, text, contentType } = await status.metrics();
  assert.equal(code, 200);
  assert.match(contentType ?? "", /^text\/plain; version=0\.0\.4/);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const all = lines.map((line) => {
    const space = line.lastIndexOf(" ");
    return [line.slice(0, space), Number(line.slice(space + 1))] as const;
  });
  assert.equal(new Map(all).size, all.length, "no series stands there twice");
  return new Map(all);
}

const traffic = { sentBytes: 10, sentFrames: 2, receivedBytes: 30, receivedFrames: 3, probes: new Map() };

/** A bridge with the bank on one line. */
function bank(more: Partial<StatusSources> = {}) {
  const status = new Status("1.2.3");
  const live = played("idle", { waiting: 0 });
  status.setSources({
    lines: [lineSource("till", live, { traffic })],
    services: [{ service: "bank", contract: "bank", line: "till" }],
    ...more,
  });
  return { status, live, observer: status.line("till") };
}

test("metrics has each name once, by Prometheus' rules, with labels from the configuration and closed lists alone", () => {
  const names = metrics.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const labels = new Set(metrics.flatMap((metric) => metric.labels));
  const bounded = ["version", "node", "service", "route", "outcome", "reason", "line", "state", "result", "cause"];
  assert.deepEqual([...labels].sort(), bounded.sort());
  for (const { name, type } of metrics) {
    assert.match(name, /^(?:posline|process)_[a-z_]+$/);
    assert.equal(name.endsWith("_total"), type === "counter", name);
  }
});

test("Status.metrics() begins every series that may come at 0", async () => {
  const { status } = bank();
  const series = await scrape(status);
  for (const { path } of [...contracts.bank.routes, { path: "other" }]) {
    for (const outcome of ["answered", "not-sent", "unknown"]) {
      assert.equal(series.get(`posline_exchanges_total{service="bank",route="${path}",outcome="${outcome}"}`), 0, path);
    }
  }
  for (const reason of Object.keys(faultReasons)) {
    assert.equal(series.get(`posline_faults_total{service="bank",reason="${reason}"}`), 0, reason);
  }
  for (const reason of ["noise", "checksum", "oversize", "reset"]) {
    assert.equal(series.get(`posline_line_discards_total{line="till",reason="${reason}"}`), 0, reason);
  }
  for (const state of ["down", "recovering", "idle", "awaiting", "open", "closed"]) {
    assert.equal(series.get(`posline_line_state{line="till",state="${state}"}`), state === "idle" ? 1 : 0, state);
  }
  for (const which of ["queue", "line"]) {
    for (const bound of [...durationBoundsMs.map((ms) => String(ms / 1_000)), "+Inf"]) {
      assert.equal(series.get(`posline_exchange_${which}_seconds_bucket{service="bank",le="${bound}"}`), 0, bound);
    }
  }
});

test("Status.metrics() counts an exchange by route and outcome, its fault by reason, and its times", async () => {
  const { status } = bank();
  status.exchange(recordOf("bank", "answered", { route: "/sale", queueMs: 12, lineMs: 30_001 }));
  status.exchange(recordOf("bank", "answered", { route: "/sale", queueMs: 0, lineMs: 20 }));
  status.exchange(recordOf("bank", "unknown", { route: "/refund", reason: "no-reply", queueMs: 0, lineMs: 130_000 }));
  status.exchange(recordOf("bank", "not-sent", { route: "/sale", reason: "waited-too-long", queueMs: 15_000, lineMs: 0 }));
  status.exchange(recordOf("bank", "not-sent", { route: "?", reason: "unknown-route", queueMs: 0, lineMs: 0 }));
  const series = await scrape(status);
  const exchanges = (route: string, outcome: string) =>
    series.get(`posline_exchanges_total{service="bank",route="${route}",outcome="${outcome}"}`);
  assert.deepEqual(
    [exchanges("/sale", "answered"), exchanges("/sale", "not-sent"), exchanges("/refund", "unknown")],
    [2, 1, 1],
  );
  assert.equal(exchanges("other", "not-sent"), 1);
  for (const reason of ["no-reply", "waited-too-long", "unknown-route"]) {
    assert.equal(series.get(`posline_faults_total{service="bank",reason="${reason}"}`), 1);
  }
  const seconds = (which: string, le: string) =>
    series.get(`posline_exchange_${which}_seconds_bucket{service="bank",le="${le}"}`);
  assert.deepEqual(
    ["0.01", "0.025", "30", "60", "120", "+Inf"].map((le) => seconds("line", le)),
    [0, 1, 1, 2, 2, 3],
    "those that were sent",
  );
  assert.deepEqual(
    ["0.005", "0.025", "10", "20", "+Inf"].map((le) => seconds("queue", le)),
    [2, 3, 3, 4, 4],
    "the refusal at the door was in no queue",
  );
  assert.equal(series.get('posline_exchange_line_seconds_count{service="bank"}'), 3);
  assert.equal(series.get('posline_exchange_line_seconds_sum{service="bank"}'), 160.021);
});

test("Status.metrics() has what a line reports, and what went over it", async () => {
  const { status, observer, live } = bank();
  observer.state("recovering", "the device opened");
  observer.state("down", "the device was lost");
  observer.discard(discard("checksum", 20));
  observer.late(frame(26));
  live.waiting = 5;
  const series = await scrape(status);
  const values = (names: readonly string[]) => names.map((name) => series.get(`posline_line_${name}{line="till"}`));
  assert.deepEqual(values(["openings_total", "losses_total", "recoveries_total", "late_frames_total"]), [1, 1, 0, 1]);
  assert.deepEqual(values(["queue_calls", "queue_calls_max"]), [5, 64]);
  assert.deepEqual(values(["sent_bytes_total", "sent_frames_total"]), [10, 2]);
  assert.deepEqual(values(["received_bytes_total", "received_frames_total"]), [30, 3]);
  assert.equal(series.get('posline_line_discards_total{line="till",reason="checksum"}'), 1);
  assert.equal(series.get('posline_line_discarded_bytes_total{line="till",reason="checksum"}'), 20);
});

test("Status.metrics() says when a terminal was heard and a line changed by the clock as it is now", async () => {
  const live = played("idle", {
    liveness: () => [
      { service: "bank", state: "heard", heardMs: performance.now() - 5_000, cause: undefined },
      { service: "qr", state: "unheard", heardMs: undefined, cause: undefined },
    ],
  });
  const services = (["bank", "qr"] as const).map((service) => ({ service, contract: service, line: "till" }));
  const { status, observer } = bank({ lines: [lineSource("till", live)], services });
  observer.state("recovering", "the device opened");
  await time.advance(60_000);
  // The box had no clock until now.
  mock.timers.setTime(Date.parse("2036-01-01T00:00:00.000Z"));
  const now = Date.now() / 1_000;
  const series = await scrape(status);
  assert.equal(series.get('posline_line_heard_timestamp_seconds{service="bank"}'), now - 5);
  assert.equal(series.get('posline_line_heard_timestamp_seconds{service="qr"}'), 0);
  assert.equal(series.get('posline_line_state_changed_timestamp_seconds{line="till"}'), now - 60);
});

test("Status.metrics() has the journal and the log where there are any", async () => {
  const none = [...(await scrape(bank().status)).keys()];
  assert.deepEqual(
    none.filter((name) => /journal|log_/.test(name)),
    [],
  );
  const live: LiveJournal = { state: "the disk is full", unknown: () => [], unknownTotal: 120 };
  const log = { state: "the log's reader went away", dropped: { budget: 4, reader: 2 } };
  const { status } = bank({ journal: { folder: "/var/lib/posline", onFailure: "relay", live }, log });
  const series = await scrape(status);
  assert.equal(series.get("posline_journal_unknown_operations"), 120);
  assert.equal(series.get("posline_journal_writable"), 0);
  assert.equal(series.get('posline_log_lines_dropped_total{cause="budget"}'), 4);
  assert.equal(series.get('posline_log_lines_dropped_total{cause="reader"}'), 2);
  assert.equal(series.get("posline_log_writable"), 0);
});

test("Status.metrics() says of a journal that was not read yet how many unknown operations are known, and not that there are none", async () => {
  const live = { state: "there is no folder /x: create it", isReadable: false, unknown: () => [], unknownTotal: 0 };
  const { status } = bank({ journal: { folder: "/x", onFailure: "relay", live } });
  const unknownNow = async () => (await scrape(status)).get("posline_journal_unknown_operations");
  assert.equal(await unknownNow(), undefined);
  assert.equal((await scrape(status)).get("posline_journal_writable"), 0);
  const oldestNow = async () => (await scrape(status)).get("posline_journal_oldest_unknown_timestamp_seconds");
  assert.equal(await oldestNow(), undefined);
  live.unknownTotal = 1;
  assert.deepEqual([await unknownNow(), await oldestNow()], [1, undefined]);
  Object.assign(live, { isReadable: true });
  assert.equal(await oldestNow(), undefined, "one that isn't listed may be older");
  Object.assign(live, { unknownTotal: 0 });
  assert.deepEqual([await unknownNow(), await oldestNow()], [0, 0]);
  const unknown = ["2026-11-20T10:00:00.000Z", "2026-11-20T11:00:00.000Z"].map((time) => ({ time }));
  Object.assign(live, { unknownTotal: 2, unknown: () => unknown });
  assert.equal(await oldestNow(), Date.UTC(2026, 10, 20, 10) / 1_000);
});

test("Status.metrics() says what the process is", async () => {
  mock.timers.reset();
  const { status } = bank();
  const series = await scrape(status);
  assert.equal(series.get(`posline_build_info{version="1.2.3",node="${process.versions.node}"}`), 1);
  assert.equal(series.get("posline_ready"), 1);
  const startS = series.get("process_start_time_seconds") ?? 0;
  assert.ok(Math.abs(Date.now() / 1_000 - process.uptime() - startS) <= 2);
  assert.ok((series.get("process_cpu_seconds_total") ?? 0) > 0.05);
  assert.ok((series.get("process_resident_memory_bytes") ?? 0) > 20 * 1024 * 1024);
  const [open = 0, max = 0] = [series.get("process_open_fds"), series.get("process_max_fds")];
  assert.ok(open > 5 && open < max, `${open} of ${max}`);
});

test("Status.metrics() shows nothing of what a till or a terminal wrote", async () => {
  const { status, observer } = bank();
  const seed = "4111111111111111";
  const text = { requestId: seed, key: seed, status: seed, message: seed } as const;
  for (const outcome of ["answered", "unknown", "not-sent"] as const) status.exchange(recordOf("bank", outcome, text));
  observer.state("idle", seed);
  observer.discard({ ...discard("noise", 16), head: seed });
  observer.probeAnswered("bank", { operations: [seed] });
  assert.ok(!(await status.metrics()).text.includes("4111"));
});
