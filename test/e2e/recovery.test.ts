import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import fc from "fast-check";
import { ask, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import type { LogLine } from "../support/posline-process.ts";
import { absent, type RelayProgram } from "../support/relay.ts";
import { type Behaviour, probeReply, questionReply, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { withBridge } from "../support/with-bridge.ts";

/** What a terminal does with a request that is no probe. */
const faults = ["answer", "late", "torn", "corrupt", "never", "noise", "twice", "not json"] as const;
type FaultOf = (typeof faults)[number];

const idIn = (text: string) => /ID-\d+-\d+/.exec(text)?.[0] ?? "none";

/** @param relay What offers the terminal's tty over TCP; undefined: the bridge opens the tty itself. */
async function neverAnothers(relay?: RelayProgram): Promise<void> {
  let schedule: FaultOf[] = [];
  const faulty: Behaviour = async (asked, self) => {
    const probe = probeReply(asked);
    if (probe !== undefined) {
      await self.reply(asked.framing, probe);
      return;
    }
    const text = JSON.stringify({ status: "success", data: { echo: idIn(asked.text), status: "APPROVED" } });
    const frame = self.frame(asked.framing, text);
    const fault = schedule.shift() ?? "answer";
    // The till's time-out is 3.1 s; a terminal works at one request at a time, so probes wait behind a late answer.
    if (fault === "late") await pause(3_300);
    if (fault === "never") return;
    if (fault === "torn") await self.send(frame.subarray(0, frame.length >> 1));
    else if (fault === "corrupt") await self.send(Buffer.from(frame).fill(0x58, 9, 12));
    else if (fault === "not json") await self.reply(asked.framing, "OK");
    else {
      if (fault === "noise") {
        await self.send(Buffer.from("AT+CPIN?\r\n"));
        await pause(200);
      }
      await self.send(frame);
    }
    if (fault === "twice") await self.send(frame);
  };
  const way = relay === undefined ? {} : { relay };
  const impatient = { line: { lateReplyMs: 4_000 }, services: { bank: { replyTimeoutMs: 3_100 } }, ...way };
  let run = 0;
  await withBridge(impatient, faulty, async ({ bridge, terminal }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...faults), { minLength: 3, maxLength: 6 }), async (drawn) => {
        schedule = [...drawn];
        run++;
        for (const [n, fault] of drawn.entries()) {
          const id = `ID-${run}-${n}`;
          const answer = await bridge.post("bank", "/sale", JSON.stringify({ pay_id: id, amount: 1, currency_name: "EUR" }));
          const outcome = answer.headers["x-posline-outcome"];
          if (outcome === "answered") assert.equal(idIn(answer.text), id, `after ${drawn.slice(0, n + 1)}`);
          const good = fault === "answer" || fault === "noise" || fault === "twice";
          assert.equal(outcome, good ? "answered" : "unknown", `${fault}: ${answer.text}`);
          if (!good)
            assert.match(answer.text, /Outcome unknown, it may have been carried out: call \/check with the same pay_id/);
        }
      }),
      { numRuns: relay === undefined ? 4 : 2, seed: 20_261_120, endOnFailure: true },
    );
    // Usable again as soon as the probe is answered: no till has to wait for a silence.
    const last = await bridge.post("bank", "/check", '{"pay_id":"ID-0-0"}');
    assert.equal(last.headers["x-posline-outcome"], "answered");
    assert.equal(terminal.inFlightMax <= 2, true, "a probe may follow a call that timed out, and nothing else may");
  });
}

test("bridge never gives a call another call's answer, whatever came late, torn or corrupt before", () => neverAnothers());

for (const relay of ["ser2net", "socat"] as const) {
  test(
    `bridge never gives a call another call's answer over ${relay}, whatever came late, torn or corrupt before`,
    { skip: absent(relay) },
    () => neverAnothers(relay),
  );
}

test("bridge that was killed while a sale was out waits for that one's answer after its restart, also where it asks nothing", async (t) => {
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), () => {});
  const line = { path: terminal.link, recovery: "quiet", lateReplyMs: 4_000, queueWaitMs: 6_000 };
  const config = {
    lines: { till: line },
    services: { bank: { line: "till", replyTimeoutMs: 10_000 } },
    journal: { folder: folder.path },
  };
  t.after(() => terminal.unplug());
  const killed = await startedBridge(config);
  const sale = killed.post("bank", "/sale", '{"pay_id":"A","amount":1,"currency_name":"EUR"}').catch(() => {});
  await until(() => terminal.calls.length === 1, "the sale on the line");
  await killed.stop("SIGKILL");
  await sale;
  const next = await startedBridge(config, { lineState: "recovering" });
  t.after(() => next.stop("SIGKILL"));
  const check = await next.post("bank", "/check", '{"pay_id":"B"}');
  assert.deepEqual([check.status, check.headers["x-posline-reason"]], [503, "recovering"]);
  assert.equal(terminal.calls.length, 1, "nothing was sent whose answer could be that of the sale");
});

test("the log, /readyz and the refusal say why an unknown is followed by refusals, and how long yet, where the second question has no answer", async (t) => {
  const halfDeaf: Behaviour = async (asked, self) => {
    const answer = questionReply(asked, "ignored");
    if (answer !== undefined) await self.reply(asked.framing, answer);
  };
  const words =
    /bank answers posline's second question like the first or not at all, so a late answer of bank is waited for ([1-4]) s more/;
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), halfDeaf);
  const lines = { till: { path: terminal.link, lateReplyMs: 4_000, queueWaitMs: 1_000 } };
  const services = { bank: { line: "till", replyTimeoutMs: 3_100 } };
  const config = { lines, services, admin: {} };
  const bridge = await startedBridge(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  t.after(() => bridge.stop());
  t.after(() => terminal.unplug());
  const admin = await bridge.port("admin");
  const sold = await bridge.post("bank", "/sale", JSON.stringify({ pay_id: "A", amount: 1, currency_name: "EUR" }));
  assert.equal(sold.headers["x-posline-outcome"], "unknown");
  const after = bridge.log.length;
  const said = ({ state, reason }: LogLine) => state === "recovering" && words.test(String(reason));
  await bridge.logged(said, "the log to say it", after);
  assert.match((await ask(admin, "GET", "/readyz", "")).text, words);
  const refused = await bridge.post("bank", "/terminals", "");
  assert.equal(refused.status, 503);
  assert.match(refused.text, words);
  await bridge.state("till", "idle", after);
  assert.equal(bridge.log.slice(after).filter(said).length, 1);
});
