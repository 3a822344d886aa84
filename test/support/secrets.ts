/** Secrets that are seeded where they can stand, and the search for any trace of them in what is shown, written or mailed. */

/** One of each kind that may never be seen. */
export const seededSecrets = {
  /** A test card's number, with a valid check digit. */
  card: "4539578763621486",
  sign: "OWNkZDRlMGI2OWNlNDA4OTJjMDk0YTY2YmE4YjcyMWY1OTczMWUxOQ==",
  key: "ORDER-7731-seeded",
  merchantId: "MERCHANT-seeded-42",
} as const;

/** Each form in which a text may stand: plain, in the three alignments of Base64, and as hex. */
export function tracesOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  return [secret, ...[0, 1, 2].map((shift) => alignedBase64(bytes, shift)), bytes.toString("hex")];
}

/** The characters of Base64 that depend on nothing but these bytes, which stand behind `shift` others. */
function alignedBase64(bytes: Buffer, shift: number): string {
  const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
  return encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
}

/**
 * The secrets that can be found in what somebody gets to see, in any form, with escapes of forms and JSON undone, and across the
 * rows of a hex dump.
 */
export function secretsIn(seen: Buffer | string, secrets: readonly string[] = Object.values(seededSecrets)): readonly string[] {
  const text = typeof seen === "string" ? seen : seen.toString("latin1");
  const readings = [text, withoutEscapes(text), text.replaceAll(/^[0-9a-f]{8} {2}|\|.*\|$|\s+/gm, "").toLowerCase()];
  return secrets.filter((secret) => tracesOf(secret).some((trace) => readings.some((reading) => reading.includes(trace))));
}

function withoutEscapes(text: string): string {
  return text
    .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\u00([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll("\\/", "/");
}
