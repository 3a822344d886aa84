import type { Row } from "./part.ts";

/** Counters of what worlds come to. Their declaration is the table's text too: by name its words, and a remark. */

export type Counts = Readonly<Record<string, readonly [what: string, note?: string]>>;

/** Of names that end in `Ms`, which are milliseconds, the longest time counts. */
export type TallyOf<Of extends Counts> = { -readonly [Name in keyof Of]: number };

const isTime = (name: string) => name.endsWith("Ms");

export function emptyTallyOf<Of extends Counts>(counts: Of): TallyOf<Of> {
  // Of the same names.
  return Object.fromEntries(Object.keys(counts).map((name) => [name, 0])) as TallyOf<Of>;
}

/** Adds what another process counted. */
export function addTo<Tally extends Record<string, number>>(sum: Tally, more: Tally): void {
  for (const name of Object.keys(sum) as (keyof Tally & string)[]) {
    const [one, other] = [sum[name] ?? 0, more[name] ?? 0];
    // Of a tally's values all are numbers.
    sum[name] = (isTime(name) ? Math.max(one, other) : one + other) as Tally[typeof name];
  }
}

/** Its rows, in the order of the declaration. @param prefix Before the words of each. */
export function tallyRows<Of extends Counts>(counts: Of, tally: TallyOf<Of>, prefix = ""): readonly Row[] {
  return Object.entries(counts).map(([name, [what, note = ""]]) => {
    const value = tally[name] ?? 0;
    const figure = isTime(name) ? { value: value / 1_000, unit: "s" } : { value };
    return { what: `${prefix}${what}`, ...figure, note, least: name === "exchanges" ? 1 : undefined };
  });
}
