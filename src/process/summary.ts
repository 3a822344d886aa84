/** How lines do, in the one line that `systemctl status` shows. */

export interface LineView {
  readonly name: string;
  readonly state: "down" | "recovering" | "idle" | "awaiting" | "closed" | "open";
  readonly reason: string;
  /** Why a service on it is not heard, though the line may be clean. */
  readonly unheard?: string | undefined;
}

/** "2 lines up, 1 recovering, 1 down (till: there is no device /dev/ttyUSB0: check the cable and the power)". */
export function summaryOf(lines: readonly LineView[]): string {
  const down = lines.filter(({ state }) => state === "down" || state === "closed");
  const recovering = lines.filter(({ state }) => state === "recovering");
  const up = lines.length - down.length - recovering.length;
  const silent = lines
    .filter(({ unheard }) => unheard !== undefined)
    .filter((line) => !down.includes(line) && !recovering.includes(line));
  const counts = [
    ...(up > 0 || lines.length === 0 ? [`${up} ${up === 1 ? "line" : "lines"} up`] : []),
    ...(recovering.length > 0 ? [`${recovering.length} recovering`] : []),
    ...(down.length > 0 ? [`${down.length} down`] : []),
  ];
  // The first is enough to begin with, and the log has the others.
  const [trouble] = [...down, ...recovering];
  if (trouble !== undefined) return `${counts.join(", ")} (${trouble.name}: ${trouble.reason})`;
  const [unheard] = silent;
  return unheard === undefined ? counts.join(", ") : `${counts.join(", ")} (${unheard.name}: ${unheard.unheard})`;
}
