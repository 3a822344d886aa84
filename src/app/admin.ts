import { adminDefaults } from "../config/limits.ts";
import type { Log } from "../core/log.ts";
import { AdminListener, type AdminRoute, type AdminSettings } from "../http/admin-listener.ts";
import { readPageFiles } from "../http/page-files.ts";
import type { ListeningAt, ListenOn } from "../http/server.ts";
import { reportBug } from "./bug.ts";

/** The admin port of a process, and the status page on it. */

/** Beside the bundle; where the sources run by themselves, there is none. */
const pageFolder = new URL("./page/", import.meta.url);

export interface Admin extends ListeningAt {
  /** Answers by these routes from now on. */
  replace(routes: Readonly<Record<string, AdminRoute>>): void;
  close(): Promise<void>;
}

/**
 * Opens the admin port.
 * @param config Its address; undefined: the default address, if that is free.
 * @param on Sockets that are open already, in place of an address.
 * @returns undefined when no address was configured and the default one is in use: an optional port must not stop a service.
 * @throws Error when the configured address, or the sockets, can't be used.
 */
export async function openAdmin(
  config: AdminSettings | undefined,
  routes: Readonly<Record<string, AdminRoute>>,
  log: Log,
  on?: ListenOn,
): Promise<Admin | undefined> {
  const paths = Object.keys(routes).flatMap((name) => (name.startsWith("GET ") ? [name.slice("GET ".length)] : []));
  const listener = new AdminListener({
    config: config ?? adminDefaults,
    routes,
    files: await readPageFiles(pageFolder, paths),
    // /healthz says that the process runs, and nothing else: what restarts a container has no token.
    tokenless: ["GET /healthz"],
    error: (error) => reportBug(log, error),
    dropped: () => {
      const count = listener.streams.dropped;
      log.process("warn", "a watcher of the admin port was dropped: it reads too slowly", { count });
    },
  });
  let at: ListeningAt;
  try {
    at = await listener.listen(on);
  } catch (error) {
    if (config !== undefined || on !== undefined) throw error;
    const { host, port } = adminDefaults;
    log.process("warn", "admin port not opened: the default port is in use", { host, port, error: String(error) });
    return undefined;
  }
  return {
    ...at,
    replace: (replacing) => listener.replace(replacing),
    close: () => listener.close(),
  };
}
