/** Times as people type them, in the time of the box. */

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `90s`, `10m`, `1h30m`, `2 hours ago`. */
const span = /^-?((?:\d+(?:\.\d+)?\s*(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\s*)+)(?:ago)?$/i;
const clock = /^(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,3})\d*)?)?$/;
const date = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?$/i;

/** Examples of times that `readSince` takes, for a message. */
export const sinceExamples = "10m, 2h, 1d, 10:30, today, yesterday, 2026-11-20 or 2026-11-20T10:30";

/**
 * The moment that a text means, in milliseconds of the Unix clock; undefined if it means none. A time of day is the last one that was: at
 * nine in the morning, `21:00` is yesterday's.
 */
export function readSince(text: string, nowMs: number): number | undefined {
  const typed = text.trim();
  const word = typed.toLowerCase();
  if (word === "now") return nowMs;
  if (word === "today") return midnight(nowMs, 0);
  if (word === "yesterday") return midnight(nowMs, -1);
  const ago = span.exec(typed)?.[1];
  if (ago !== undefined) return nowMs - spanMs(ago);
  if (clock.test(typed)) {
    const today = atClock(midnight(nowMs, 0), typed);
    return today !== undefined && today > nowMs ? atClock(midnight(nowMs, -1), typed) : today;
  }
  const day = date.exec(typed);
  return day === null ? undefined : atDate(day);
}

function spanMs(text: string): number {
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z])/gi)) {
    sum += Number(count) * (unitMs[unit?.toLowerCase() ?? ""] ?? 0);
  }
  return sum;
}

/** The beginning of a day, so many days from the one of a moment; days of 23 and 25 hours count as days. */
function midnight(ms: number, days: number): number {
  const day = new Date(ms);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime();
}

/** A time of day on the day that begins there; undefined if no day has it. */
function atClock(midnightMs: number, text: string): number | undefined {
  const clockMs = msOfClock(text);
  return clockMs === undefined ? undefined : new Date(midnightMs).setHours(0, 0, 0, clockMs);
}

/** Milliseconds that a clock has counted at a time of day; undefined if no day has it. */
function msOfClock(text: string): number | undefined {
  const [, hours, minutes, seconds = "0", fraction = "0"] = clock.exec(text) ?? [];
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)];
  if (!(h < 24 && m < 60 && s < 60)) return undefined;
  return h * 3_600_000 + m * 60_000 + s * 1_000 + Number(fraction.padEnd(3, "0"));
}

/** A date, with or without a time of day and a zone; undefined for a day that isn't in the calendar. */
function atDate([, year, month, day, time = "0:00", zone]: RegExpExecArray): number | undefined {
  const parts = [Number(year), Number(month) - 1, Number(day)] as const;
  const midnightMs = new Date(...parts).getTime();
  // The calendar rolls 31 April over into May.
  if (new Date(midnightMs).getMonth() !== parts[1] || new Date(midnightMs).getDate() !== parts[2]) return undefined;
  if (zone === undefined) return atClock(midnightMs, time);
  const clockMs = msOfClock(time);
  return clockMs === undefined ? undefined : Date.UTC(...parts) + clockMs - zoneMs(zone);
}

/** Milliseconds that a zone is ahead of UTC. */
function zoneMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
}
