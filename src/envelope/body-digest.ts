import { createHash } from "node:crypto";

/** Characters of a body's digest: 64 bits tell a shop's requests apart. */
const digestCharacters = 16;

/** The digest that distinguishes the bodies of calls, in memory as in the journal: hexadecimal, of the bytes as they came. */
export function bodyDigest(body: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const piece of body) hash.update(piece);
  return hash.digest("hex").slice(0, digestCharacters);
}
