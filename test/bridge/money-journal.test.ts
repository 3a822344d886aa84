import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openMoneyJournal } from "../../src/bridge/money-journal.ts";
import type { Log, ProcessFields } from "../../src/core/log.ts";
import { callOf, routeTo } from "../journal/records.ts";

/** What the log says of the journal that the process before left. */

const root = mkdtempSync(join(tmpdir(), "posline-found-"));
after(() => rmSync(root, { recursive: true }));

class ToldLog implements Log {
  readonly state = "ok";
  readonly dropped = { budget: 0, reader: 0 };
  readonly lines: { readonly level: string; readonly message: string; readonly fields: ProcessFields }[] = [];
  exchange(): void {}
  line(): void {}
  setLevel(): void {}
  flush(): void {}
  process(level: string, message: string, fields: ProcessFields = {}): void {
    this.lines.push({ level, message, fields });
  }
}

const config = { folder: root, bytes: 64 * 1024, onFailure: "relay" } as const;

test("openMoneyJournal() warns of what the process before left, 20 lines at most, and counts the rest and the older", async () => {
  const open = async () => {
    const log = new ToldLog();
    return { log, journal: await openMoneyJournal(config, root, log) };
  };
  const { log, journal } = await open();
  for (let n = 0; n < 23; n++) await journal.begin(callOf(`K${n}`), routeTo()).sent();
  await journal.close();
  assert.deepEqual(log.lines, []);

  const second = await open();
  const [first, ...others] = second.log.lines;
  assert.equal(first?.level, "warn");
  assert.match(first?.message ?? "", /an operation was in progress when posline stopped, and its outcome is unknown/);
  assert.deepEqual(first?.fields, { service: "bank", route: "/sale", requestId: "r-K3", key: "K3", amount: "100" });
  assert.equal(others.length, 20);
  assert.equal(others[18]?.fields.key, "K22");
  assert.deepEqual([others[19]?.level, others[19]?.fields], ["warn", { count: 3 }]);
  assert.match(others[19]?.message ?? "", /^3 more operations have an unknown outcome: sudo posline journal --unknown$/);
  await second.journal.begin(callOf("NEW"), routeTo()).sent();
  await second.journal.close();

  const third = await open();
  assert.deepEqual(
    third.log.lines.map(({ level, fields }) => [level, fields.key ?? fields.count]),
    [
      ["warn", "NEW"],
      ["info", 23],
    ],
  );
  assert.match(
    third.log.lines[1]?.message ?? "",
    /^23 earlier operations have an unknown outcome: sudo posline journal --unknown/,
  );
  await third.journal.close();

  const alone = join(root, "alone");
  mkdirSync(alone);
  for (const key of ["FIRST", "SECOND"]) {
    const one = await openMoneyJournal(config, alone, new ToldLog());
    await one.begin(callOf(key), routeTo()).sent();
    await one.close();
  }
  const last = new ToldLog();
  await (await openMoneyJournal(config, alone, last)).close();
  assert.match(last.lines[1]?.message ?? "", /^1 earlier operation has an unknown outcome: sudo posline journal --unknown/);
});
