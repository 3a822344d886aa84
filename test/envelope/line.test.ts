import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { contractOnLine, contracts } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { formLineFault, readFormLine, readTextLine, toLine } from "../../src/envelope/request.ts";
import { signOf } from "../../src/envelope/sign.ts";

/** Tests src/envelope/request.ts. */

const { fiscal, bank, qr } = contracts;
const written = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString("latin1");

test("toLine() writes bank and qr requests as the contracts do, with and without a body", () => {
  const body = [Buffer.from('{"pay_id":'), Buffer.from('"A"}')];
  assert.equal(written(toLine(bank, "/sale", body, undefined)), '/sale\n{"pay_id":"A"}');
  assert.equal(written(toLine(qr, "/check", body, undefined)), ':8887/check\n{"pay_id":"A"}');
  assert.equal(written(toLine(bank, "/terminals", [], undefined)), "/terminals");
  assert.equal(written(toLine(qr, "/check_connection", [], undefined)), ":8887/check_connection");
});

test("toLine() writes another port in front of qr's routes where the terminal wants it", () => {
  const contract = contractOnLine({ contract: "qr", linePort: 9001 });
  assert.equal(written(toLine(contract, "/check", [Buffer.from("{}")], undefined)), ":9001/check\n{}");
  assert.equal(written(toLine(contract, "/check_connection", [], undefined)), ":9001/check_connection");
  assert.equal(contractOnLine({ contract: "qr", linePort: 8887 }), qr);
  assert.equal(contractOnLine({ contract: "bank" }), bank);
});

test("toLine() passes the body's pieces on, the very same buffers", () => {
  const body = [Buffer.from("data="), Buffer.from("e30="), Buffer.from("&sign="), Buffer.from("x")];
  for (const contract of [fiscal, bank, qr]) {
    const [, ...rest] = toLine(contract, "/sale", body, undefined);
    rest.forEach((piece, i) => {
      assert.equal(piece, body[i]);
    });
    assert.equal(rest.length, body.length);
  }
});

test("toLine() signs a fiscal /supported_operations that has no body itself", () => {
  const text = written(toLine(fiscal, "/supported_operations", [], "MERCHANT-1"));
  assert.equal(text, `command=/supported_operations&data=e30=&sign=${signOf("e30=", "MERCHANT-1")}`);
  const unsigned = written(toLine(fiscal, "/supported_operations", [], undefined));
  assert.equal(unsigned, `command=/supported_operations&data=e30=&sign=${signOf("e30=", "")}`);
});

test("toLine() passes a body of one piece on, a form's as well", () => {
  for (const [contract, line] of [
    [fiscal, "command=/sale&data=e30=&sign=x"],
    [bank, "/sale\ndata=e30=&sign=x"],
  ] as const) {
    assert.equal(written(toLine(contract, "/sale", [Buffer.from("data=e30=&sign=x")], undefined)), line);
  }
});

test("toLine() never puts posline's own sign under a route that needs one of its sender", () => {
  for (const { path, body } of fiscal.routes) {
    if (body === "none") continue;
    assert.throws(
      () => toLine(fiscal, path, [], "MERCHANT-1"),
      (error) => error instanceof Fault && error.kind === "missing" && /no data and no sign/.test(error.message),
    );
  }
  assert.throws(() => toLine(fiscal, "/nowhere", [], "MERCHANT-1"), Fault);
});

test("readTextLine() reads what toLine() wrote: any body comes back the same (property)", () => {
  const contractAndRoute = fc.constantFrom(
    ...[bank, qr, contractOnLine({ contract: "qr", linePort: 80 })].flatMap((contract) =>
      contract.routes.map(({ path }) => ({ contract, path })),
    ),
  );
  const pieces = fc.array(
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(contractAndRoute, pieces, ({ contract, path }, body) => {
      const line = readTextLine(Buffer.concat(toLine(contract, path, body, undefined)));
      assert.equal(line?.prefix, contract.linePrefix);
      assert.equal(line?.route, path);
      assert.deepEqual(Buffer.concat(line?.body ?? []), Buffer.concat(body));
    }),
  );
});

test("readFormLine() reads what toLine() wrote: any signed form comes back the same (property)", () => {
  const value = fc.string({ unit: fc.constantFrom(..."Az09+/=%2B") });
  fc.assert(
    fc.property(fc.constantFrom(...fiscal.routes), value, value, ({ path }, data, sign) => {
      const body = [Buffer.from("data="), Buffer.from(data), Buffer.from("&sign="), Buffer.from(sign)];
      const line = readFormLine(Buffer.concat(toLine(fiscal, path, body, undefined)));
      assert.equal(line?.route, path);
      assert.equal(written(line?.body ?? []), written(body));
    }),
  );
});

for (const [text, route, body] of [
  ["command=/sale&data=e30=&sign=x", "/sale", "data=e30=&sign=x"],
  ["command=sale&data=e30=&sign=x", "/sale", "data=e30=&sign=x"],
  ["command=%2Fsale&data=e30%3D&sign=x", "/sale", "data=e30%3D&sign=x"],
  ["sign=x&data=a+b&command=sale\r\n", "/sale", "data=a+b&sign=x"],
  ["command=/sale&x=1&data=e30=&y=2&sign=x", "/sale", "data=e30=&sign=x"],
  ["command=/sale&sign=x", "/sale", "sign=x"],
  ["command=/sale&data=e30=", "/sale", "data=e30="],
  ["command=", "/", ""],
] as const) {
  test(`readFormLine() reads ${JSON.stringify(text)}`, () => {
    const line = readFormLine(Buffer.from(text));
    assert.equal(line?.route, route);
    assert.equal(written(line?.body ?? []), body);
  });
}

test("readFormLine() takes no request without a command, or with a field twice", () => {
  for (const text of [
    ...["data=e30=&sign=x", "", "/sale", "command=/a&command=/b", "command=/a&data=1&data=2", "command=/a&sign=1&sign=2"],
  ]) {
    assert.equal(readFormLine(Buffer.from(text)), undefined);
  }
});

for (const [text, prefix, route, body] of [
  ["/sale\n{}", "", "/sale", "{}"],
  ["/sale\r\n{}\n", "", "/sale", "{}\n"],
  ["/terminals", "", "/terminals", ""],
  ["/terminals\n", "", "/terminals", ""],
  [":8887/check\n{}", ":8887", "/check", "{}"],
  [":8887/check_connection", ":8887", "/check_connection", ""],
  [":8888/sale\r\n{}", ":8888", "/sale", "{}"],
  [":80/check", ":80", "/check", ""],
  ["/a\n\n\n", "", "/a", "\n\n"],
] as const) {
  test(`readTextLine() reads ${JSON.stringify(text)}`, () => {
    const line = readTextLine(Buffer.from(text));
    assert.deepEqual([line?.prefix, line?.route, written(line?.body ?? [])], [prefix, route, body]);
  });
}

test("readTextLine() takes nothing that begins with neither a route nor a port and a route", () => {
  for (const text of ["", "sale", ":8887", ":888700/check", ":/check", ":qr/check", "8887/check", "{}", "\n/sale", "AT\r\n"]) {
    assert.equal(readTextLine(Buffer.from(text)), undefined, text);
  }
});

test("readTextLine() reads no body where nothing follows the route's line end", () => {
  for (const text of ["/check\n", "/check"]) assert.deepEqual(readTextLine(Buffer.from(text))?.body, [], JSON.stringify(text));
  assert.deepEqual(readTextLine(Buffer.from("/check\n{"))?.body, [Buffer.from("{")]);
});

test("formLineFault() says what a form lacks, or has twice, by the contract's codes", () => {
  const told = (text: string) => {
    const { kind, message } = formLineFault(Buffer.from(text));
    return [kind, message.replace("Cannot read the request: ", "")];
  };
  const noCommand = ["missing", "the form has no command: add command, the operation's route"];
  assert.deepEqual(told("data=e30=&sign=x"), noCommand);
  assert.deepEqual(told("sign=x"), noCommand);
  assert.deepEqual(told("command=/sale&data=e30=&data=e30="), ["malformed", "the form has data twice: send it once"]);
  assert.deepEqual(told("data=e30=&data=e30="), ["malformed", "the form has data twice: send it once"]);
  assert.deepEqual(told("/sale\n{}"), ["malformed", "it is not a form of command, data and sign"]);
});
