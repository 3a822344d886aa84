import { followMsMax } from "./limits.ts";

/**
 * How long a client wants an operation followed, by its header `Prefer: wait=SECONDS` (RFC 7240, 4.3). Any other value is ignored, as the
 * RFC asks of every preference that can't be honoured: the answer then has no `Preference-Applied`.
 * @returns Milliseconds, at most `followMsMax`; undefined if none is preferred.
 */
export function followMsOf(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  for (const preference of String(header).split(",")) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:;|$)/i.exec(preference)?.[1];
    // If a preference is given twice the first counts (RFC 7240, 2).
    if (seconds !== undefined) return Math.min(Number(seconds) * 1_000, followMsMax);
  }
  return undefined;
}
