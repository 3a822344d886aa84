import assert from "node:assert/strict";
import { test } from "node:test";
import { readSince } from "../../src/logs/since.ts";

process.env["TZ"] = "Europe/Berlin";

const now = Date.parse("2026-11-20T09:00:00.000+01:00");
const read = (text: string, at = now) => {
  const ms = readSince(text, at);
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

test("readSince() reads spans back from now", () => {
  const back = (ms: number) => new Date(now - ms).toISOString();
  for (const text of ["10m", "-10m", "10 min", "10 minutes ago", " 600s ", "0.5m 570 seconds"])
    assert.equal(read(text), back(600_000), text);
  assert.equal(read("2h"), back(7_200_000));
  assert.equal(read("1h30m"), back(5_400_000));
  assert.equal(read("1d"), back(86_400_000));
  assert.equal(read("1w"), back(604_800_000));
  assert.equal(read("now"), back(0));
});

test("readSince() reads a time of day as the last one that was, in local time", () => {
  assert.equal(read("08:30"), "2026-11-20T07:30:00.000Z");
  assert.equal(read("8:30:15.5"), "2026-11-20T07:30:15.500Z");
  assert.equal(read("09:00"), "2026-11-20T08:00:00.000Z");
  assert.equal(read("21:00"), "2026-11-19T20:00:00.000Z");
});

test("readSince() reads days and dates, local unless they have a zone", () => {
  assert.equal(read("today"), "2026-11-19T23:00:00.000Z");
  assert.equal(read("Yesterday"), "2026-11-18T23:00:00.000Z");
  assert.equal(read("2026-11-20"), "2026-11-19T23:00:00.000Z");
  assert.equal(read("2026-07-01 10:30"), "2026-07-01T08:30:00.000Z");
  assert.equal(read("2026-11-20T10:33:08.336Z"), "2026-11-20T10:33:08.336Z");
  assert.equal(read("2026-11-20T10:33:08+05:30"), "2026-11-20T05:03:08.000Z");
  assert.equal(read("2026-11-20T10:33-0200"), "2026-11-20T12:33:00.000Z");
});

test("readSince() reads a time with a zone alike where this box's clock skips it", () => {
  assert.equal(read("2026-03-29T02:30Z"), "2026-03-29T02:30:00.000Z");
  assert.equal(read("2026-03-29T02:30:05.25-01:00"), "2026-03-29T03:30:05.250Z");
  assert.equal(read("2026-03-29T02:30"), "2026-03-29T01:30:00.000Z");
  assert.equal(read("2026-03-29T10:30"), "2026-03-29T08:30:00.000Z");
  assert.equal(read("2026-10-25T10:30"), "2026-10-25T09:30:00.000Z");
  assert.equal(read("2026-03-29T25:30Z"), undefined);
});

test("readSince() counts days that are an hour short or long as days", () => {
  const afterChange = Date.parse("2026-10-26T12:00:00+01:00");
  assert.equal(read("yesterday", afterChange), "2026-10-24T22:00:00.000Z");
  assert.equal(read("13:00", afterChange), "2026-10-25T12:00:00.000Z");
});

test("readSince() knows no other texts", () => {
  const others = [
    "",
    "foo",
    "10",
    "10x",
    "m",
    "24:00",
    "10:60",
    "10:30:60",
    "1:2",
    "2026-02-31",
    "2026-13-01",
    "2026-11-20T25:00",
    "10m ago now",
  ];
  for (const text of others) assert.equal(read(text), undefined, text);
});
