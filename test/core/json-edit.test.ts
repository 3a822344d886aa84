import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { editJson } from "../../src/core/json-edit.ts";

const text = `{
  "lines": {
    "till": { "path": "/dev/x",   "baudRate": 9600 }
  },

  "services": {
    "fiscal": { "line": "till" },
    "bank": { "line": "till" },
    "qr": { "line": "till" }
  }
}
`;

test("editJson() changes a member and leaves every other byte", () => {
  const edited = editJson(text, [{ path: ["lines", "till", "baudRate"], value: 115_200 }]);
  assert.equal(edited, text.replace("9600", "115200"));
});

test("editJson() with what is there already gives the text itself", () => {
  const edits = [
    { path: ["lines", "till", "path"], value: "/dev/x" },
    { path: ["services", "bank"], value: { line: "till" } },
    { path: ["lines", "till", "parity"], value: undefined },
    { path: ["journal", "folder"], value: undefined },
  ] as const;
  assert.equal(editJson(text, edits), text);
});

test("editJson() adds a member in its object's own layout", () => {
  const inline = editJson(text, [{ path: ["lines", "till", "crc16"], value: "umts" }]);
  assert.equal(inline, text.replace('"baudRate": 9600 }', '"baudRate": 9600, "crc16": "umts" }'));
  const onRows = editJson(text, [{ path: ["lines", "other"], value: { path: "/dev/y" } }]);
  assert.equal(onRows, text.replace("9600 }\n", '9600 },\n    "other": { "path": "/dev/y" }\n'));
});

test("editJson() makes the objects that lead to a member", () => {
  const edited = editJson("{}\n", [
    { path: ["lines", "till"], value: { path: "/dev/x" } },
    { path: ["admin"], value: {} },
  ]);
  assert.equal(edited, '{\n  "lines": { "till": { "path": "/dev/x" } },\n  "admin": {}\n}\n');
});

test("editJson() takes a member out with its comma, wherever it stands", () => {
  for (const name of ["fiscal", "bank", "qr"]) {
    const row = new RegExp(`,?\\n    "${name}": [^\\n]*\\}(?=,?\\n)`);
    const edited = editJson(text, [{ path: ["services", name], value: undefined }]);
    assert.deepEqual(
      Object.keys(JSON.parse(edited).services),
      ["fiscal", "bank", "qr"].filter((each) => each !== name),
    );
    if (name !== "fiscal") assert.equal(edited, text.replace(row, ""));
  }
});

test("editJson() gives JSON that has the value, whatever was there", () => {
  const key = fc.constantFrom("a", "b", "c", '"');
  const object = fc.dictionary(key, fc.dictionary(key, fc.jsonValue()));
  fc.assert(
    fc.property(
      object,
      key,
      key,
      fc.option(fc.jsonValue(), { nil: undefined }),
      fc.constantFrom(undefined, 2),
      (json, one, two, value, indent) => {
        const edited = JSON.parse(editJson(JSON.stringify(json, undefined, indent), [{ path: [one, two], value }]));
        const wanted = JSON.parse(JSON.stringify(json));
        if (value !== undefined) wanted[one] = { ...wanted[one], [two]: JSON.parse(JSON.stringify(value)) };
        else delete wanted[one]?.[two];
        assert.deepEqual(edited, wanted);
      },
    ),
  );
});
