import assert from "node:assert/strict";
import { test } from "node:test";
import { PageKey } from "../../src/http/page-key.ts";

const minute = 60_000;

/** A key, and the same one in another process, at a time of one's own. */
function keys() {
  const clock = { ms: 1_000 };
  const key = new PageKey(undefined, () => clock.ms);
  return { clock, key, reader: new PageKey(key.text, () => clock.ms) };
}

test("PageKey.exchange() takes a code of who has read the key once, and those that were made before no more", () => {
  const { clock, key, reader } = keys();
  const first = reader.code();
  clock.ms += 1;
  const second = reader.code();
  clock.ms += 1;
  const third = reader.code();
  assert.ok(key.isSession(key.exchange(second) ?? ""));
  assert.equal(key.exchange(second), undefined);
  assert.equal(key.exchange(first), undefined);
  assert.ok(key.exchange(third) !== undefined);
});

test("PageKey.exchange() takes a code for 10 minutes, and isSession() a session for an hour", () => {
  const { clock, key, reader } = keys();
  const [code, late] = [reader.code(), reader.code()];
  const session = reader.session();
  clock.ms += 10 * minute;
  assert.equal(key.exchange(late), undefined);
  clock.ms -= 1;
  assert.ok(key.exchange(code) !== undefined);
  clock.ms += 50 * minute;
  assert.ok(key.isSession(session));
  clock.ms += 1;
  assert.equal(key.isSession(session), false);
});

test("PageKey takes nothing that another key signed, that was signed for something else, or that was changed", () => {
  const { key, reader } = keys();
  const other = new PageKey(undefined, () => 1_000);
  assert.notEqual(other.text, key.text);
  assert.match(key.text, /^[0-9a-f]{48}$/);
  const [code, session] = [reader.code(), reader.session()];
  for (const given of ["", "-", "x", session, other.code(), `${code}0`, `0${code}`, code.slice(0, -1), code.toUpperCase()]) {
    assert.equal(key.exchange(given), undefined, given);
  }
  const [end = "", signature = ""] = session.split("-");
  const longer = (Number.parseInt(end, 36) + 1).toString(36);
  for (const given of [
    "",
    code,
    other.session(),
    `${longer}-${signature}`,
    `${end}-`,
    `Infinity-${signature}`,
    `${session}-`,
  ]) {
    assert.equal(key.isSession(given), false, given);
  }
  assert.ok(key.isSession(session));
});

test("PageKey counts by a clock that all processes share: another one's code is not over, and is over in 10 minutes", () => {
  const key = new PageKey();
  const minutes = Number(process.hrtime.bigint() / 1_000_000n) / minute;
  const end = Number.parseInt(key.code(), 36) / minute;
  assert.ok(end > minutes + 9 && end < minutes + 11);
});
