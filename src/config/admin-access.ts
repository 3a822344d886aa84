import { urlHost } from "../core/url-host.ts";
import type { AdminConfig } from "./config.ts";

/** How a program on this box asks a running posline. */
export interface AdminAccess {
  /** Without a slash at its end. */
  readonly url: string;
  /** What each request must carry. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How to reach an admin port of this box: one that listens everywhere is reached on the loopback address. */
export function adminAccess({ host, port, token }: AdminConfig): AdminAccess {
  const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return {
    url: `http://${urlHost(address)}:${port}`,
    headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
  };
}
