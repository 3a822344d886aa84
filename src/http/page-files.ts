import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { AdminAnswer } from "./admin-listener.ts";

/**
 * The status page's files, as the admin port answers them. They are read once, at the start: after an upgrade a running posline still has
 * the page of its own version, and no request waits for a disk. They hold nothing of this box, so a browser gets them without the token;
 * the data that they show needs it.
 */

/** The files in the page's folder, each by the path that it is answered at, with its media type. */
const files = {
  "/": { name: "index.html", contentType: "text/html; charset=utf-8" },
  "/page/page.js": { name: "page.js", contentType: "text/javascript; charset=utf-8" },
  "/page/page.css": { name: "page.css", contentType: "text/css; charset=utf-8" },
  "/page/icon.svg": { name: "icon.svg", contentType: "image/svg+xml" },
  "/page/en.json": { name: "en.json", contentType: "application/json" },
  "/page/de.json": { name: "de.json", contentType: "application/json" },
} as const;

/** The page may load its own files and ask this port, nothing else; no other page may frame it, and its emulator's controls with it. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

const headers = { "Content-Security-Policy": contentSecurityPolicy, "Referrer-Policy": "no-referrer" };

/** What page and commands are told of a port. */
export interface PortFacts {
  /** The paths that take GET: the page asks for nothing that isn't there. */
  readonly paths: readonly string[];
  /** The file with the key of its sessions; null if there is none, absent if a change needs no session. */
  readonly keyFile?: string | null;
}

/**
 * Reads the page, and adds the facts of this port.
 * @param folder The page's folder, beside the program.
 * @returns Answers by path. If the files are missing, each answer says so.
 */
export async function readPageFiles(folder: URL, facts: PortFacts): Promise<ReadonlyMap<string, AdminAnswer>> {
  const answers = new Map<string, AdminAnswer>();
  for (const [path, { name, contentType }] of Object.entries(files)) {
    const text = await readFile(new URL(name, folder), "utf8").catch(() => undefined);
    answers.set(path, text === undefined ? missing(folder) : { status: 200, text, contentType, headers });
  }
  answers.set("/page/paths.json", { status: 200, text: `${JSON.stringify(facts)}\n`, headers });
  return answers;
}

function missing(folder: URL): AdminAnswer {
  const error = `Cannot show the status page: there are no files in ${fileURLToPath(folder)}: install posline again, or use /status`;
  return { status: 404, text: `${JSON.stringify({ error })}\n` };
}
