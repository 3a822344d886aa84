import assert from "node:assert/strict";
import { test } from "node:test";
import { faultTable } from "./fault-table.ts";

/**
 * Tests src/envelope/fault.ts. That the table in docs/client.md is this one is checked with the other tables there.
 */

const [head, line, ...rows] = faultTable()
  .split("\n")
  .map((row) => row.slice(2, -2).split(" | "));

/** Each row of a service: where, what is known, and what a till gets. */
const rowsOf = (service: string) =>
  rows.flatMap(([name = "", ...cells]) =>
    name.startsWith(`${service}: `) ? [[name.slice(service.length + 2), ...cells]] : [],
  );

test("faultTable() is a table with a title for each cell, and one service after the other", () => {
  assert.deepEqual([head?.length, head?.[0], head?.at(-1)], [5, "service: route", "with `faultStatus: 200`"]);
  assert.equal(new Set(head?.filter((title) => title.trim() !== "")).size, 5);
  for (const row of rows) assert.equal(row.length, 5);
  assert.deepEqual(
    line,
    head?.map(() => "---"),
  );
  assert.deepEqual([...new Set(rows.map(([name = ""]) => name.split(":")[0]))], ["fiscal", "bank", "qr"]);
  assert.match(faultTable(), /^\| service: route \|.* \|$/m);
});

test("faultTable() says by which codes a till reads the faults of a service, and which come in HTTP 200", () => {
  const inOk = "its own; malformed, missing, date, amount, sign: 200";
  assert.deepEqual(rowsOf("bank"), [
    ["each", "not-sent", "`error` -3, -29, -80", inOk, "200"],
    ["each", "unknown", "`error` -3", "its own", "200"],
  ]);
  assert.deepEqual(rowsOf("fiscal"), [
    ["each", "not-sent", "`error` 14, 5, 4, 3, 2, 1", inOk, "200"],
    ["`/deposit`, `/withdraw`", "unknown", "in progress: `error` 44", "its own", "200"],
    ["the others", "unknown", "`error` 5", "its own", "200"],
  ]);
});

test("faultTable() says where a till gets no word of the contract, and nothing at all on a line", () => {
  const silence = ["`message` alone; on a gateway's line silence", "its own", "its own"];
  assert.deepEqual(rowsOf("qr"), [
    ["`/check`", "not-sent, 4xx", ...silence],
    ["`/check`", "not-sent, 5xx", "in progress: `success`", "its own", "200"],
    ["the others", "not-sent", "`error` 1", "its own", "200"],
    ["`/showqrcode`, `/check`", "unknown", "in progress: `success`", "its own", "200"],
    ["`/cancel`, `/refund`, `/final_confirm`", "unknown", ...silence],
    ["the others", "unknown", "`error` 1", "its own", "200"],
    ["not readable as HTTP", "not-sent", ...silence],
  ]);
});
