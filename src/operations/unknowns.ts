import { asUnknown, isSameOperation, type UnknownOperation } from "../journal/record.ts";
import type { Sending } from "./sending.ts";

/** How many operations of unknown outcome are listed, and how many of the newest are kept so that they can be settled. */
const listedMax = 100;
const keptMax = 1_000;

/** The sendings of unknown outcome, in order, and their count with those too old to be kept. */
export class Unknowns {
  #kept: readonly Sending[] = [];
  #total = 0;

  get total(): number {
    return this.#total;
  }

  get kept(): readonly Sending[] {
    return this.#kept;
  }

  /** The newest of them, for people. */
  listed(): readonly UnknownOperation[] {
    return this.#kept.slice(-listedMax).map(({ sent, cause = "reported as unknown" }) => asUnknown(sent, cause));
  }

  add(...sendings: readonly Sending[]): void {
    this.#kept = [...this.#kept, ...sendings].slice(-keptMax);
    this.#total += sendings.length;
  }

  /** Adds sendings that an earlier process left, before those of this one. */
  addOlder(sendings: readonly Sending[]): void {
    this.#kept = [...sendings, ...this.#kept].slice(-keptMax);
    this.#total += sendings.length;
  }

  remove(sending: Sending): void {
    if (!this.#kept.includes(sending)) return;
    this.#kept = this.#kept.filter((each) => each !== sending);
    this.#total--;
  }

  /** The unknown sendings of the same operation. */
  like({ sent }: Sending): readonly Sending[] {
    return this.#kept.filter((each) => isSameOperation(each.sent, sent));
  }
}
