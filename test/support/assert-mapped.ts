import assert from "node:assert/strict";

/** Asserts that a list has these values, each seen through `of`. */
export function assertMapped<T>(
  list: Iterable<T>,
  wanted: readonly unknown[],
  of: (each: T) => unknown,
  message?: string,
): void {
  assert.deepEqual(Array.from(list, of), wanted, message);
}
