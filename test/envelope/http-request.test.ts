import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { toHttp } from "../../src/envelope/http-request.ts";
import { readHttpBody } from "../../src/envelope/request.ts";
import { signOf } from "../../src/envelope/sign.ts";

const { fiscal, bank, qr } = contracts;
const written = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString("latin1");

test("toHttp() asks by GET where the contract has one and there is no body, by POST otherwise", () => {
  const get = { method: "GET", path: "/supported_operations", contentType: undefined, body: [] };
  assert.deepEqual(toHttp(bank, { route: "/supported_operations", body: [] }), get);
  assert.deepEqual(toHttp(fiscal, { route: "/supported_operations", body: [] }), get);
  const post = { method: "POST", path: "/terminals", contentType: "application/json", body: [] };
  assert.deepEqual(toHttp(bank, { route: "/terminals", body: [] }), post);
  assert.equal(toHttp(bank, { route: "/supported_operations", body: [Buffer.from("{}")] }).method, "POST");
});

test("toHttp() passes the pieces of a text on, the very same buffers", () => {
  const body = [Buffer.from('{"a" :'), Buffer.from("9007199254740993}")];
  for (const [contract, route] of [
    [bank, "/sale"],
    [qr, "/check"],
  ] as const) {
    assert.equal(toHttp(contract, { route, body }).body, body);
  }
});

test("toHttp() escapes + / = of a fiscal form, and what is escaped already only once", () => {
  const body = [Buffer.from("data="), Buffer.from("a+b/c=="), Buffer.from("&sign="), Buffer.from("x%2By%3D")];
  const request = toHttp(fiscal, { route: "/sale", body });
  assert.equal(request.contentType, "application/x-www-form-urlencoded");
  assert.equal(written(request.body), "data=a%2Bb%2Fc%3D%3D&sign=x%2By%3D");
  const first = toHttp(fiscal, { route: "/sale", body: [Buffer.from("data=+a&sign==/")] });
  assert.equal(written(first.body), "data=%2Ba&sign=%3D%2F");
});

test("toHttp() makes no path of a route that the contract doesn't have", () => {
  for (const route of ["/nowhere", "/__proto__", "/sale HTTP/1.1\r\nX: y", "//evil.com/sale", "/"]) {
    assert.throws(
      () => toHttp(bank, { route, body: [] }),
      (error) => error instanceof Fault && error.kind === "route" && error.message.includes("Cannot send"),
    );
  }
});

test("toHttp() writes a form that a standard reader and readHttpBody() both read, its sign still right (property)", () => {
  const route = routeOf(fiscal, "/sale");
  assert.ok(route);
  fc.assert(
    fc.property(fc.object(), fc.boolean(), (json, escaped) => {
      const data = Buffer.from(JSON.stringify(json)).toString("base64");
      const sign = signOf(data, "M");
      const write = escaped ? encodeURIComponent : (text: string) => text;
      const { body } = toHttp(fiscal, { route: "/sale", body: [Buffer.from(`data=${write(data)}&sign=${write(sign)}`)] });
      const standard = new URLSearchParams(written(body));
      assert.deepEqual([standard.get("data"), standard.get("sign")], [data, sign]);
      assert.doesNotThrow(() => readHttpBody(fiscal, route, body, { check: "envelope", merchantId: "M", validate: undefined }));
    }),
  );
});
