import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { idleProbeMsMin } from "../../src/config/limits.ts";
import { strayed, strays } from "../support/stray-bytes.ts";
import { type Behaviour, probeReply } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";

/** What lines bring beside their terminals' answers, over a real tty: stray bytes around them, and what was sent itself. */

const idIn = (text: string) => /ID-\w+/.exec(text)?.[0] ?? "none";
const answerOf = (text: string) => JSON.stringify({ status: "success", data: { id: idIn(text), status: "APPROVED" } });

/** Route and body of a call. */
const callOf = {
  bank: (id: string): readonly [string, object] => ["/sale", { pay_id: id, amount: 1, currency_name: "EUR" }],
  qr: (id: string): readonly [string, object] => [
    "/showqrcode",
    { pay_id: id, amount: 1, currency: "980", currency_name: "UAH", pay_system: "PALM" },
  ],
};

for (const service of ["bank", "qr"] as const) {
  test(`bridge gives each call to ${service} its own answer, with stray bytes of each kind around those and its own questions`, async () => {
    // Zeros behind an answer may begin a frame, which is waited for: with those the line is asked only once it is ready.
    const slow = new Set(strays.filter(({ behind }) => behind.includes(0)));
    let stray = strays[0];
    const among: Behaviour = async ({ framing, text, number }, terminal) => {
      const probe = probeReply({ framing, text, number });
      const kind = probe === undefined ? stray : strays.filter((each) => !slow.has(each))[number % (strays.length - slow.size)];
      if (kind === undefined) return;
      for (const [bytes, ms] of strayed(terminal.frame(framing, probe ?? answerOf(text)), kind)) {
        await terminal.send(bytes);
        if (ms > 0) await pause(ms);
      }
    };
    await withBridge({ line: { idleProbeMs: 0 }, services: { [service]: {} } }, among, async ({ bridge }) => {
      for (const [n, kind] of strays.entries()) {
        stray = kind;
        const [route, body] = callOf[service](`ID-${n}`);
        const { status, text } = await bridge.post(service, route, JSON.stringify(body));
        assert.deepEqual([status, idIn(text)], [200, `ID-${n}`], `${kind.name}: ${text}`);
      }
      assert.equal(bridge.log.filter(({ state }) => state === "recovering").length, 1, "in step all the time");
    });
  });
}

test("bridge gives each call its answer over a line that gives back what is sent, and says once that it echoes", async () => {
  const hearsItself: Behaviour = async ({ framing, text, number }, terminal) => {
    await terminal.reply(framing, text);
    await terminal.reply(framing, probeReply({ framing, text, number }) ?? answerOf(text));
  };
  const config = { line: { idleProbeMs: idleProbeMsMin }, services: { bank: {}, qr: {} } };
  await withBridge(config, hearsItself, async ({ bridge }) => {
    for (let n = 0; n < 20; n++) {
      const service = n % 2 === 0 ? "bank" : "qr";
      const [route, body] = callOf[service](`ID-${n}`);
      const { status, text } = await bridge.post(service, route, JSON.stringify(body));
      assert.deepEqual([status, idIn(text)], [200, `ID-${n}`], text);
    }
    await pause(idleProbeMsMin + 1_000);
    const said = bridge.log.filter(({ msg }) => msg === "the line echoes");
    assert.equal(said.length, 1);
    assert.match(String(said[0]?.["reason"]), /^what is sent comes back, and is ignored: .*RS-485/);
    assert.deepEqual(
      bridge.log.filter(({ msg }) => /discarded|does not answer/.test(String(msg))),
      [],
    );
    assert.equal(bridge.log.filter(({ state }) => state === "recovering").length, 1);
  });
});
