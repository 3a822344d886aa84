import { isIP, SocketAddress } from "node:net";

/** Addresses of hosts, compared: which are one, and which lead to this box alone. */

/** The addresses of `localhost`: programs try either first, and some try only one. */
const ofLocalhost = ["127.0.0.1", "::1"] as const;

/** The addresses on which to listen for a host. */
export function addressesOf(host: string): readonly [string, ...string[]] {
  return host === "localhost" ? ofLocalhost : [host];
}

/** The host that has these addresses: `localhost` if they are its own, otherwise the first. */
export function hostOfAddresses(addresses: readonly string[]): string {
  const [first = ""] = addresses;
  return ofLocalhost.every((each) => addresses.includes(each)) ? "localhost" : first;
}

/** An address at which this box reaches itself if it listens at a host: no client connects to "all of them". */
export function reachableAddress(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : addressesOf(host)[0];
}

/** An IP address in one form of the many that it may be written in: IPv4's, if IPv6 only wraps it (`::ffff:127.0.0.1`). */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  return new SocketAddress({ address, family: "ipv6" }).address.replace(/^::ffff:(?=[\d.]+$)/, "");
}

/** True if only this box reaches a host. */
export function isLoopback(host: string): boolean {
  const address = canonicalAddress(host);
  return address === "localhost" || address === "::1" || (address.startsWith("127.") && isIP(address) === 4);
}
