import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { settlingRules } from "../../src/contract/settling.ts";
import { contractNames } from "../../src/core/call.ts";
import { methodName } from "../../src/settle/remote-service.ts";
import type { Settled } from "../../src/settle/types.ts";
import { type Fate, type Model, modelOf } from "./model.ts";
import { bodyOf, reply, TestClock } from "./scripted.ts";
import { Fateful, follow, gatewaysWord, schedule, scheduleWithDelays } from "./tills.ts";

/**
 * Tests src/settle/judge.ts, src/contract/settling.ts.
 *
 * How many schedules each law is held against for each operation; a campaign sets more.
 */
const runs = Number(process.env["SETTLE_RUNS"] ?? 250);

const fate: fc.Arbitrary<Fate> = fc.record({
  end: fc.constantFrom("good", "good", "bad", "reversed"),
  checks: fc.nat(3),
  start: fc.constantFrom("true", "true", "in-doubt", "fails-once", "refused", "plain"),
  tells: fc.constantFrom("each", "each", "first", "none"),
  opens: fc.boolean(),
  unprinted: fc.boolean(),
});

const bodies = {
  fiscal: { documentExtID: "ORDER-1", items: [{ itemAmount: 100 }], amount: 100 },
  bank: { pay_id: "P-1", amount: 100, currency_name: "AZN", rrn: "1" },
  qr: { pay_id: "P-1", amount: 100, currency: "944", currency_name: "AZN", pay_system: "A", trans: "T-1", rrn: "1" },
} as const;

const good: readonly Settled["result"][] = ["approved", "closed", "unprinted"];

/** That what was told is what happened; "unknown" is always true. */
function holds(result: Settled["result"], model: Model, { end }: Fate): void {
  assert.ok(model.effects <= 1, `carried out ${model.effects} times`);
  assert.ok(model.prints <= 1, `printed ${model.prints} times`);
  if (result === "unknown") return;
  if (good.includes(result)) assert.equal(model.effects, 1, `${result}, and nothing happened`);
  else assert.equal(model.effects, 0, `${result}, and it happened`);
  if (result === "reversed") assert.equal(end, "reversed");
  if (result === "unprinted") assert.ok(model.prints <= 1);
}

for (const service of contractNames) {
  for (const { route, baseline, ownKey } of settlingRules[service]) {
    test(`settle() of ${service} ${route} is carried out once at most and tells what happened or "unknown"`, async () => {
      let known = 0;
      const schedules = service === "fiscal" ? schedule : scheduleWithDelays;
      const lostBy = fc.constantFrom(undefined, gatewaysWord);
      const property = fc.asyncProperty(fate, schedules, fc.boolean(), lostBy, async (given, mishaps, original, whenLost) => {
        // An original under the same key is only there for what refers to one; what came late can't be held against it
        const model = modelOf(service, route, given, baseline !== undefined && original);
        const clock = new TestClock();
        const transport = new Fateful(
          (request) => reply(model.answer(request.route, bodyOf(request))),
          mishaps,
          clock,
          whenLost,
        );
        const { trans, ...others } = { trans: undefined, ...bodies[service] };
        const body = ownKey ? others : { ...others, trans };
        const operation = methodName(route);
        const { result, trans: told } = await follow({ transport, clock, service, operation, body });
        // A payment that was paid can be given back. Where the service makes none, what the till named it by is right
        const own = given.tells === "none" ? "P-1" : "T-1";
        const isNamed = service === "qr" && ownKey;
        if (told !== undefined || (isNamed && result === "approved")) assert.equal(told, isNamed ? own : undefined);
        transport.arrive(Number.POSITIVE_INFINITY);
        holds(result, model, given);
        const sent = new Set(transport.requests.filter((request) => request.route === route).map((request) => request.body));
        assert.ok(sent.size <= 1, "another request was sent under the same operation");
        if (result !== "unknown") known++;
      });
      await fc.assert(property, { numRuns: runs });
      // A client that always said "unknown" would hold the law as well
      assert.ok(known > runs * (ownKey ? 0.5 : 0.1), `only ${known} of ${runs} were settled`);
    });
  }
}

test("settle() comes to the true end of every operation when nothing goes wrong on the way", async () => {
  for (const service of contractNames) {
    for (const { route, refused, ownKey } of settlingRules[service]) {
      for (const end of ["good", "bad"] as const) {
        const given: Fate = { end, checks: 1, start: "true", tells: "each", opens: false, unprinted: false };
        const model = modelOf(service, route, given, false);
        const transport = new Fateful((request) => reply(model.answer(request.route, bodyOf(request))), []);
        const operation = methodName(route);
        const { result } = await follow({ transport, clock: new TestClock(), service, operation, body: bodies[service] });
        const approved = service === "fiscal" ? "closed" : "approved";
        // An error answered to what can't be asked about proves nothing (qr.md, flow rule 3)
        const bad = ownKey ? refused : "unknown";
        assert.equal(result, end === "good" ? approved : bad, `${service} ${route}`);
      }
    }
  }
});
