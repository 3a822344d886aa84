import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { parseWireFault, type WireFault } from "../../src/emulator/faults/wire-fault.ts";

/** What goes wrong with each of a till's sales: the same for every till. */

/** By what is hurt: the terminal's answer, the way between till and bridge, or one of the processes. */
export type Mishap =
  | { readonly kind: "answer"; readonly fault: WireFault }
  /** The device is away when the sale comes. */
  | { readonly kind: "line-down"; readonly ms: number }
  /** Nobody listens where the till connects to. */
  | { readonly kind: "refused"; readonly ms: number }
  | { readonly kind: "cut-request"; readonly bytes: number }
  | { readonly kind: "cut-waiting"; readonly ms: number }
  | { readonly kind: "cut-answer"; readonly bytes: number }
  /** Answered by what stands between till and bridge, such as nginx: no word of posline's. */
  | { readonly kind: "proxy-504"; readonly ms: number }
  | { readonly kind: "proxy-503" }
  /** kill -9 after the sale's request came by, or at the moment at which the terminal has it. */
  | { readonly kind: "bridge-killed"; readonly ms: number }
  | { readonly kind: "bridge-killed-at-terminal" }
  | { readonly kind: "till-killed"; readonly ms: number };

export interface PlannedSale {
  readonly key: string;
  /** Its last two digits decide how it ends (docs/emulator.md). */
  readonly amount: number;
  readonly mishaps: readonly Mishap[];
}

type Draw = (min: number, max: number) => number;

const answerFault = (text: string): Mishap => ({ kind: "answer", fault: parseWireFault(text) });

/** In turn, so that the first twelve, a short run, have the worst of each. A time-out is 3 s here. */
const kinds: readonly ((draw: Draw) => Mishap)[] = [
  () => answerFault("no-answer"),
  () => ({ kind: "bridge-killed-at-terminal" }),
  (draw) => ({ kind: "till-killed", ms: draw(0, 300) }),
  (draw) => ({ kind: "cut-answer", bytes: draw(1, 500) }),
  (draw) => ({ kind: "line-down", ms: draw(300, 2_500) }),
  () => answerFault("corrupt"),
  (draw) => answerFault(`unplug:${draw(100, 1_500)}`),
  (draw) => ({ kind: "refused", ms: draw(100, 2_500) }),
  (draw) => answerFault(`late:${draw(3_050, 4_500)}`),
  (draw) => ({ kind: "proxy-504", ms: draw(0, 200) }),
  (draw) => ({ kind: "bridge-killed", ms: draw(0, 80) }),
  (draw) => ({ kind: "cut-waiting", ms: draw(0, 100) }),
  (draw) => ({ kind: "cut-request", bytes: draw(1, 150) }),
  () => ({ kind: "proxy-503" }),
  () => answerFault("truncated"),
  () => answerFault("after-next"),
  () => answerFault("wrong-length"),
  () => answerFault("noise"),
  (draw) => answerFault(`twice:${draw(0, 300)}`),
];

/** Endings of amounts: most are approved, as in a shop. */
const endings = [0, 0, 0, 0, 0, 20, 20, 30, 54, 3, 5, 62] as const;

/** One sale in so many has a second mishap, of another kind. */
const doubleTroubleIn = 4;

/** So many sales, the same for the same seed; a longer schedule begins with the shorter one. */
export function schedule(count: number, seed: number): readonly PlannedSale[] {
  const random = xoroshiro128plus(seed);
  const draw: Draw = (min, max) => uniformInt(random, min, max);
  return Array.from({ length: count }, (_, index) => {
    const first = kinds[index % kinds.length]?.(draw);
    const second = kinds[draw(0, kinds.length - 1)]?.(draw);
    const ending = endings[draw(0, endings.length - 1)] ?? 0;
    const amount = draw(1, 500) * 100 + ending;
    const isDouble = draw(1, doubleTroubleIn) === 1 && second?.kind !== first?.kind;
    const mishaps = [first, isDouble ? second : undefined].filter((each) => each !== undefined);
    return { key: `A-${index}`, amount, mishaps };
  });
}
