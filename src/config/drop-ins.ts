import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../core/error-code.ts";
import { isObject } from "../core/json-object.ts";
import { quoted } from "../core/shell-text.ts";
import { ConfigError } from "./config.ts";

/**
 * Drop-ins: files in a folder beside the configuration's (`posline.d` of `posline.json`), laid over it in the order of their names, each as a
 * JSON merge patch (RFC 7396). So a program has a file of its own, and a person's file stays as it is.
 */

/** The folder of a configuration's drop-ins. */
export const dropInFolder = (file: string) => `${file.replace(/\.json$/, "")}.d`;

/** The paths of a configuration's drop-ins, in their order. @throws ConfigError if the folder can't be read. */
export function dropInsOf(file: string): readonly string[] {
  const folder = dropInFolder(file);
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".json") && !name.startsWith("."));
    return names.sort().map((name) => join(folder, name));
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return [];
    if (code === "ENOTDIR") throw new ConfigError(["it is not a folder: move it away"], folder);
    const denied = `permission denied: let posline's user read the folder: sudo chmod 755 ${quoted(folder)}`;
    throw new ConfigError([code === "EACCES" || code === "EPERM" ? denied : String(code ?? error)], folder);
  }
}

/** Whether there is a file, or a drop-in of it. @throws ConfigError if that can't be seen. */
export const isConfigured = (file: string) => existsSync(file) || dropInsOf(file).length > 0;

/**
 * Lays a drop-in over what is there: objects merge, null takes a member away, and anything else replaces it.
 * @param note Is told the path of each setting that the drop-in has, `lines.till.path`.
 */
export function laidOver(below: unknown, dropIn: unknown, note: (path: string) => void, path = ""): unknown {
  if (path !== "") note(path);
  if (!isObject(dropIn)) return dropIn;
  const members = new Map(isObject(below) ? Object.entries(below) : []);
  for (const [key, value] of Object.entries(dropIn)) {
    if (value === null) members.delete(key);
    else members.set(key, laidOver(members.get(key), value, note, path === "" ? key : `${path}.${key}`));
  }
  return Object.fromEntries(members);
}
