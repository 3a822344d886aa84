import assert from "node:assert/strict";
import { test } from "node:test";
import { requestTarget } from "../../src/http/request-target.ts";

const none = { authority: undefined, query: "" };

for (const [url, expected] of [
  [undefined, { ...none, path: "/" }],
  ["/sale", { ...none, path: "/sale" }],
  ["/events?recent=1?2", { ...none, path: "/events", query: "recent=1?2" }],
  ["?recent=1", { ...none, path: "/", query: "recent=1" }],
  ["//localhost/sale", { ...none, path: "//localhost/sale" }],
  ["*", { ...none, path: "*" }],
  ["http://localhost:8888/sale", { authority: "localhost:8888", path: "/sale", query: "" }],
  ["HTTPS://till.lan/events?recent=1", { authority: "till.lan", path: "/events", query: "recent=1" }],
  ["http://localhost", { authority: "localhost", path: "/", query: "" }],
  ["http://localhost?recent=1", { authority: "localhost", path: "/", query: "recent=1" }],
  ["http:///sale", { authority: "", path: "/sale", query: "" }],
  ["ftp://localhost/sale", { ...none, path: "ftp://localhost/sale" }],
] as const) {
  test(`requestTarget() of ${url}`, () => assert.deepEqual(requestTarget(url), expected));
}
