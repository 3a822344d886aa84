import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { crc32 } from "../../../src/wire/crc32.ts";

/** Numbers by chance, the same for the same seed. Made for speed: a long run draws some billions. */
export class Random {
  readonly #generator: ReturnType<typeof xoroshiro128plus>;

  constructor(seed: number) {
    this.#generator = xoroshiro128plus(seed | 0);
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(((this.#generator.next() >>> 0) / 2 ** 32) * count);
  }

  /** True so often, of 1. */
  chance(share: number): boolean {
    return this.below(2 ** 20) < share * 2 ** 20;
  }

  /** @throws RangeError for an empty list. */
  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError("Cannot pick: the list is empty");
    // `as T`: the index is within the list.
    return list[this.below(list.length)] as T;
  }

  /** Small numbers often, large ones now and then. */
  size(max: number): number {
    return this.below(1 + this.below(max + 1));
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count);
    for (let i = 0; i < count; i++) bytes[i] = this.below(256);
    return bytes;
  }

  /** Cuts bytes into pieces that aren't empty. */
  pieces(bytes: Buffer, pieceBytesMax = 64): Buffer[] {
    const pieces: Buffer[] = [];
    for (let from = 0; from < bytes.length; ) {
      const to = from + 1 + this.size(pieceBytesMax - 1);
      pieces.push(bytes.subarray(from, to));
      from = to;
    }
    return pieces;
  }
}

/** The seed of one input of one target, so that it can be made again alone. */
export function seedOf(seed: number, target: string, number: number): number {
  const text = Buffer.from(`${seed} ${target} ${number}`);
  return crc32(text, 0, text.length);
}
