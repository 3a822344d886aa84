import { payloadBytesMax, serviceDefaults } from "../config/limits.ts";
import type { ServiceName } from "../core/call.ts";

/** Where a service listens, checked when the client is made: what no request could be built of must not be found out by a payment. */
export interface HttpTarget {
  /** Such as `http://127.0.0.1:8888`, without a slash at its end; a path in it goes before the route. */
  readonly url: string;
  /** Sent as `X-API-Key`. */
  readonly apiKey: string | undefined;
  /** Bytes of the largest answer that is read. */
  readonly replyBytesMax: number;
}

/** Ports that fetch refuses (Fetch standard, port blocking), and 0, at which nothing can listen. */
const refusedPorts: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110],
  ...[111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540],
  ...[548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
]);

/**
 * Checks an address, a key and a size. No message quotes the first two: an address may hold a password.
 * @throws TypeError for what no request can be built of.
 */
export function targetOf(
  service: ServiceName,
  url: string,
  apiKey: string | undefined,
  replyBytesMax: number = serviceDefaults.replyBytesMax,
): HttpTarget {
  const { protocol, username, password, port, search, hash } = parsed(service, url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`Cannot call ${service}: its url begins with ${protocol}: give one of http or https`);
  }
  if (username !== "" || password !== "") throw wrong(service, "its url holds a name or a password: leave them out");
  if (search !== "" || hash !== "") throw wrong(service, "its url holds a ? or a #: leave out what begins there");
  if (port !== "" && refusedPorts.has(Number(port))) throw wrong(service, `fetch refuses the port ${port}: take another`);
  // Header values end at the first and last visible character, and nothing but ASCII is the same to every server
  if (apiKey !== undefined && !(typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey))) {
    throw wrong(service, "its apiKey is not made of visible ASCII characters alone: look for a space or a line's end in it");
  }
  if (!Number.isInteger(replyBytesMax) || replyBytesMax < 1 || replyBytesMax > payloadBytesMax) {
    throw wrong(service, `its replyBytesMax is ${replyBytesMax}: give a whole number from 1 to ${payloadBytesMax}`);
  }
  return { url: url.replace(/\/+$/, ""), apiKey, replyBytesMax };
}

function parsed(service: ServiceName, url: string): URL {
  try {
    return new URL(url);
  } catch {
    // The error of URL has the whole of it
    throw wrong(service, "its url is none: give one such as http://127.0.0.1:8888");
  }
}

function wrong(service: ServiceName, what: string): TypeError {
  return new TypeError(`Cannot call ${service}: ${what}`);
}
