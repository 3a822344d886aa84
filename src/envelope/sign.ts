import { createHash, timingSafeEqual } from "node:crypto";
import { unescapeValue } from "./form.ts";

/**
 * The fiscal sign: Base64 of the lowercase hexadecimal SHA-1 of `data` followed by the merchant's id
 * (fiscal.md, Authentication). `data` is never decoded and encoded again.
 */
export function signOf(data: string, merchantId: string): string {
  return signBytes(data, merchantId).toString("base64");
}

/**
 * True if a form's sign is right, in a time that doesn't depend on the place of a difference: its length is no secret.
 *
 * "Exactly as sent" is read in two ways: `data` with its percent-escapes undone, as terminals read it (seen in the field), or with them.
 * Encoders that break lines end the sign's Base64 with one.
 */
export function signFits({ data, sign }: { readonly data: Buffer; readonly sign: Buffer }, merchantId: string): boolean {
  const given = Buffer.from(unescapeValue(sign).replace(/\r?\n$/, ""), "utf8");
  return [unescapeValue(data), data.toString("utf8")].some((signed) => {
    const expected = Buffer.from(signOf(signed, merchantId), "latin1");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
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
