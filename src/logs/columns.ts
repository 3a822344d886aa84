import { plain } from "./paint.ts";

/** What all lines that are shown are made of. */

/** The first column after the time: who it is about. */
export function subject(name: string): string {
  return plain(name).padEnd(7);
}

/** Fields that have no place of their own. */
export function restOf(rest: readonly (readonly [string, string])[]): string {
  return rest.map(([name, value]) => `${plain(name)}=${plain(value)}`).join(" ");
}

/** The parts of a line that are there. */
export function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("  ");
}
