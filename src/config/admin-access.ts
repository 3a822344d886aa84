import { reachableAddress } from "../core/address.ts";
import { urlHost } from "../core/url-host.ts";
import type { AdminConfig } from "./config.ts";

/** How a program on this box asks a running posline. */
export interface AdminAccess {
  /** Without a slash at its end. */
  readonly url: string;
  /** What each request must carry. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How to reach an admin port of this box. */
export function adminAccess({ host, port, token }: AdminConfig): AdminAccess {
  return {
    url: `http://${urlHost(reachableAddress(host))}:${port}`,
    headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
  };
}
