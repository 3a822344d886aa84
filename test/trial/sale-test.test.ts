import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../src/client/client.ts";
import type { Settled, SettleOptions } from "../../src/client/settle-types.ts";
import { SaleTest } from "../../src/trial/sale-test.ts";
import { assertMapped } from "../support/assert-mapped.ts";

/** Tests src/trial/sale-test.ts with a client that settles as a test says. */

type Ending = Pick<Settled, "result"> & Partial<Settled>;

type Sent = { readonly operation: string; readonly body: Readonly<Record<string, unknown>> };

/** Runs a test sale at a terminal that offers these operations. */
async function tested(offered: readonly string[], endings: Readonly<Record<string, Ending | Error>>) {
  const sent: Sent[] = [];
  let keys = 0;
  const bank = {
    supportedOperations: () => Promise.resolve({ status: "success", data: { operations: offered } }),
    settle: async (operation: string, body: Sent["body"], { onProgress, askOnly }: SettleOptions) => {
      const token = {} as Settled["token"];
      await onProgress?.({ type: "sent", token });
      assert.equal(askOnly?.aborted, false, "it may go out");
      sent.push({ operation, body });
      await onProgress?.({ type: "waiting", token, waitMs: 1 });
      assert.equal(askOnly?.aborted, true, "nothing goes out after its sending");
      const ending = endings[operation];
      if (ending instanceof Error) throw ending;
      return { data: undefined, code: undefined, message: undefined, trans: undefined, steps: [], token, ...ending };
    },
  };
  // The part of a client that a test sale uses.
  const client = { bank, newKey: () => `K-${++keys}` } as unknown as Client;
  const sale = new SaleTest(client, "bank", { amount: 1, currency: "EUR" }, new AbortController().signal);
  await sale.run();
  return { sent, end: sale.end, message: sale.message, steps: sale.steps };
}

const approved: Ending = { result: "approved", data: { status: "APPROVED", rrn: "123" } };
const all = ["sale", "check", "cancel", "refund"];

test("SaleTest gives an approved sale back by /cancel, else by /refund, once, under a key of its own and the sale's rrn", async () => {
  for (const [offered, back] of [
    [all, "cancel"],
    [["sale", "refund"], "refund"],
  ] as const) {
    for (const result of ["approved", "reversed"] as const) {
      const { sent, end } = await tested(offered, { sale: approved, [back]: { result } });
      assert.equal(end, "given-back");
      assert.deepEqual(sent, [
        { operation: "sale", body: { pay_id: "K-1", amount: 1, currency_name: "EUR" } },
        { operation: back, body: { pay_id: "K-2", amount: 1, currency_name: "EUR", rrn: "123" } },
      ]);
    }
  }
});

test("SaleTest gives nothing back of a sale that isn't approved, and says of an unknown one that it is in doubt and what to do", async () => {
  for (const [ending, expected, words] of [
    [{ result: "unknown", message: "No answer" }, "in-doubt", /^No answer\. Look at the terminal/],
    [new Error("a bug"), "in-doubt", /a bug: Look at the terminal/],
    [{ result: "declined", message: "no money" }, "not-approved", /^no money$/],
    [{ result: "reversed" }, "not-approved", undefined],
    [{ result: "not-sent", message: "the line is down" }, "not-sent", /line is down/],
  ] as const) {
    const { sent, end, message } = await tested(all, { sale: ending });
    assert.equal(end, expected);
    if (words === undefined) assert.equal(message, undefined);
    else assert.match(String(message), words);
    assertMapped(sent, ["sale"], ({ operation }) => operation);
  }
});

test("SaleTest says that the money is still the terminal's where it could not be given back, or nobody knows", async () => {
  for (const [offered, sale, back, expected, words] of [
    [["sale"], approved, undefined, "kept", /offers neither cancel nor refund. Give it back at the terminal/],
    [all, { result: "approved", data: { status: "APPROVED" } }, undefined, "kept", /named no rrn/],
    [all, approved, { result: "declined", message: "closed" }, "kept", /^closed\. Give it back at the terminal$/],
    [all, approved, { result: "not-sent", message: "busy" }, "kept", /^busy\. Give it back/],
    [all, approved, { result: "unknown" }, "back-in-doubt", /^Look at the terminal/],
    [all, approved, new Error("a bug"), "back-in-doubt", /a bug: Look at the terminal/],
  ] as const) {
    const { end, message } = await tested(offered, { sale, ...(back && { cancel: back }) } as Record<string, Ending>);
    assert.equal(end, expected);
    assert.match(String(message), words);
  }
});

test("SaleTest sells nothing at a terminal that doesn't offer it", async () => {
  const { sent, end, message } = await tested(["check"], { sale: approved });
  assert.deepEqual([sent, end, message], [[], "not-sent", "The terminal doesn't offer sale"]);
});
