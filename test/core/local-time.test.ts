import assert from "node:assert/strict";
import { test } from "node:test";
import { localDay, localTime } from "../../src/core/local-time.ts";

function shown(zone: string, moments: readonly string[]): readonly string[] {
  process.env["TZ"] = zone;
  return moments.map((moment) => `${localDay(Date.parse(moment))} ${localTime(Date.parse(moment), 0)}`);
}

test("localTime() shows the offset in the hour that comes twice, and at no other time", () => {
  const berlin = shown("Europe/Berlin", [
    ...["2026-10-24T23:59:59Z", "2026-10-25T00:00:00Z", "2026-10-25T00:59:59Z", "2026-10-25T01:00:00Z"],
    ...["2026-10-25T01:59:59Z", "2026-10-25T02:00:00Z"],
  ]);
  assert.deepEqual(berlin, [
    ...["2026-10-25 01:59:59", "2026-10-25 02:00:00+02:00", "2026-10-25 02:59:59+02:00", "2026-10-25 02:00:00+01:00"],
    ...["2026-10-25 02:59:59+01:00", "2026-10-25 03:00:00"],
  ]);
  // The hour that is left out in spring makes nothing ambiguous.
  assert.deepEqual(shown("Europe/Berlin", ["2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"]), [
    "2026-03-29 01:59:59",
    "2026-03-29 03:00:00",
  ]);
});

test("localTime() knows offsets west of Greenwich, half hours, and zones whose clocks stay", () => {
  assert.deepEqual(shown("America/New_York", ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:30:00Z"]), [
    "2026-11-01 01:30:00-04:00",
    "2026-11-01 01:30:00-05:00",
    "2026-11-01 02:30:00",
  ]);
  // Lord Howe Island goes back by half an hour.
  assert.deepEqual(shown("Australia/Lord_Howe", ["2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-04T15:30:00Z"]), [
    "2026-04-05 01:45:00+11:00",
    "2026-04-05 01:45:00+10:30",
    "2026-04-05 02:00:00",
  ]);
  assert.deepEqual(shown("Asia/Almaty", ["2026-10-25T00:30:00Z"]), ["2026-10-25 05:30:00"]);
});
