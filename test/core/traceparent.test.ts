import assert from "node:assert/strict";
import { test } from "node:test";
import { newTraceparent, readTraceparent, traceIdOf } from "../../src/core/traceparent.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const span = "00f067aa0ba902b7";

test("readTraceparent() takes the header of version 00 as it is, whatever its flags", () => {
  for (const flags of ["00", "01", "03", "ff"]) {
    const header = `00-${traceId}-${span}-${flags}`;
    assert.equal(readTraceparent(header), header);
    assert.equal(traceIdOf(header), traceId);
  }
});

test("readTraceparent() ignores what is absent, of another version, all zeros, or of another form", () => {
  const good = `00-${traceId}-${span}-01`;
  for (const header of [
    undefined,
    "",
    `01-${traceId}-${span}-01`,
    `ff-${traceId}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    good.toUpperCase(),
    `${good}-more`,
    ` ${good}`,
    `${good}\n`,
    // Two headers of the name reach Node's listeners joined.
    `${good}, ${good}`,
    good.slice(0, -1),
    good.replaceAll("-", "_"),
    `00-${traceId.slice(1)}g-${span}-01`,
    [good],
  ]) {
    assert.equal(readTraceparent(header), undefined, String(header));
  }
});

test("newTraceparent() makes a valid one, sampled, and each time another", () => {
  const made = Array.from({ length: 1000 }, newTraceparent);
  for (const each of made) {
    assert.equal(readTraceparent(each), each);
    assert.match(each, /-01$/);
  }
  assert.equal(new Set(made.map(traceIdOf)).size, made.length);
});
