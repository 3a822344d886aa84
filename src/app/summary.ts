/** How lines do, in the one line that `systemctl status` shows. */

export interface LineView {
  readonly name: string;
  readonly state: "down" | "recovering" | "idle" | "awaiting" | "closed" | "open";
  readonly reason: string;
}

/** "2 lines up, 1 recovering, 1 down (till: there is no device /dev/ttyUSB0: check the cable and the power)". */
export function summaryOf(lines: readonly LineView[]): string {
  const down = lines.filter(({ state }) => state === "down" || state === "closed");
  const recovering = lines.filter(({ state }) => state === "recovering");
  const up = lines.length - down.length - recovering.length;
  const counts = [
    ...(up > 0 || lines.length === 0 ? [`${up} ${up === 1 ? "line" : "lines"} up`] : []),
    ...(recovering.length > 0 ? [`${recovering.length} recovering`] : []),
    ...(down.length > 0 ? [`${down.length} down`] : []),
  ];
  // The first is enough to begin with, and the log has the others.
  const [trouble] = [...down, ...recovering];
  return trouble === undefined ? counts.join(", ") : `${counts.join(", ")} (${trouble.name}: ${trouble.reason})`;
}
