import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, absentBefore, absentTo30s, approved, settled } from "./bank-settling.ts";
import { busy, error, lost, ok, repeat, reply, type Script } from "./scripted.ts";

/** Tests src/settle/machine.ts. */

test("bank.settle asks first after a lost start, and polls when it runs (rule 3)", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", lost],
    ["/check", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

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

test("bank.settle doesn't believe a refusal of a resent start: the first may have arrived", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", lost],
    ["/check", absent],
    ["/sale", error(-29)],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

test("bank.settle says unknown when a resending after a lost start isn't let through any more", async () => {
  const { result, done } = await settled("sale", [["/sale", lost], ["/check", absent], ...repeat(5, ["/sale", busy])]);
  assert.equal(result, "unknown");
  done();
});

test('bank.settle counts "not found" in a row: another answer between begins anew', async () => {
  const { result, done } = await settled(
    "confirm",
    [
      ...absentBefore,
      ["/confirm", lost],
      ...repeat(28, ["/check", absent]),
      ["/check", error(-3)],
      ...repeat(3, ["/check", absent]),
    ],
    60_000,
  );
  assert.equal(result, "declined");
  done();
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
    const { result, token, done } = await settled(operation, script, 60_000);
    assert.deepEqual([result, token.known.doubt], ["declined", true]);
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

test("bank.settle believes -15 only 30 s after a plain refusal where a start before it was lost", async () => {
  const script: Script = [["/sale", lost], ["/check", absent], ["/sale", error(-20)], ...absentTo30s];
  const { result, done } = await settled("sale", script, 60_000);
  assert.equal(result, "declined");
  done();
});

test("bank: -15 answered to a resent start is no reason to send it again", async () => {
  const { result, done } = await settled(
    "sale",
    [["/sale", lost], ["/check", absent], ["/sale", absent], ...absentTo30s],
    60_000,
  );
  assert.equal(result, "declined");
  done();
});
