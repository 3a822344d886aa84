import { hash } from "node:crypto";
import { wholeOf } from "./json.ts";

/** Characters of a body's digest: 64 bits tell a shop's requests apart. */
const digestCharacters = 16;

/** The digest that distinguishes the bodies of calls, in memory as in the journal: hexadecimal, of the bytes as they came. */
export function bodyDigest(body: readonly Buffer[]): string {
  return hash("sha256", wholeOf(body)).slice(0, digestCharacters);
}
