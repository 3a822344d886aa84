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
  close(): Promise<void>;
}

/**
 * Opens the admin port.
 * @param config Where; undefined: at the usual place, if that is free.
 * @param on What was opened for it elsewhere, in place of an address of its own.
 * @returns undefined when nothing was configured and the usual place is taken: what nobody asked for must not stop a service.
 * @throws Error when what was configured, or opened elsewhere, can't be had.
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
    error: (error) => log.process("error", "posline failed within: please report it", { error: String(error) }),
  });
  let address: AddressInfo;
  try {
    address = await listener.listen(on);
  } catch (error) {
    if (config !== undefined || on !== undefined) throw error;
    const { host, port } = adminDefaults;
    log.process("warn", "there is no admin port: the usual one is taken", { host, port, error: String(error) });
    return undefined;
  }
  return { host: address.address, port: address.port, close: () => listener.close() };
}
