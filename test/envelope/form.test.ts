import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";

function read(text: string) {
  const { command, data, sign, repeated } = parseForm(Buffer.from(text, "latin1"));
  return { command: command?.toString(), data: data?.toString(), sign: sign?.toString(), repeated };
}

const none = { command: undefined, data: undefined, sign: undefined, repeated: undefined };

for (const [text, wanted] of [
  ["data=a&sign=b", { data: "a", sign: "b" }],
  ["sign=b&data=a", { data: "a", sign: "b" }],
  ["data=a==&sign=b=", { data: "a==", sign: "b=" }],
  ["data=a+b/c&sign=%2B%2F%3D", { data: "a+b/c", sign: "%2B%2F%3D" }],
  ["x=1&data=a&y=2&sign=b&z", { data: "a", sign: "b" }],
  ["data=a&sign=b\r\n", { data: "a", sign: "b" }],
  ["\n data=a&sign=b \t\n\n", { data: "a", sign: "b" }],
  ["command=/sale&data=a&sign=b", { command: "/sale", data: "a", sign: "b" }],
  ["data=a&data=b&sign=c&sign=d", { data: "b", sign: "d", repeated: "data" }],
  ["sign=&sign=", { sign: "", repeated: "sign" }],
  ["command=&command", { command: "", repeated: "command" }],
  ["data", { data: "" }],
  ["data&sign", { data: "", sign: "" }],
  ["data&sign=b=c", { data: "", sign: "b=c" }],
  ["&&data=a&&", { data: "a" }],
  ["=data&=sign=1", {}],
  ["Data=a&SIGN=b& data=c", {}],
  ["%64ata=a", {}],
  ["metadata=a&data1=b&dat=c", {}],
  ["", {}],
  [" \r\n", {}],
  ["\r\t\ndata=a\t\r", { data: "a" }],
  ["data=a\x0b", { data: "a\x0b" }],
  ["data=a!", { data: "a!" }],
  ["commands=x&comman=y", {}],
] as const) {
  test(`parseForm() reads ${JSON.stringify(text)}`, () => {
    assert.deepEqual(read(text), { ...none, ...wanted });
  });
}

test("parseForm() gives views of the text, copies nothing", () => {
  const text = Buffer.from("data=abc&sign=def");
  const { data, sign } = parseForm(text);
  assert.equal(data?.buffer, text.buffer);
  assert.equal(sign?.buffer, text.buffer);
});

test("parseForm() reads what a plain split at & and the first = reads (property)", () => {
  const piece = fc.constantFrom("data", "sign", "command", "=", "&", "a", "+", "%3D", "==", "&&", "x=1");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const text = pieces.join("");
      const wanted: Record<string, string | undefined> = {};
      let repeated: string | undefined;
      for (const pair of text === "" ? [] : text.split("&")) {
        const [name = "", ...values] = pair.split("=");
        if (!["data", "sign", "command"].includes(name)) continue;
        if (wanted[name] !== undefined) repeated ??= name;
        wanted[name] = values.join("=");
      }
      assert.deepEqual(read(text), { ...none, ...wanted, repeated });
    }),
  );
});

test("parseForm() looks at each byte a bounded number of times, also in pairs without a value", () => {
  const text = Buffer.alloc(1024 * 1024, "a&");
  let looked = 0;
  const indexOf = Buffer.prototype.indexOf;
  // Counts the bytes that the searches pass over: time can't be measured reliably, work can.
  Object.defineProperty(text, "indexOf", {
    value: (byte: number, from: number) => {
      const at = indexOf.call(text, byte, from);
      looked += (at === -1 ? text.length : at + 1) - from;
      return at;
    },
  });
  parseForm(text);
  assert.ok(looked < 4 * text.length, `${looked} bytes for ${text.length}`);
});

for (const [escaped, text] of [
  ["a+b", "a+b"],
  ["%2B%2f%3D", "+/="],
  ["%2", "%2"],
  ["%", "%"],
  ["%zz%4", "%zz%4"],
  ["%%41", "%A"],
  ["%C3%A9", "é"],
  ["100%25", "100%"],
  ["%252B", "%2B"],
  ["%30%39%6a%6A%0f%0F", "09jj\x0f\x0f"],
  ["%3:%:3%/0%0/", "%3:%:3%/0%0/"],
  ["%4g%4G%g4%4`%4@", "%4g%4G%g4%4`%4@"],
] as const) {
  test(`unescapeValue() reads ${escaped} as ${text}`, () => {
    assert.equal(unescapeValue(Buffer.from(escaped)), text);
  });
}

test("unescapeValue() undoes every encodeURIComponent (property)", () => {
  fc.assert(
    // A lone surrogate has no UTF-8; this unit makes none.
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      assert.equal(unescapeValue(Buffer.from(encodeURIComponent(text))), text);
    }),
  );
});
