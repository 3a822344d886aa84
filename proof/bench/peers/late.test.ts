import assert from "node:assert/strict";
import { test } from "node:test";
import { experiment } from "./late.ts";
import { type Peer, peers } from "./peer.ts";

/** The late-answer experiment must see what it looks for: a bridge that gives answers away, and one that doesn't. */

const peer = (name: string): Peer => {
  const found = peers.find((one) => one.name === name);
  assert.ok(found !== undefined, name);
  return found;
};

test("experiment() counts the calls that a naive bridge gives another call's answer, and the sales that its retries run twice", async () => {
  const { sales, wrong, twice, carriedOut } = await experiment(peer("node-red"), "http-retry", 100);
  assert.equal(sales, 100);
  assert.ok(wrong > 0, "the late answer went to a call that it wasn't for");
  assert.ok(twice >= 1, "the retry ran the sale again");
  assert.ok(carriedOut >= 100 + twice, `${carriedOut} were carried out`);
});

test("experiment() finds posline giving every call its own answer, with each sale carried out once", async () => {
  for (const way of peer("posline").lateWays) {
    const { sales, wrong, twice, unanswered, carriedOut } = await experiment(peer("posline"), way, 100);
    assert.deepEqual(
      { sales, wrong, twice, unanswered, carriedOut },
      { sales: 100, wrong: 0, twice: 0, unanswered: 0, carriedOut: 100 },
    );
  }
});
