import type { ServiceName } from "../core/call.ts";

/**
 * Answers to barriers that may still be on their way, by service: an upper bound, counted from what was asked and what was
 * answered. Some are known of, since this process asked; at start some are merely assumed, of the process before, until an answer
 * too many shows that there were such.
 */
export class LeftOver {
  readonly #counts = new Map<ServiceName, { readonly known: number; readonly assumed: number }>();

  /** How many may still come. */
  of(service: ServiceName): number {
    const { known, assumed } = this.#counts.get(service) ?? none;
    return known + assumed;
  }

  /** Whether one is known of. */
  isKnown(service: ServiceName): boolean {
    return (this.#counts.get(service)?.known ?? 0) > 0;
  }

  /** The process before may have asked `count` times and then ended. */
  assume(service: ServiceName, count: number): void {
    this.#set(service, 0, count);
  }

  /** Where some are assumed, `count` of them are. */
  assumeAtLeast(service: ServiceName, count: number): void {
    const { known, assumed } = this.#counts.get(service) ?? none;
    if (assumed > 0) this.#set(service, known, Math.max(assumed, count));
  }

  /** One more may come. */
  add(service: ServiceName): void {
    this.setTo(service, this.of(service) + 1);
  }

  /** So many may come now. Those that were merely assumed and weren't contradicted are still merely assumed. */
  setTo(service: ServiceName, count: number): void {
    const assumed = Math.min(this.#counts.get(service)?.assumed ?? 0, count);
    this.#set(service, count - assumed, assumed);
  }

  /** One came, so there were such: what was assumed is known of from now on. */
  came(service: ServiceName): void {
    this.#set(service, Math.max(0, this.of(service) - 1), 0);
  }

  /** None will come any more. */
  clear(service: ServiceName): void {
    this.#counts.delete(service);
  }

  #set(service: ServiceName, known: number, assumed: number): void {
    if (known + assumed > 0) this.#counts.set(service, { known, assumed });
    else this.#counts.delete(service);
  }
}

const none = { known: 0, assumed: 0 };
