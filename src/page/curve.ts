import { byId, setText } from "./dom.ts";
import { durationOf, text } from "./texts.ts";

/** The curve of line times: one SVG path, and its meaning in words. */

const width = 300;
const height = 60;

export class Curve {
  readonly #curve = byId("curve", SVGElement);
  readonly #words = byId("curve-words");

  /** @param times Milliseconds, the newest last; at most as many as the list of exchanges has. */
  show(times: readonly number[]): void {
    this.#curve.toggleAttribute("hidden", times.length < 2);
    const last = times.at(-1);
    if (last === undefined) {
      setText(this.#words, text("curveNone"));
      return;
    }
    const sorted = [...times].sort((a, b) => a - b);
    const largest = sorted.at(-1) ?? last;
    const points = times.map((ms, index) => {
      const x = (width * index) / Math.max(1, times.length - 1);
      const y = height - 2 - ((height - 4) * ms) / largest;
      return `${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    this.#curve.querySelector("path")?.setAttribute("d", `M${points.join("L")}`);
    const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? last;
    setText(
      this.#words,
      text("curveWords", {
        count: times.length,
        median: durationOf(median),
        largest: durationOf(largest),
        last: durationOf(last),
      }),
    );
  }
}
