import { inParts, lowerQuartile } from "./report.ts";

/**
 * One way of measuring: all that is compared is up at once and asked in turns, in short rounds, so that what else the machine does falls
 * on all of it. Of each one's rounds the quieter quarter is shown. What the harness takes without any bridge is asked in turn too, as
 * `floor`.
 */

/** Of these the more is the better. */
const rising: readonly string[] = ["perS", "fullPercent"];

function quietOf(name: string, values: readonly number[]): number {
  return rising.includes(name) ? -lowerQuartile(values.map((value) => -value)) : lowerQuartile(values);
}

/** What was measured, by its name and round by round. */
export class Rounds<Figures extends Readonly<Record<string, number>>> {
  readonly #of = new Map<string, Figures[]>();

  add(name: string, figures: Figures): void {
    this.#of.set(name, [...(this.#of.get(name) ?? []), figures]);
  }

  /** What the quieter quarter came to; NaN of what wasn't measured. */
  quiet(name: string, figure: keyof Figures & string): number {
    return quietOf(
      figure,
      (this.#of.get(name) ?? []).map((round) => round[figure] ?? Number.NaN),
    );
  }

  /** The same part by part of the run. */
  parts(name: string, figure: keyof Figures & string): readonly number[] {
    const values = (this.#of.get(name) ?? []).map((round) => round[figure] ?? Number.NaN);
    return values.length === 0 ? [] : inParts(values, (part) => quietOf(figure, part));
  }
}

/** What is measured in a turn; it may leave a round out. */
export type Measures<Figures> = Readonly<Record<string, (round: number) => Promise<Figures | undefined>>>;

/** @param atOnce All of a round at one time, where no core is short. */
export async function inTurns<Figures extends Readonly<Record<string, number>>>(
  rounds: number,
  measures: Measures<Figures>,
  atOnce = false,
): Promise<Rounds<Figures>> {
  const found = new Rounds<Figures>();
  const measured = async (name: string, measure: Measures<Figures>[string], round: number) => {
    const figures = await measure(round);
    if (figures !== undefined) found.add(name, figures);
  };
  for (let round = 0; round < rounds; round++) {
    const all = Object.entries(measures);
    if (atOnce) await Promise.all(all.map(([name, measure]) => measured(name, measure, round)));
    else for (const [name, measure] of all) await measured(name, measure, round);
  }
  return found;
}
