import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Ask, Row } from "../emulator/conformance-rows.ts";
import { bodyOf, merchantId, overHttpTransport, rows } from "../emulator/conforming.ts";
import { type Chain, startedChain } from "./chain.ts";

/** till → HTTP → bridge → tty → gateway → HTTP → emulator, for every route: the answers are the emulator's, byte for byte. */

let emulated: Awaited<ReturnType<typeof overHttpTransport>>;
let chain: Chain;

before(async () => {
  emulated = await overHttpTransport();
  chain = await startedChain(merchantId, (name) => `http://127.0.0.1:${emulated.ports.get(name)}`);
});

after(async () => {
  await chain.end();
  await emulated.stop();
});

async function ask(service: Row["service"], each: Ask): Promise<string> {
  const { text, headers } = await chain.bridge.post(service, each.route, bodyOf(service, each));
  assert.equal(headers["x-posline-outcome"], "answered", text);
  assert.equal(text, emulated.answered.at(-1));
  return text;
}

for (const row of rows.filter(({ case: each }) => each === "success" || each === "resend")) {
  test(`the chain gives the emulator's answer to ${row.service} ${row.route} ${row.case}${row.why === undefined ? "" : `, ${row.why}`}`, async () => {
    emulated.emulator.reset();
    for (const each of row.before ?? []) await ask(row.service, each);
    assert.equal(JSON.parse(await ask(row.service, row)).status, "success");
  });
}
