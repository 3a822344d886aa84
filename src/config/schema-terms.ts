import { type Bound, serviceDefaults } from "./limits.ts";

/** A whole number within its bounds, with the reason for them. */
export function bounded<const D extends number>(bound: Bound, fallback: D | undefined, description: string) {
  const unit = bound.unit === "" ? "" : ` In ${bound.unit}.`;
  return {
    type: "integer",
    minimum: bound.min,
    maximum: bound.max,
    ...(fallback === undefined ? {} : { default: fallback }),
    description: `${description}${unit}`,
    $comment: bound.why,
  } as const;
}

/** An address or host name in lower case, without a port. */
export const hostPattern = "^(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|[0-9a-f]*(?::[0-9a-f.]*){2,})$";

/** Where to listen. */
export const host = {
  type: "string",
  pattern: hostPattern,
  maxLength: 253,
  default: serviceDefaults.host,
  examples: ["127.0.0.1", "0.0.0.0", "::1"],
  description:
    "The address to listen on; localhost is both 127.0.0.1 and ::1. Anything but loopback lets the network take payments.",
  $comment: "it must be an address or host name in lower case, without scheme or port, such as 127.0.0.1",
} as const;
