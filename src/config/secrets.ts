import { isUtf8 } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";
import { codeOf } from "../core/error-code.ts";
import { check, type Node } from "./check.ts";
import { secretBytesMax } from "./limits.ts";

/**
 * Reads a secret from its file. A problem names the file and the fix, never its contents.
 * @returns the text without its trailing line break; undefined when it is invalid, which `problems` then says.
 */
export function readSecret(node: Node, file: string, path: string, problems: string[]): string | undefined {
  const refuse = (state: string) => {
    problems.push(`${path}: cannot read ${file}: ${state}`);
    return undefined;
  };
  let bytes: Buffer;
  try {
    bytes = readAtMost(file, secretBytesMax + 1);
  } catch (error) {
    return refuse(reason(error, file));
  }
  if (bytes.length > secretBytesMax)
    return refuse(`it is larger than ${secretBytesMax} bytes: name a file that holds only the value`);
  const text = utf8Text(bytes);
  if (text === undefined) return refuse(notUtf8);
  const value = text.replace(/\r?\n$/, "");
  const kept = check(node, value, `${path} (${file})`, problems);
  return typeof kept === "string" ? kept : undefined;
}

/**
 * A file's text, without the mark by which editors of Windows begin one: as part of a secret it would make every sign wrong.
 * @returns undefined where it isn't UTF-8: what can't be read would be replaced, and the value be another one.
 */
export function utf8Text(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString("utf8").replace(/^\uFEFF/, "") : undefined;
}

export const notUtf8 = "it is not UTF-8 text: save it as UTF-8";

/** Reads a file or a pipe, whose size isn't known beforehand, up to a number of bytes. */
export function readAtMost(file: string, bytesMax: number): Buffer {
  const buffer = Buffer.alloc(bytesMax);
  const fd = openSync(file, "r");
  try {
    let length = 0;
    while (length < bytesMax) {
      const read = readSync(fd, buffer, length, bytesMax - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

/** Why a file can't be read, and what to do about it. */
export function reason(error: unknown, file: string): string {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return "there is no such file: create it or correct the path";
  if (code === "EACCES" || code === "EPERM") {
    return `permission denied: let posline's group read it: sudo chgrp GROUP ${file} && sudo chmod 640 ${file}`;
  }
  if (code === "EISDIR") return "it is a folder: name a file";
  return String(code ?? error);
}
