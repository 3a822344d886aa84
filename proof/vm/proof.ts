import type { Box } from "./box.ts";

/** One thing that is shown. */
interface Shown {
  readonly name: string;
  /** What it shows, in a line. */
  readonly shows: string;
  /** It is shown in short runs, too. */
  readonly isShort?: boolean;
}

/** One that needs the box that all share. */
export interface BoxProof extends Shown {
  readonly isBare?: undefined;
  /** It takes the box as it is, rather than configured and with a clean line. */
  readonly isFirst?: boolean;
  /** @throws Error when posline doesn't do as it must. */
  run(stage: BoxStage): Promise<void>;
}

/** One that needs nothing, or a box of its own. */
export interface BareProof extends Shown {
  readonly isBare: true;
  /** It is shown while the others' box is made. */
  readonly isBeside?: boolean;
  /** @throws Error when posline doesn't do as it must. */
  run(stage: Stage): Promise<void>;
}

export type Proof = BoxProof | BareProof;

/** What a proof works with. */
export interface Stage {
  readonly isShort: boolean;
  /** Prints a figure. */
  figure(text: string): void;
}

export interface BoxStage extends Stage {
  /** The box, on, with posline installed. */
  readonly box: Box;
}

export const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

/** The middle and the worst of some milliseconds. */
export function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `median ${seconds(sorted[sorted.length >> 1] ?? 0)}, worst ${seconds(sorted.at(-1) ?? 0)} of ${sorted.length}`;
}
