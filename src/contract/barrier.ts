/** What the barriers of the three contracts share. */

/** Whether a value is an array of strings, as `operations` is in every contract. An empty one counts: nothing is on offer. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
