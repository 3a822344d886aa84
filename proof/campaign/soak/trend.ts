/** Whether a figure grows: a straight line through its second half, by least squares. */

/** Moments in seconds, and the figure then. */
export type Points = readonly (readonly [seconds: number, value: number])[];

/** By how much the line through the points rises from the first to the last of them; 0 of fewer than two. */
export function riseOf(points: Points): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < 2) return 0;
  const mean = (of: (point: Points[number]) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [meanX, meanY] = [mean(([x]) => x), mean(([, y]) => y)];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const joint = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return spread === 0 ? 0 : (joint / spread) * (last[0] - first[0]);
}

/** The later half: what a process takes while it warms up isn't growth. */
export function secondHalf(points: Points): Points {
  return points.slice(Math.floor(points.length / 2));
}

/** The lowest of each `size` points in a row: between two collections memory rises and falls. */
export function floors(points: Points, size: number): Points {
  const lowest: (readonly [number, number])[] = [];
  for (let from = 0; from + size <= points.length; from += size) {
    const part = points.slice(from, from + size);
    lowest.push([part[0]?.[0] ?? 0, Math.min(...part.map(([, value]) => value))]);
  }
  return lowest;
}
