import type { AddressInfo } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import type { Log } from "../core/log.ts";
import { AdminListener, type AdminRoute } from "../http/admin-listener.ts";
import type { ListenOn } from "../http/server.ts";

/** The admin port of a process. */

export interface Admin {
  /** Where it listens. */
  readonly host: string;
  readonly port: number;
  /** Answers by these routes from now on. */
  replace(routes: Readonly<Record<string, AdminRoute>>): void;
  close(): Promise<void>;
}

/**
 * Opens the admin port.
 * @param config Its address; undefined: the default address, if that is free.
 * @param on A socket that is open already, in place of an address.
 * @returns undefined when no address was configured and the default one is in use: an optional port must not stop a service.
 * @throws Error when the configured address, or the socket, can't be used.
 */
export async function openAdmin(
  config: AdminConfig | undefined,
  routes: Readonly<Record<string, AdminRoute>>,
  log: Log,
  on?: ListenOn,
): Promise<Admin | undefined> {
  const listener = new AdminListener({
    config: config ?? adminDefaults,
    routes,
    error: (error) => log.process("error", "internal error in posline: please report it", { error: String(error) }),
  });
  let address: AddressInfo;
  try {
    address = await listener.listen(on);
  } catch (error) {
    if (config !== undefined || on !== undefined) throw error;
    const { host, port } = adminDefaults;
    log.process("warn", "admin port not opened: the default port is in use", { host, port, error: String(error) });
    return undefined;
  }
  return {
    host: address.address,
    port: address.port,
    replace: (replacing) => listener.replace(replacing),
    close: () => listener.close(),
  };
}
