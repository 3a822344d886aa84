/** What the runner and the parts of a campaign have in common. */

/** How long and by which seed a part runs. */
export interface PartOptions {
  /** Minutes of wall clock. A short run takes some 5 s whatever this says. */
  readonly minutes: number;
  /** The same seed gives the same cases in the same order; how many of them fit into the time is the machine's affair. */
  readonly seed: number;
  readonly short: boolean;
}

/** One line of the table. */
export interface Row {
  readonly what: string;
  readonly value: number;
  /** Absent for a count. */
  readonly unit?: string;
  /** What the value must at least, or at most, be; absent for what is only counted. */
  readonly least?: number | undefined;
  readonly most?: number | undefined;
  /** A remark behind the row, such as what the figure stands for. */
  readonly note?: string;
}

/** A part of the campaign. It throws only for its own bugs: what it finds are rows that miss their bound. */
export type Part = { readonly name: string; run(options: PartOptions): Promise<readonly Row[]> };

/** Whether a row keeps its bound; true where it has none. */
export function isKept({ value, least, most }: Row): boolean {
  return (least === undefined || value >= least) && (most === undefined || value <= most);
}

/** Milliseconds that a part may take. */
export function partMs({ minutes, short }: PartOptions): number {
  return short ? shortMs : minutes * 60_000;
}

const shortMs = 4_000;
