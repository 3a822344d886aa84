/** Moments as the clock of this box shows them. */

const two = (part: number) => String(part).padStart(2, "0");

/** `2026-10-25`. */
export function localDay(ms: number): string {
  const at = new Date(ms);
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/**
 * `02:30:00.123`; `02:30:00.123+02:00` in the hour that comes twice, when the clocks go back.
 * @param digits Digits of a second after the point.
 */
export function localTime(ms: number, digits: 0 | 3 = 3): string {
  const at = new Date(ms);
  const fraction = digits === 0 ? "" : `.${String(at.getMilliseconds()).padStart(3, "0")}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}${fraction}`;
  return comesTwice(ms) ? `${clock}${offsetText(-at.getTimezoneOffset())}` : clock;
}

/** True if the clock shows the same at another moment, a day before or after: then that has the other offset. */
function comesTwice(ms: number): boolean {
  const offset = minutesBehind(ms);
  return [ms - dayMs, ms + dayMs].some((near) => {
    const other = minutesBehind(near);
    return other !== offset && minutesBehind(ms + (other - offset) * 60_000) === other;
  });
}

const dayMs = 86_400_000;

/** Minutes that the clock is behind UTC, as the language counts them. */
const minutesBehind = (ms: number) => new Date(ms).getTimezoneOffset();

function offsetText(minutesAhead: number): string {
  const minutes = Math.abs(minutesAhead);
  return `${minutesAhead < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
