import assert from "node:assert/strict";
import { test } from "node:test";
import { RehearsalPort } from "../../../src/lab/rehearse/port.ts";
import { ask, Client } from "../../http/served.ts";

test("RehearsalPort takes a till's word, and what a person says of the screen, from this machine's own names alone", async (t) => {
  const rehearsal = new RehearsalPort(assert.ifError);
  await rehearsal.listen();
  t.after(() => rehearsal.close());
  const port = Number(new URL(rehearsal.url).port);
  const said = rehearsal.ask("Sell", "now");
  const { pathname, search } = new URL(rehearsal.wordUrl("A-1"));
  for (const headers of [{ Host: "evil.example" }, { Origin: "https://evil.example" }, { "Sec-Fetch-Site": "cross-site" }]) {
    const { status } = await ask(port, "POST", pathname + search, "approved", { Host: `localhost:${port}`, ...headers });
    assert.equal(status, "Host" in headers ? 421 : 403);
  }
  const forged = `POST http://box.example/said HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\napproved`;
  assert.equal((await new Client(port).write(forged).answer())?.status, 400);
  assert.equal(rehearsal.takeWord("A-1"), undefined);
  assert.equal((await ask(port, "POST", pathname + search, "gone")).status, 400);
  assert.equal((await ask(port, "POST", pathname + search, "declined\n")).status, 200);
  assert.equal(rehearsal.takeWord("A-1"), "declined");
  const own = { Host: `127.0.0.1:${port}`, Origin: rehearsal.url };
  assert.equal((await ask(port, "POST", "/said", "approved", own)).status, 200);
  assert.equal(await said, "approved");
  assert.match((await ask(port, "GET", "/")).text, /^<!doctype html>/);
});
