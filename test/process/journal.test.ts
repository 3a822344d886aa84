import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { test } from "node:test";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, BridgeProcess } from "../support/bridge-process.ts";
import { good, sale, withBench } from "../support/journal-bench.ts";
import type { Behaviour } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** The journal of money, by the real bundle: what a crash leaves, and what is told of it. */

const statusOf = async (bridge: BridgeProcess) =>
  JSON.parse((await ask(await bridge.port("admin"), "GET", "/status", "")).text);

test("journal has each sale with its outcome, and no question about one", async () => {
  await withBench(good, async ({ start, journal }) => {
    const bridge = await start();
    for (const id of ["A-1", "A-2"]) assert.equal((await bridge.post("bank", "/sale", sale(id))).status, 200);
    assert.equal((await bridge.post("bank", "/check", '{"pay_id":"A-1"}')).status, 200);
    const { rows, code } = await journal();
    assertMapped(
      rows,
      [
        ["/sale", "A-1", "1500", "answered"],
        ["/sale", "A-2", "1500", "answered"],
      ],
      ({ route, key, amount, outcome }) => [route, key, amount, outcome],
    );
    assert.equal(code, 0);
    assert.equal((await journal("--unknown")).code, 0);
    assert.equal((await journal("--key", "A-2")).rows.length, 1);
  });
});

test("journal lists a sale that was on the line at kill -9 as unknown, at the next start, in /status and by the command", async () => {
  const behaviour: Behaviour = (asked, terminal) => {
    if (asked.text.includes('"B-2"')) return;
    return good(asked, terminal);
  };
  await withBench(
    behaviour,
    async ({ terminal, start, journal }) => {
      const first = await start();
      assert.equal((await first.post("bank", "/sale", sale("B-1"))).status, 200);
      const lost = first.post("bank", "/sale", sale("B-2")).catch(() => "lost");
      await until(() => terminal.calls.some(({ text }) => text.includes('"B-2"')), "the sale to be on the line");
      // It waits for its turn and was never sent: it must not be listed.
      const waiting = first.post("bank", "/sale", sale("B-3")).catch(() => "lost");
      await until(async () => (await statusOf(first)).lines.till.queue.waiting === 1, "the other to wait");
      await first.stop("SIGKILL");
      assert.deepEqual(await Promise.all([lost, waiting]), ["lost", "lost"]);

      const { rows, code } = await journal("--unknown");
      assertMapped(rows, ["B-2"], ({ key }) => key);
      assert.equal(code, 75);
      const before = terminal.calls.length;
      const second = await start();
      const told = await second.logged(({ key }) => key === "B-2", "the sale to be told of");
      assert.equal(told["level"], "warn");
      assert.match(String(told["msg"]), /outcome is unknown/);
      const { journal: shown } = await statusOf(second);
      assert.deepEqual([shown.unknown.total, shown.unknown.newest[0].key], [1, "B-2"]);
      assert.equal(terminal.calls.length, before, "nothing was sent again");
      assert.equal((await second.post("bank", "/sale", sale("B-4"))).status, 200);
      assert.equal((await journal()).rows.find(({ key }) => key === "B-1")?.["outcome"], "answered");
      // Its questions are the affair of journal-settles.test.ts.
    },
    { resolve: false },
  );
});

test("serve refuses to start with 78 where nothing goes without a record and there is no folder for it", async () => {
  const config = {
    lines: { till: { path: "/dev/absent0" } },
    services: { bank: { line: "till" } },
    journal: { onFailure: "refuse" },
  };
  const bridge = new BridgeProcess(config);
  assert.equal(await bridge.ended(), 78);
  assert.match(bridge.stderr, /^Cannot use the configuration: journal\.folder: not set, .* does not start: set "journal": /);
  await bridge.stop();
});

test("journal whose folder is removed and made anew under a running bridge records there, and says so", async () => {
  const holding: Behaviour = (asked, terminal) => (asked.text.includes('"HELD"') ? undefined : good(asked, terminal));
  await withBench(
    holding,
    async ({ terminal, folder, start, journal }) => {
      const bridge = await start();
      assert.equal((await bridge.post("bank", "/sale", sale("A"))).status, 200);
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      assert.equal((await bridge.post("bank", "/sale", sale("B"))).status, 200);
      await bridge.logged(({ msg }) => /was removed, replaced or cut/.test(String(msg)), "the notice");
      const held = bridge.post("bank", "/sale", sale("HELD")).catch(() => "lost");
      await until(() => terminal.calls.some(({ text }) => text.includes('"HELD"')), "the sale to be on the line");
      await bridge.stop("SIGKILL");
      assert.equal(await held, "lost");
      assertMapped(
        (await journal()).rows,
        [
          ["B", "answered"],
          ["HELD", "unknown"],
        ],
        ({ key, outcome }) => [key, outcome],
      );
    },
    { onFailure: "refuse" },
  );
});

test("journal that can't be kept refuses what moves money under refuse, says why, and goes on when it can", async () => {
  await withBench(
    good,
    async ({ terminal, folder, start }) => {
      rmSync(folder, { recursive: true });
      const bridge = await start();
      const refused = await bridge.post("bank", "/sale", sale("C-1"));
      assert.deepEqual([refused.status, refused.headers["x-posline-outcome"]], [503, "not-sent"]);
      assert.match(
        refused.text,
        /it can't be recorded in the journal .*\. Nothing was sent: it may be sent again, unless an earlier try is in doubt/,
      );
      assert.equal((await bridge.post("bank", "/check", '{"pay_id":"C-1"}')).status, 200);
      assert.equal((await ask(await bridge.port("admin"), "GET", "/readyz", "")).status, 503);
      assert.ok(!terminal.calls.some(({ text }) => text.startsWith("/sale")));
      mkdirSync(folder);
      assert.equal((await bridge.post("bank", "/sale", sale("C-1"))).status, 200);
      assert.equal((await ask(await bridge.port("admin"), "GET", "/readyz", "")).status, 200);
    },
    { onFailure: "refuse" },
  );
});

test("journal that can't be kept lets sales go on under relay, with a note that says so and what to do until it can", async () => {
  await withBench(good, async ({ folder, start }) => {
    rmSync(folder, { recursive: true });
    const bridge = await start();
    const readyz = async () => {
      const { status, text } = await ask(await bridge.port("admin"), "GET", "/readyz", "");
      return { code: status, notes: JSON.parse(text).notes };
    };
    assert.equal((await bridge.post("bank", "/sale", sale("C-1"))).status, 200);
    const logged = await bridge.logged(({ msg }) => /journal can't be written/.test(String(msg)), "the log's line");
    const { code, notes } = await readyz();
    assert.equal(code, 200);
    const [note, unread, ...more] = notes.map(String);
    assert.ok(note.startsWith(`${logged["msg"]}: there is no folder ${folder}: create it`), note);
    assert.match(unread, /has not been read since posline started: what was in doubt before is not known/);
    assert.deepEqual(more, []);
    const shown = await statusOf(bridge);
    assert.deepEqual([shown.ready, shown.notes, shown.journal.readable], [true, notes, false]);
    mkdirSync(folder);
    assert.equal((await bridge.post("bank", "/sale", sale("C-2"))).status, 200);
    assert.deepEqual(await readyz(), { code: 200, notes: undefined });
    rmSync(folder, { recursive: true });
    assert.equal((await bridge.post("bank", "/sale", sale("C-3"))).status, 200);
    const again = await readyz();
    assert.deepEqual([again.notes?.length, (await statusOf(bridge)).journal.readable], [1, true], "it was read");
  });
});
