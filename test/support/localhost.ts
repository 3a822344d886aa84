import { networkInterfaces } from "node:os";

const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));

/** The addresses of localhost that this box has: one without IPv6 has one. */
export const ofLocalhost: readonly string[] = ["127.0.0.1", "::1"].filter((each) => own.includes(each));
