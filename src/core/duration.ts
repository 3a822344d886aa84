const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A duration for people: `50 ms`, `1.5 s`, `30 s`, `12 min`, `3 h`. */
export function durationText(ms: number): string {
  if (ms >= 2 * hourMs) return `${Math.round(ms / hourMs)} h`;
  if (ms > 10 * minuteMs) return `${Math.round(ms / minuteMs)} min`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`;
}
