import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResultOf } from "../../src/client/types.ts";
import { settlingRules } from "../../src/contract/settling.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { operationResults } from "../../src/core/followed.ts";
import described from "../../src/lab/openapi/service.json" with { type: "json" };
import english from "../../src/page/en.json" with { type: "json" };
import { page } from "../e2e/docs.ts";

const open = { unknown: true, "not-sent": true } as const;

/** The words of the client's type: one more or less here, and it doesn't compile. */
const ofClient: { readonly [S in ContractName]: Readonly<Record<ResultOf<S>, true>> } = {
  fiscal: { closed: true, failed: true, unprinted: true, ...open },
  bank: { approved: true, declined: true, failed: true, reversed: true, ...open },
  qr: { approved: true, declined: true, failed: true, ...open },
};

const quoted = (text: string) => [...text.matchAll(/`([a-z-]+)`/g)].map(([, word = ""]) => word);
const sorted = (words: Iterable<string>) => [...new Set(words)].sort();

/** Words in the first column of the table below a heading. */
function tabled(path: string, heading: string): readonly string[] {
  const [, table = ""] =
    page(path)
      .split(`## ${heading}\n`)[1]
      ?.split(/^\|---.*$/m) ?? [];
  return table
    .split("\n\n", 1)
    .join()
    .split("\n")
    .flatMap((row) => quoted(row.split(" | ", 1).join()));
}

test("header, OpenAPI, settling.md, the status page and the client say operationResults' words, and no others", () => {
  const { schema, description } = described.components.headers.Result;
  const words = sorted(operationResults);
  assert.deepEqual(schema.enum, operationResults);
  assert.deepEqual(sorted(quoted(description.replace("Prefer: wait", ""))), words);
  assert.deepEqual(sorted(tabled("docs/settling.md", "When do I retry?")), words);
  const onPage = Object.keys(english).filter((name) => name.startsWith("result."));
  // The last three are of what posline explain tells, which has no header.
  const told = sorted([...words, "in flight", "answered", "refused"]);
  assert.deepEqual(sorted(onPage.map((name) => name.slice("result.".length))), told);
  const typed = sorted(contractNames.flatMap((name) => Object.keys(ofClient[name])));
  assert.deepEqual(typed, sorted([...words.filter((word) => word !== "pending"), "not-sent"]));
  assert.deepEqual(sorted(tabled("docs/typescript.md", "What does a result mean?")), typed);
});

test("the client's type has each end that its service's rules come to, and no other", () => {
  for (const name of contractNames) {
    const ends = settlingRules[name].flatMap(({ success, ends: all, learns, print }) => [
      ...(success === "followed" ? [] : [success]),
      ...[...Object.values(all), "failed", "unknown", "not-sent"],
      ...(print === undefined ? [] : ["unprinted"]),
      ...(learns === undefined ? [] : ["declined"]),
    ]);
    assert.deepEqual(sorted(ends), sorted(Object.keys(ofClient[name])), name);
  }
});
