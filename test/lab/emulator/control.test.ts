import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, ContractName } from "../../../src/core/call.ts";
import { Presence } from "../../../src/core/presence.ts";
import { ControlApi, type ControlResponse } from "../../../src/lab/emulator/control.ts";
import { Emulator, type EmulatorOptions } from "../../../src/lab/emulator/emulator.ts";
import { forcedEffectsMax } from "../../../src/lab/emulator/faults/fault-plan.ts";
import { magicAmounts } from "../../../src/lab/emulator/faults/magic-amounts.ts";

const clock = () => new Date(2024, 4, 6, 7, 8, 9);

function controlled(options: EmulatorOptions = {}) {
  let changes = 0;
  const emulator = new Emulator({ clock, ...options });
  const control = new ControlApi(emulator, { plainAmounts: options.plainAmounts === true, changed: () => changes++ });
  return {
    emulator,
    control,
    changes: () => changes,
    view: () => shown(control.view()),
    post: (body: unknown) => control.change(typeof body === "string" ? body : JSON.stringify(body)),
  };
}

function shown({ status, text }: ControlResponse): Record<string, unknown> {
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

function refused({ status, text }: ControlResponse): string {
  assert.equal(status, 400);
  const { error } = JSON.parse(text);
  assert.match(error, /^Cannot accept the request, nothing was changed: /);
  return error.replace(/^[^:]*: /, "");
}

function callOf(contract: ContractName, route: string, body: string, service: string = contract): Call {
  return { service, contract, route, body: [Buffer.from(body)], requestId: "r1", key: undefined, caller: new Presence() };
}

/** Sells by card, and gives the result that /check then has, with what befell the sale's answer. */
function sell(emulator: Emulator, payId: string, amount = 1500, service = "bank") {
  const sale = JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });
  const { fault } = emulator.answer(callOf("bank", "/sale", sale, service));
  const check = callOf("bank", "/check", JSON.stringify({ pay_id: payId }), service);
  // The first question finds it in progress.
  emulator.answer(check);
  const { reply } = emulator.answer(check);
  return { fault, result: Buffer.concat(reply.payload).toString() };
}

test("ControlApi.view() shows what each service remembers, the time, and the magic amounts", () => {
  const { emulator, view } = controlled();
  sell(emulator, "P-1");
  const all = view();
  assert.deepEqual(Object.keys(all), ["now", "fiscal", "bank", "qr", "forced", "chances", "endings"]);
  assert.equal(all["now"], clock().toISOString());
  assert.match(JSON.stringify(all["bank"]), /"P-1"/);
  const shownEndings = all["endings"] as Record<string, string>;
  assert.equal(Object.keys(shownEndings).length, magicAmounts.length);
  assert.deepEqual(
    ["03", "20", "31", "32", "44"].map((digits) => shownEndings[digits]),
    ["in-doubt", "declined", "no-answer", "late:5000", "slow:3"],
  );
  assert.deepEqual(controlled({ plainAmounts: true }).view()["endings"], {});
});

test("ControlApi.change() forces an outcome upon the next operation of that route alone", () => {
  const { emulator, post, view } = controlled();
  const answer = shown(post({ next: { service: "bank", route: "/sale", outcome: "declined" } }));
  assert.deepEqual(answer["forced"], [{ service: "bank", route: "/sale", outcome: "declined" }]);
  assert.match(sell(emulator, "P-1").result, /"ERROR"/);
  assert.match(sell(emulator, "P-2").result, /"APPROVED"/);
  assert.deepEqual(view()["forced"], []);
});

test("ControlApi shows a service of a name of its own, and forces its outcomes and no other's", () => {
  const { emulator, post, view } = controlled();
  emulator.play("bank-2", { contract: "bank" });
  assert.deepEqual(Object.keys(view()).slice(0, 5), ["now", "fiscal", "bank", "qr", "bank-2"]);
  assert.match(
    refused(post({ next: { service: "bank-3", fault: "noise" } })),
    /must be "fiscal", "bank", "qr" or "bank-2", not/,
  );
  assert.match(refused(post({ next: { service: "bank-2", outcome: "not-printed" } })), /bank-2 has no outcome "not-printed"/);
  post({ next: { service: "bank-2", route: "/sale", outcome: "declined" } });
  assert.match(sell(emulator, "P-1").result, /"APPROVED"/);
  assert.match(sell(emulator, "P-1", 1500, "bank-2").result, /"ERROR"/);
});

test("ControlApi.change() forces faults and slow operations, several in order", () => {
  const { emulator, post } = controlled();
  const next = [
    { service: "bank", fault: "late:7000" },
    { service: "bank", route: "/sale", fault: "corrupt" },
    { service: "bank", route: "/sale", outcome: "slow:2" },
  ];
  assert.deepEqual(shown(post({ next }))["forced"], next);
  assert.deepEqual(sell(emulator, "P-1").fault, { kind: "late", ms: 7000 });
  assert.deepEqual(sell(emulator, "P-2").fault, { kind: "corrupt" });
});

test("ControlApi.change() moves the emulator's time on, and tells that there is something to keep", () => {
  const { post, changes } = controlled();
  assert.equal(shown(post({ advanceMs: 90_000_000 }))["now"], new Date(clock().getTime() + 90_000_000).toISOString());
  assert.equal(shown(post({ advanceMs: 1 }))["now"], new Date(clock().getTime() + 90_000_001).toISOString());
  assert.equal(changes(), 2);
});

test("ControlApi.change() resets first, and then does the rest", () => {
  const { emulator, post } = controlled({ chances: [{ fault: { kind: "noise" }, share: 0.25 }] });
  sell(emulator, "P-1");
  post({ chances: { corrupt: 1 }, next: { service: "qr", outcome: "declined" }, advanceMs: 60_000 });
  const answer = shown(post({ reset: true, next: { service: "qr", fault: "noise" } }));
  assert.deepEqual(answer["forced"], [{ service: "qr", fault: "noise" }]);
  assert.deepEqual(answer["chances"], { noise: 0.25 });
  assert.equal(answer["now"], clock().toISOString());
  assert.doesNotMatch(JSON.stringify(answer["bank"]), /P-1/);
});

const wrong: readonly (readonly [unknown, RegExp])[] = [
  ["", /^line 1, column 1: the text ends where a value belongs$/],
  ["{'a':1}", /JSON has no single quotes/],
  ["[]", /^the body must be a JSON object: its keys are reset, advanceMs, next, chances$/],
  [{}, /^the request is empty: use one of reset, advanceMs, next, chances$/],
  [{ rest: true }, /^rest: unknown key: did you mean reset\?$/],
  [{ reset: "yes" }, /^reset: must be true or false, not the text "yes"$/],
  [{ advanceMs: -1 }, /^advanceMs: must be from 0 to \d+, not -1$/],
  [{ advanceMs: 1.5 }, /^advanceMs: must be a whole number, not 1\.5$/],
  [{ advanceMs: 1e18 }, /^advanceMs: /],
  [{ next: 7 }, /^next: must be an object or a list, not 7$/],
  [{ next: {} }, /^next\.service: missing: name the service/],
  [{ next: { service: "bnk", fault: "noise" } }, /^next\.service: must be "fiscal", "bank" or "qr", not "bnk"$/],
  [{ next: { service: "bank" } }, /^next: must have either outcome or fault$/],
  [{ next: { service: "bank", fault: "noise", outcome: "declined" } }, /^next: must have either outcome or fault$/],
  [
    { next: { service: "bank", route: "/sell", fault: "noise" } },
    /^next\.route: bank has no route "\/sell": use one of .*\/sale/,
  ],
  [
    { next: { service: "bank", outcome: "decline" } },
    /^next\.outcome: bank has no outcome "decline": use one of .*declined, .*slow:1 to slow:99$/,
  ],
  [{ next: { service: "bank", outcome: "not-printed" } }, /^next\.outcome: bank has no outcome "not-printed": use one of /],
  [{ next: { service: "bank", outcome: "slow:0" } }, /^next\.outcome: bank has no outcome "slow:0": use one of /],
  [
    { next: { service: "bank", route: "/check", outcome: "declined" } },
    /^next\.outcome: \/check begins no operation: use fault, or one of \/sale, .*\/close-shift$/,
  ],
  [
    { next: { service: "fiscal", route: "/check_status", outcome: "slow:3" } },
    /^next\.outcome: \/check_status begins no operation: use fault, or one of \/sale, \/refund, \/deposit, \/withdraw$/,
  ],
  [{ next: { service: "bank", fault: "explode" } }, /^next\.fault: .*no-answer, late/],
  [{ next: { service: "bank", fault: "late:soon" } }, /^next\.fault: /],
  [
    {
      next: [
        { service: "bank", fault: "noise" },
        { service: "qr", fault: "x" },
      ],
    },
    /^next\[1\]\.fault: /,
  ],
  [{ chances: { corrupt: 2 } }, /^chances\.corrupt: must be from 0 to 1, not 2$/],
  [{ chances: { corrupt: "often" } }, /^chances\."corrupt": must be a number from 0 to 1$/],
  [{ chances: { corrupt: 0.6, noise: 0.6 } }, /^chances: the shares add up to more than 1$/],
  [{ chances: { explode: 0.1 } }, /^chances\."explode": .*no-answer/],
  [
    { next: Array(forcedEffectsMax + 1).fill({ service: "qr", fault: "noise" }) },
    /^next: has 1025 entries, and at most 1024 are allowed$/,
  ],
];

for (const [body, message] of wrong) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  test(`ControlApi.change() refuses ${text.slice(0, 80) || "nothing"} and does nothing of it`, () => {
    const { emulator, view, post } = controlled();
    sell(emulator, "P-1");
    const before = view();
    // Whatever is right beside it isn't done either.
    const mixed = typeof body === "object" && !Array.isArray(body) && Object.keys(body ?? {}).length > 0;
    const asked = mixed
      ? { reset: true, advanceMs: 5, chances: { noise: 1 }, next: { service: "qr", fault: "noise" }, ...body }
      : body;
    assert.match(refused(post(asked)), message);
    assert.deepEqual(view(), before);
  });
}

test("ControlApi.change() takes an outcome for each route that begins an operation", () => {
  for (const [service, route] of [
    ["fiscal", "/withdraw"],
    ["bank", "/close-shift"],
    ["qr", "/final_confirm"],
  ]) {
    const next = { service, route, outcome: "in-doubt" };
    assert.deepEqual(shown(controlled().post({ next }))["forced"], [next]);
  }
});

test("ControlApi.change() tells every problem at once", () => {
  const { post } = controlled();
  assert.match(
    refused(post({ reset: 1, advanceMs: "x", next: { service: "no" } })),
    /^reset: .*; advanceMs: .*; next\.service: /,
  );
});

test("ControlApi.change() takes no more effects than may wait, over several requests", () => {
  const { post } = controlled();
  shown(post({ next: Array(forcedEffectsMax).fill({ service: "qr", fault: "noise" }) }));
  assert.match(
    refused(post({ next: { service: "qr", fault: "noise" } })),
    /^next: 1024 effects are pending already, and 1024 is the limit/,
  );
  shown(post({ reset: true, next: { service: "qr", fault: "noise" } }));
});

test("ControlApi.change() keeps the emulator's time within the calendar", () => {
  const { post } = controlled();
  const most = 1_000 * 365 * 86_400_000;
  shown(post({ advanceMs: most }));
  shown(post({ reset: true, advanceMs: most }));
  assert.match(refused(post({ advanceMs: 1 })), /^advanceMs: the emulator's time would leave the calendar$/);
});
