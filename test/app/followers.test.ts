import assert from "node:assert/strict";
import { test } from "node:test";
import { Followers } from "../../src/app/followers.ts";
import type { Call, Handler } from "../../src/core/call.ts";
import { Presence } from "../../src/core/presence.ts";
import { approved, replyOf } from "../follow/following.ts";
import { serviceConfigOf } from "../support/service-config.ts";

const served = { service: "bank", config: serviceConfigOf() };

/** A terminal that approves, and notes by whose name it was asked. */
const terminal =
  (name: string, asked: string[]): Handler =>
  async () => {
    asked.push(name);
    return replyOf(approved);
  };

const saleOf = (key: string): Call => ({
  service: "bank",
  contract: "bank",
  route: "/sale",
  body: [Buffer.from(JSON.stringify({ pay_id: key, amount: 1500, currency_name: "EUR" }))],
  requestId: "r-1",
  key,
  caller: new Presence(),
  followMs: 1_000,
});

test("Followers ask as the configuration says that was taken, and never as one says that was refused", async () => {
  const asked: string[] = [];
  const followers = new Followers(undefined);
  const first = followers.prepare(served, terminal("first", asked));
  followers.take();
  await first(saleOf("A-1"));
  followers.prepare(served, terminal("refused", asked));
  followers.drop();
  followers.take();
  await first(saleOf("A-2"));
  const next = followers.prepare(served, terminal("next", asked));
  followers.take();
  await next(saleOf("A-3"));
  assert.deepEqual([...new Set(asked)], ["first", "next"]);
  followers.stop();
});

test("Followers ask by the configuration in force about a call that came before it, and join identical calls across it", async () => {
  const asked: string[] = [];
  const followers = new Followers(undefined);
  const first = followers.prepare(served, terminal("first", asked));
  followers.take();
  const next = followers.prepare(served, terminal("next", asked));
  followers.take();
  await first(saleOf("A-1"));
  await next(saleOf("A-2"));
  assert.deepEqual([...new Set(asked)], ["next"]);
  const { followMs, ...plain } = saleOf("A-3");
  asked.length = 0;
  const replies = await Promise.all([first(plain), next(plain)]);
  assert.deepEqual(
    replies.map(({ isJoined }) => isJoined),
    [undefined, true],
  );
  assert.deepEqual(asked, ["first"]);
  followers.stop();
});
