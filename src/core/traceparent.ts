import { randomBytes } from "node:crypto";

/**
 * W3C Trace Context, level 1, as far as posline needs it: the header `traceparent` names the trace that a request belongs to. posline
 * records no spans of its own, so it passes the header on as it came, and the span in it stays the till's.
 */

/** Version, trace id, the sender's span, flags. Ids that are all zeros are invalid (section 3.2.2). */
const form = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The header's value if it is one of version 00; anything else, a later version as well, is ignored. */
export function readTraceparent(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && form.test(header) ? header : undefined;
}

/** The trace's id within a traceparent: 32 characters of lower-case hex, so it is a good request id too. */
export const traceIdOf = (traceparent: string): string => traceparent.slice(3, 35);

/**
 * Begins a trace. Its flag says that it is sampled, as tracing libraries begin one unless configured otherwise: with 0 they would leave out
 * their own part of it.
 */
export function newTraceparent(): string {
  const ids = randomBytes(24).toString("hex");
  const traceparent = `00-${ids.slice(0, 32)}-${ids.slice(32)}-01`;
  // Once in 2^64 the span's id is all zeros.
  return readTraceparent(traceparent) ?? newTraceparent();
}
