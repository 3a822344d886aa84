import { createHash, timingSafeEqual } from "node:crypto";

/**
 * The fiscal sign: Base64 of the lowercase hexadecimal SHA-1 of `data` followed by the merchant's id
 * (fiscal.md, Authentication). `data` is taken as its sender meant it: escapes undone, never decoded and encoded again.
 */
export function signOf(data: string, merchantId: string): string {
  const digest = createHash("sha1").update(data, "utf8").update(merchantId, "utf8").digest("hex");
  return Buffer.from(digest, "latin1").toString("base64");
}

/** Whether `sign` is the right one, in a time that doesn't depend on where it differs. */
export function signMatches(sign: string, data: string, merchantId: string): boolean {
  return equalInConstantTime(sign, signOf(data, merchantId));
}

/** Compares two secrets in a time that depends on neither's content: their digests have one length. */
export function equalInConstantTime(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text, "utf8").digest();
  return timingSafeEqual(digest(given), digest(expected));
}
