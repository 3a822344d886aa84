import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { adminDefaults } from "../config/limits.ts";
import { messageOf } from "../core/error-code.ts";
import type { Log } from "../core/log.ts";
import { parseObject } from "../envelope/json.ts";
import { AdminListener, type AdminRoute, type AdminSettings } from "../http/admin-listener.ts";
import { jsonAnswer } from "../http/json-answer.ts";
import { readPageFiles } from "../http/page-files.ts";
import { PageKey } from "../http/page-key.ts";
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
 * @param isPlay True if every terminal is emulated: who may ask may change everything, since no money moves.
 * @returns undefined when no address was configured and the default one is in use: an optional port must not stop a service.
 * @throws Error when the configured address, or the sockets, can't be used.
 */
export async function openAdmin(
  config: AdminSettings | undefined,
  routes: Readonly<Record<string, AdminRoute>>,
  log: Log,
  { on, isPlay = false }: { readonly on?: ListenOn | undefined; readonly isPlay?: boolean } = {},
): Promise<Admin | undefined> {
  const names = Object.keys(routes);
  const paths = names.flatMap((name) => (name.startsWith("GET ") ? [name.slice("GET ".length)] : []));
  const pageKey = isPlay || paths.length === names.length ? undefined : new PageKey();
  const keyFile = pageKey === undefined ? undefined : keptKey(pageKey, log);
  const own = pageKey === undefined ? {} : { "POST /page/session": (body: string) => sessionFor(body, pageKey) };
  const listener = new AdminListener({
    config: config ?? adminDefaults,
    routes: { ...routes, ...own },
    files: await readPageFiles(pageFolder, { paths, ...(keyFile !== undefined && { keyFile }) }),
    pageKey,
    // /healthz says that the process runs, and nothing else: what restarts a container has no token.
    tokenless: ["GET /healthz", "POST /page/session"],
    asking: ["POST /test"],
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
    replace: (replacing) => listener.replace({ ...replacing, ...own }),
    close: () => listener.close(),
  };
}

/**
 * Writes the key where only root, this user and the group of the service's folder can read it: in systemd's folder for the run of the
 * service, otherwise in one of its own that is gone with the process.
 * @returns the file; null if it can't be written, and then only the token proves anything.
 */
function keptKey({ text }: PageKey, log: Log): string | null {
  try {
    const given = process.env["RUNTIME_DIRECTORY"]?.split(":")[0];
    const folder = given || mkdtempSync(join(tmpdir(), "posline-page-"));
    if (!given) process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "key");
    rmSync(file, { force: true });
    writeFileSync(file, text, { flag: "wx", mode: 0o640 });
    // Whatever the umask: the folder is the service's own.
    chmodSync(file, 0o640);
    return file;
  } catch (error) {
    const cure = "the status page's buttons need admin.tokenFile";
    log.process("warn", `the key of posline page can't be written: ${cure}`, { error: messageOf(error) });
    return null;
  }
}

function sessionFor(body: string, pageKey: PageKey) {
  const code = parseObject(body)?.["code"];
  const session = typeof code === "string" ? pageKey.exchange(code) : undefined;
  if (session !== undefined) return jsonAnswer(200, { session });
  return jsonAnswer(403, { error: "Cannot begin a session: the code is wrong, was used, or is over: run posline page again" });
}
