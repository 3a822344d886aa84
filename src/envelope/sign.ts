import { createHash, timingSafeEqual } from "node:crypto";

/**
 * The fiscal sign: Base64 of the lowercase hexadecimal SHA-1 of `data` followed by the merchant's id
 * (fiscal.md, Authentication). `data` is taken as its sender meant it: escapes undone, never decoded and encoded again.
 */
export function signOf(data: string, merchantId: string): string {
  return signBytes(data, merchantId).toString("base64");
}

/** Whether `sign` is the right one, in a time that doesn't depend on where it differs: its length is no secret. */
export function signMatches(sign: string, data: string, merchantId: string): boolean {
  const given = Buffer.from(sign, "utf8");
  const expected = Buffer.from(signOf(data, merchantId), "latin1");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function signBytes(data: string, merchantId: string): Buffer {
  const digest = createHash("sha1").update(data, "utf8").update(merchantId, "utf8").digest("hex");
  return Buffer.from(digest, "latin1");
}

/** Compares what callers give with one secret, in a time that depends on neither's content or length: their digests have one. */
export class Secret {
  readonly #digest: Buffer;

  constructor(secret: string) {
    this.#digest = digestOf(secret);
  }

  matches(given: string): boolean {
    return timingSafeEqual(digestOf(given), this.#digest);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
