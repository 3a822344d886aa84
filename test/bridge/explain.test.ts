import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Events, ringMax } from "../../src/admin/events.ts";
import { Ways } from "../../src/bridge/ways.ts";
import described from "../../src/lab/openapi/admin.json" with { type: "json" };
import { adminDocument, usualAdmin } from "../../src/lab/openapi/admin.ts";
import { openOperations } from "../../src/operations/operations.ts";
import { recordOf } from "../admin/worlds.ts";
import { bytes, callOf, routeTo, Told } from "../journal/records.ts";
import { Documented, validDocument } from "../lab/openapi/documented.ts";

/**
 * `GET /explain`, over a journal in a real file.
 *
 * Tests src/bridge/ways.ts, src/admin/events.ts.
 */

const newEvents = () => new Events({ version: "1", notReady: () => [], error: assert.ifError });
const card = "4111111111111111";
const nameOf = (requestId: string, key: string) => ({
  requestId,
  callId: `c-${requestId}`,
  key,
  service: "bank",
  line: "till",
});
const ended = { event: "exchange", phase: "ended", line: "till", parts: undefined } as const;

test("GET /explain tells what the journal has of a key, what tills were told and what posline asked, and what isn't known", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "posline-explain-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  let events = newEvents();
  const journal = await openOperations({ folder, bytes, onFailure: "relay", report: new Told() });
  const documented = new Documented(await validDocument(adminDocument(usualAdmin)));
  const explained = async (key?: string) => {
    const ways = new Ways({ operations: journal, folder, resolve: "observe", events, error: assert.ifError });
    const query = new URLSearchParams(key === undefined ? {} : { key });
    const answer = await ways.routes["GET /explain"]?.("", { query, headers: {}, checkChange: assert.fail });
    assert.ok(answer !== undefined && "status" in answer);
    const headers = { "content-type": "application/json" };
    assert.deepEqual(documented.answerProblems("GET", "/explain", { ...answer, headers }), []);
    const { operations = [], ...rest } = JSON.parse(answer.text);
    const texts = operations.map((each: { moments: { text: string }[] }) => each.moments.map(({ text }) => text));
    return { status: answer.status, texts, operations, ...rest };
  };
  try {
    for (const key of ["A", "B"]) {
      const call = { ...callOf(key), amount: { digits: "100", currency: "EUR" } };
      const entry = journal.begin(call, routeTo());
      await entry.sent();
      await entry.ended({ outcome: "unknown" });
      const name = { ...nameOf(`r-${key}`, key), route: "/sale" };
      events.publish({ event: "exchange", phase: "sent", exchange: name });
      const question = { route: "/check", key: undefined as never, about: name.callId, requestId: `${name.callId}.1` };
      events.publish({ ...ended, background: true, record: recordOf("bank", "answered", { ...question, code: -3 }) });
      const more = { ...name, httpStatus: 504, message: `lost ${key} of ${card}` };
      events.publish({ ...ended, record: recordOf("bank", "unknown", more) });
    }
    const { status, texts, operations, notes } = await explained("A");
    assert.deepEqual(texts, [
      [
        "Request r-A was recorded, to be sent to the terminal.",
        "No valid answer to it came.",
        "posline asked /check: the terminal answered success, code -3.",
        "The till was told that the outcome is unknown (request r-A, HTTP 504): lost A of 411111******1111.",
      ],
    ]);
    const [{ amount, currency, result, proof }] = operations;
    assert.deepEqual([status, notes, amount, currency, result], [200, [], "100", "EUR", "unknown"]);
    assert.match(proof, /^No answer proves how it ended/);
    assert.deepEqual(
      Object.keys(operations[0]).sort(),
      Object.keys(described.components.schemas.Explanation.properties).sort(),
    );

    // What was told is forgotten: by a ring that is full, and by a process that began later.
    for (let n = 0; n < ringMax; n++) events.publish({ event: "ready", ready: true, reasons: [] });
    for (const which of [events, newEvents()]) {
      events = which;
      const forgotten = await explained("A");
      assert.deepEqual(forgotten.texts, [texts[0]?.slice(0, 2)]);
      assert.match(forgotten.notes.join(), /^What tills were told before 20\S+ \S+ isn't shown: /);
    }
    assert.match(
      (await explained("C")).notes.join(),
      /^Nothing of C is in the journal.*It doesn't prove that nothing was sent/,
    );
    assert.match((await explained()).error, /^Cannot explain: key is missing/);
    rmSync(join(folder), { recursive: true });
    const { status: gone, error } = await explained("A");
    assert.deepEqual([gone, /^Cannot read the journal in/.test(error)], [503, true]);
  } finally {
    await journal.close();
  }
});
