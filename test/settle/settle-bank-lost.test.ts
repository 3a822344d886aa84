import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, absentBefore, absentTo30s, approved, settled } from "./bank-settling.ts";
import { busy, error, lost, ok, repeat, reply, type Script, scriptOf } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

const words = { ok: ok(), approved, lost, busy };

for (const [what, operation, script, expected] of [
  ["a lost start that runs (rule 3)", "sale", "sale lost, check ok, check approved", "approved"],
  [
    "a refusal of a resent start: the first may have arrived",
    "sale",
    "sale lost, check -15, sale -29, check approved",
    "approved",
  ],
  ["a resending that isn't let through any more", "sale", "sale lost, check -15, sale busy x9", "unknown"],
  ["a plain refusal of a resent start, 30 s later", "sale", "sale lost, check -15, sale -20, check -15 x32", "declined"],
  ["-15 to a resent start, which isn't sent again", "sale", "sale lost, check -15, sale -15, check -15 x32", "declined"],
  [
    '"not found" in a row, which another answer begins anew',
    "confirm",
    "check -15 x3, confirm lost, check -15 x28, check -3, check -15 x3",
    "declined",
  ],
] as const) {
  test(`bank.settle after ${what}: ${expected}`, async () => {
    const { result, done } = await settled(operation, scriptOf(script, words), 60_000);
    assert.equal(result, expected);
    done();
  });
}

for (const operation of ["sale", "preauth", "xreport", "closeShift"] as const) {
  const route = operation === "closeShift" ? "/close-shift" : `/${operation}`;
  test(`bank.settle resends ${route} with the same pay_id when /check knows nothing of it (rule 4)`, async () => {
    const { result, service, done } = await settled(operation, [
      [route, lost],
      ["/check", absent],
      [route, ok()],
      ["/check", approved],
    ]);
    assert.equal(result, "approved");
    assert.equal(service.bodies[0], service.bodies[2]);
    done();
  });
}

test("bank.settle resends three times at most, then only asks, and says declined 30 s after the last: none arrived", async () => {
  const sent: Script = [["/sale", lost], ...repeat(3, ["/check", absent], ["/sale", lost])];
  const { result, done } = await settled("sale", [...sent, ...absentTo30s], 60_000);
  assert.equal(result, "declined");
  done();
  const sooner = await settled("sale", [...sent, ...repeat(17, ["/check", absent])]);
  assert.equal(sooner.result, "unknown");
  sooner.done();
});

for (const operation of ["sale", "preauth", "refund", "confirm", "cancel"] as const) {
  test(`bank: after an error that leaves ${operation} open nothing is resent, and -15 must come three times in a row`, async () => {
    const before: Script = ["sale", "preauth"].includes(operation) ? [] : absentBefore;
    const script: Script = [
      ...before,
      [`/${operation}`, error(-3)],
      ...repeat(28, ["/check", absent]),
      ["/check", error(-3)],
      ...repeat(3, ["/check", absent]),
    ];
    const { result, done } = await settled(operation, script, 60_000);
    assert.equal(result, "declined");
    done();
  });
}

for (const operation of ["sale", "preauth", "refund", "confirm", "cancel"] as const) {
  for (const code of [-20, -21, -54]) {
    test(`bank.settle says declined a second after ${code} answered to ${operation}, where /check knows nothing of it`, async () => {
      const before: Script = ["sale", "preauth"].includes(operation) ? [] : absentBefore;
      const script: Script = [...before, [`/${operation}`, error(code)], ["/check", absent]];
      const { result, code: said, clock, done } = await settled(operation, script);
      assert.deepEqual([result, said, clock.ms - before.length * 1_000], ["declined", code, before.length > 0 ? 0 : 1_000]);
      done();
    });
  }
}

test("bank.settle believes -15 only 30 s after a refusal that the contract doesn't list, or that a gateway may have made", async () => {
  for (const refusal of [error(-3), error(-999), error(504), reply({ status: "error", message: "gateway timeout" })]) {
    const { result, clock, done } = await settled("sale", [["/sale", refusal], ...absentTo30s], 60_000);
    assert.equal(result, "declined");
    assert.ok(clock.ms >= 30_000);
    done();
  }
});
