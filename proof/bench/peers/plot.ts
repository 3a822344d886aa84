/** Line plots as SVG, with logarithmic axes: enough for how a cost grows. */

export interface Series {
  readonly name: string;
  /** x and y, both above 0. */
  readonly points: readonly (readonly [number, number])[];
}

export interface Plot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
}

const width = 640;
const height = 360;
const margin = { left: 70, right: 150, top: 36, bottom: 48 };
/** Colours that are told apart by those who see no red or green (Okabe and Ito). */
const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function tick(value: number): string {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e3 ? `${value / 1e3}k` : String(Number(value.toPrecision(2)));
}

/** Places values of an axis between two pixels; whole powers of ten at its ends. */
function scale(values: readonly number[], from: number, to: number): { at: (value: number) => number; ticks: number[] } {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value: number) => from + ((to - from) * (Math.log10(value) - low)) / (high - low);
  return { at, ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)) };
}

/**
 * The plot as one SVG document, without a script or an outside reference.
 * @throws RangeError when a value isn't above 0, which no logarithm has a place for, or when there is none at all.
 */
export function plotSvg({ title, x, y, series }: Plot): string {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) throw new RangeError(`Cannot plot ${title}: there are no points`);
  for (const [px, py] of points) {
    if (!(px > 0 && py > 0)) throw new RangeError(`Cannot plot ${title}: ${px}, ${py} has no place on a logarithmic axis`);
  }
  const across = scale(
    points.map(([px]) => px),
    margin.left,
    width - margin.right,
  );
  const up = scale(
    points.map(([, py]) => py),
    height - margin.bottom,
    margin.top,
  );
  const right = width - margin.right;
  const bottom = height - margin.bottom;
  const grid = [
    ...across.ticks.map((value) => {
      const at = across.at(value).toFixed(1);
      return `<path d="M${at} ${margin.top}V${bottom}" stroke="#ddd"/><text x="${at}" y="${bottom + 16}" text-anchor="middle">${tick(value)}</text>`;
    }),
    ...up.ticks.map((value) => {
      const at = up.at(value);
      return `<path d="M${margin.left} ${at.toFixed(1)}H${right}" stroke="#ddd"/><text x="${margin.left - 6}" y="${(at + 4).toFixed(1)}" text-anchor="end">${tick(value)}</text>`;
    }),
  ];
  const lines = series.map(({ name, points: own }, i) => {
    const colour = colours[i % colours.length] ?? "#000000";
    const places = own.map(([px, py]) => [across.at(px).toFixed(1), up.at(py).toFixed(1)] as const);
    const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`).join("");
    const label = `<text x="${right + 10}" y="${margin.top + 14 + 18 * i}" fill="${colour}">${escaped(name)}</text>`;
    return `<polyline points="${places.map((place) => place.join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${label}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${margin.left}" y="20" font-size="14">${escaped(title)}</text>`,
    ...grid,
    ...lines,
    `<text x="${(margin.left + right) / 2}" y="${height - 10}" text-anchor="middle">${escaped(x)}</text>`,
    `<text transform="translate(16 ${(margin.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escaped(y)}</text>`,
    "</svg>",
    "",
  ].join("\n");
}
