import { randomBytes } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { contractNames } from "../../core/call.ts";
import { codeOf, messageOf } from "../../core/error-code.ts";
import { isObject, type JsonObject } from "../../core/json-object.ts";
import { replaceFile } from "../../core/replace-file.ts";
import type { EmulatedServices } from "./emulator.ts";
import { parseExact, writeExact } from "./exact-json.ts";
import { rememberedBytesMax } from "./service-context.ts";
import { StateError } from "./state-reader.ts";

/**
 * The emulator's memory in a file: written whole after each change, in place of the file before, so that at any moment there is one whole
 * state on disk. An unreadable file may be another program's, and stays as it is; so does one that another process has begun to keep its
 * state in.
 */

/** The form of the file. A file of another version is refused. */
const version = 1n;

/** Bytes of a file that is read, for each service that is played: twice the most that one remembers. */
const serviceBytesMax = 2 * rememberedBytesMax;

/** The content of the file: the state of the emulator. */
export interface EmulatorState {
  readonly services: EmulatedServices;
  readonly aheadMs: number;
  /** Tells its world from others; undefined for the built-in one. */
  readonly worldMark: string | undefined;
  advance(ms: number): void;
  saved(): JsonObject;
}

/** A state file can't be used. The process exits with `exitCode`, and the file is as it was. */
export class StateFileError extends Error {
  override readonly name = "StateFileError";
  /** EX_CONFIG of sysexits, as for a configuration. */
  readonly exitCode = 78;
}

/**
 * Takes back the file's content; a file that isn't there yet holds nothing.
 * @throws StateFileError if it isn't whole or isn't the emulator's; the emulator that was to take it back is of no use then.
 */
export function readStateFile(path: string, emulator: EmulatorState): void {
  const text = read(path, Object.keys(emulator.services).length * serviceBytesMax);
  if (text === undefined) return;
  const refuse = (state: string) => {
    const cure = "move it away to start with an empty state, or name another file";
    return new StateFileError(`Cannot use the state file ${path}: ${state}: ${cure}`);
  };
  const state = parseExact(text);
  if (state === undefined) throw refuse(text === "" ? "it is empty" : "it is not a JSON object");
  if (state["version"] !== version) throw refuse(`its version is not ${version}`);
  const { aheadMs, services, world } = state;
  if (world !== emulator.worldMark) throw refuse("it was made in another world");
  if (typeof aheadMs !== "bigint" || aheadMs < 0n || aheadMs > aheadMsMax) {
    throw refuse(`aheadMs: must be a whole number from 0 to ${aheadMsMax}`);
  }
  if (!isObject(services)) throw refuse("services: must be an object");
  const played = emulator.services;
  for (const service of new Set([...contractNames, ...Object.keys(services)])) {
    const saved = services[service];
    if (!isObject(saved)) throw refuse(`services.${service}: must be an object`);
    const restored = Object.hasOwn(played, service) ? played[service] : undefined;
    // A service that is not taken back would be lost with the next write.
    if (restored === undefined) throw refuse(`services.${service}: the configuration has no such service`);
    try {
      restored.restore(saved);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      throw refuse(`services.${service}: ${error.message}`);
    }
  }
  emulator.advance(Number(aheadMs));
}

/** How far the emulator's time may be moved on, in milliseconds: a thousand years, which every date can still be written in. */
export const aheadMsMax = 1_000 * 365 * 86_400_000;

/** A new mark for a process that keeps its state in a file. */
export const newKeeper = () => randomBytes(8).toString("hex");

/**
 * Writes the whole memory, to the disk. From then on the file is its keeper's, if one is named.
 * @throws StateFileError saying why it can't be written, and what to do.
 */
export function writeStateFile(path: string, emulator: EmulatorState, keeper?: string): void {
  const { aheadMs, worldMark: world } = emulator;
  const marks = { ...(keeper !== undefined && { keeper }), ...(world !== undefined && { world }) };
  const state = { version, ...marks, aheadMs, services: emulator.saved() };
  try {
    replaceFile(path, `${writeExact(state)}\n`);
  } catch (error) {
    throw new StateFileError(`Cannot write the state file ${path}: ${writeReason(error)}`);
  }
}

/**
 * Writes the whole memory, if the file is still the keeper's: the content of another process is not to be lost.
 * @throws StateFileError if it can't be written, or is another's.
 */
export function updateStateFile(path: string, emulator: EmulatorState, keeper: string): void {
  if (!isKept(path, keeper)) {
    const cure = "name another file for one of the two, and start this one again";
    throw new StateFileError(`Cannot write the state file ${path}: another process has written it since: ${cure}`);
  }
  writeStateFile(path, emulator, keeper);
}

/** True if the file begins as this keeper writes it. A file that was removed is made anew. */
function isKept(path: string, keeper: string): boolean {
  const beginning = Buffer.from(`{"version":${version},"keeper":"${keeper}",`);
  try {
    const file = openSync(path, "r");
    try {
      const found = Buffer.alloc(beginning.length);
      readSync(file, found, 0, found.length, 0);
      return found.equals(beginning);
    } finally {
      closeSync(file);
    }
  } catch {
    // The writing says why the file can't be reached
    return true;
  }
}

function read(path: string, bytesMax: number): string | undefined {
  const refuse = (state: string) => new StateFileError(`Cannot read the state file ${path}: ${state}`);
  let bytes: Buffer;
  try {
    const found = statSync(path);
    if (!found.isFile()) throw refuse("it is not a file: name a file");
    if (found.size > bytesMax) throw refuse(`it is larger than ${bytesMax} bytes: name a state file`);
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof StateFileError) throw error;
    const code = codeOf(error);
    if (code === "ENOENT") return undefined;
    throw refuse(code === "EACCES" ? "permission denied: let posline's user read it" : (code ?? String(error)));
  }
  return bytes.toString("utf8");
}

function writeReason(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return "there is no such folder: create it, or name another";
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return "permission denied: posline's user must be able to write into its folder, since each state is a new file";
  }
  if (code === "ENOSPC") return "the disk is full: free some space";
  return messageOf(error);
}
