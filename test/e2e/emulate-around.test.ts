import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { ask } from "../support/bridge-process.ts";
import { endAll, fiscalForm, folder, posline, post, receipt, resultOf, saleOf } from "./emulating.ts";

/** What is around the emulator, as its users meet it: its state file, its control API, its flags, and `serve --emulated`. */

after(endAll);

const viewOf = async (port: number) => JSON.parse((await ask(port, "GET", "/emulator", "")).text);
const followed = (port: number, sale: string) => ask(port, "POST", "/sale", sale, { Prefer: "wait=60" });

test("posline emulate --state keeps documents and operations over a restart, killed or not", async () => {
  const state = join(folder.path, "kept.json");
  const first = posline(["emulate", "--state", state]);
  const issued = await post(await first.port("fiscal"), "/sale", fiscalForm(receipt("R-1")));
  await post(await first.port("bank"), "/sale", saleOf("P-1"));
  const { documentID } = JSON.parse(issued.text);
  assert.equal((await post(await first.port("admin"), "/emulator", '{"advanceMs":3600000}')).status, 200);
  // It was on disk before the answer left.
  await first.ended("SIGKILL");
  const second = posline(["emulate", "--state", state]);
  const found = await post(await second.port("fiscal"), "/check_status", fiscalForm({ documentExtID: "R-1" }));
  assert.equal(JSON.parse(found.text).documentID, documentID);
  assert.match(await resultOf(await second.port("bank"), "P-1"), /"APPROVED"/);
  const { now } = await viewOf(await second.port("admin"));
  assert.ok(Date.parse(now) > Date.now() + 3_000_000, now);
  assert.equal(await second.ended("SIGTERM"), 0);
});

test("posline emulate refuses a damaged state file with 78, tells path and reason, and leaves it as it is", async () => {
  const state = join(folder.path, "damaged.json");
  for (const text of ["not a state\n", '{"version":1,"aheadMs":0,"services":{"fiscal":{},"bank":{"operations":7},"qr":{}}}']) {
    writeFileSync(state, text);
    for (const args of [["emulate"], ["serve", "--emulated"]]) {
      const refused = posline([...args, "--state", state]);
      assert.equal(await refused.ended(), 78);
      assert.match(
        refused.stderr,
        new RegExp(`^Cannot use the state file ${state}: .*: move it away to start with an empty state`, "m"),
      );
      assert.equal(readFileSync(state, "utf8"), text);
    }
  }
  const nowhere = posline(["emulate", "--state", join(folder.path, "none", "state.json")]);
  assert.equal(await nowhere.ended(), 78);
  assert.match(nowhere.stderr, /^Cannot write the state file .*: there is no such folder: create it, or name another$/m);
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name.startsWith("damaged.json")),
    ["damaged.json", "damaged.json.journal"],
  );
});

test("serve --emulated without a configuration keeps a journal in a temporary folder, which is gone at the end", async () => {
  const bridge = posline(["serve", "--emulated"], { TMPDIR: folder.path });
  const bank = await bridge.port("bank");
  const [, kept = ""] = await bridge.until(
    () => / {2}journal {2}(\S+), which is/.exec(bridge.stderr) ?? undefined,
    "a greeting",
  );
  assert.equal(dirname(kept), folder.path);
  assert.ok(readdirSync(kept).includes("journal"));
  const sold = await followed(bank, saleOf("J-1"));
  assert.equal(sold.headers["x-posline-result"], "approved");
  assert.equal(sold.headers["x-posline-repeat-guard"], undefined);
  assert.equal((await followed(bank, saleOf("J-1", 1600))).status, 422, "the key is known");
  const from = bridge.log.length;
  bridge.child.kill("SIGHUP");
  await bridge.logged((line) => line["msg"] === "the configuration was reloaded", "a reload", from);
  assert.equal(await bridge.ended("SIGTERM"), 0);
  assert.equal(existsSync(kept), false);
});

test("serve --emulated --state keeps its journal too: after kill -9 the same call only asks", async () => {
  const state = join(folder.path, "kept.json");
  const bridge = posline(["serve", "--emulated", "--state", state]);
  const bank = await bridge.port("bank");
  const sold = await post(bank, "/sale", saleOf("K-1"));
  assert.equal(sold.status, 200);
  await bridge.ended("SIGKILL");
  const again = posline(["serve", "--emulated", "--state", state]);
  const answer = await followed(await again.port("bank"), saleOf("K-1"));
  assert.deepEqual([answer.headers["x-posline-result"], answer.headers["x-posline-repeat-guard"]], ["approved", undefined]);
  const sent = again.log.filter((line) => line["route"] === "/sale" && line["outcome"] !== undefined);
  assert.deepEqual(sent, [], "it wasn't sent again");
  assert.equal(await again.ended("SIGTERM"), 0);
});

test("posline emulate ends with 69 when a port it was told is taken, and leaves nothing running", async () => {
  const first = posline(["emulate", "--service", "bank"]);
  const bank = String(await first.port("bank"));
  const second = posline(["emulate", "--service", "bank"], { POSLINE_BANK_PORT: bank });
  assert.equal(await second.ended(), 69);
  assert.match(second.stderr, new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${bank}: another process has it`, "m"));
  const admin = String(await first.port("admin"));
  const third = posline(["emulate", "--service", "qr", "--admin-port", admin]);
  assert.equal(await third.ended(), 69);
  await first.ended("SIGTERM");
});
