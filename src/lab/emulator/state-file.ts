import { createHash, randomBytes } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { codeOf, messageOf } from "../../core/error-code.ts";
import { isObject, type JsonObject } from "../../core/json-object.ts";
import { replaceFile } from "../../core/replace-file.ts";
import { fieldsOf } from "./answer.ts";
import type { Emulator } from "./emulator.ts";
import { parseExact, writeExact } from "./exact-json.ts";
import { rememberedBytesMax } from "./service-context.ts";

/**
 * The emulator's memory in a file: written whole after each change, in place of the file before, so that at any moment there is one whole
 * state on disk. Its digest says that it is as the emulator wrote it, so nothing in it is checked for itself. Another file may be another
 * program's, and stays as it is; so does one that another process has begun to keep its state in.
 */

/** The form of the file, to be raised with each change of what a service remembers. A file of another version is refused. */
const version = 2n;

/** Bytes of a file that is read, for each service that is played: twice the most that one remembers. */
const serviceBytesMax = 2 * rememberedBytesMax;

/** What of an emulator the file keeps. */
export type KeptEmulator = Pick<Emulator, "services" | "contracts" | "aheadMs" | "worldMark" | "advance" | "saved">;

/** A state file can't be used. The process exits with `exitCode`, and the file is as it was. */
export class StateFileError extends Error {
  override readonly name = "StateFileError";
  /** EX_CONFIG of sysexits, as for a configuration. */
  readonly exitCode = 78;
}

/**
 * Takes back the file's content; a file that isn't there yet holds nothing.
 * @throws StateFileError if it isn't as the emulator wrote it; the emulator that was to take it back is of no use then.
 */
export function readStateFile(path: string, emulator: KeptEmulator): void {
  const { services: played, contracts } = emulator;
  const text = read(path, Object.keys(played).length * serviceBytesMax);
  if (text === undefined) return;
  const refuse = (state: string) => {
    const cure = "move it away to start with an empty state, or name another file";
    return new StateFileError(`Cannot use the state file ${path}: ${state}: ${cure}`);
  };
  const file = parseExact(text);
  if (file === undefined) throw refuse(text === "" ? "it is empty" : "it is not a JSON object");
  if (file["version"] !== version) throw refuse(`its version is not ${version}`);
  const { sha256, state } = file;
  if (!isState(state, sha256)) throw refuse("it is damaged, or somebody has changed it");
  if (state.world !== emulator.worldMark) throw refuse("it was made in another world");
  for (const [name, contract] of Object.entries(state.contracts)) {
    // A service that is not taken back would be lost with the next write.
    if (contracts[name] !== contract) throw refuse(`services.${name}: the configuration has no such service`);
    played[name]?.restore(fieldsOf(state.services[name]));
  }
  emulator.advance(Number(state.aheadMs));
}

interface EmulatorState extends JsonObject {
  /** Tells its world from others; undefined for the built-in one. */
  readonly world: string | undefined;
  readonly aheadMs: bigint;
  readonly contracts: Emulator["contracts"];
  readonly services: JsonObject;
}

const digestOf = (state: JsonObject) => createHash("sha256").update(writeExact(state)).digest("hex");

/** True of what the emulator wrote. */
const isState = (state: unknown, sha256: unknown): state is EmulatorState => isObject(state) && digestOf(state) === sha256;

/** How far the emulator's time may be moved on, in milliseconds: a thousand years, which every date can still be written in. */
export const aheadMsMax = 1_000 * 365 * 86_400_000;

/** A new mark for a process that keeps its state in a file. */
export const newKeeper = () => randomBytes(8).toString("hex");

/**
 * Writes the whole memory, to the disk. From then on the file is its keeper's, if one is named.
 * @throws StateFileError saying why it can't be written, and what to do.
 */
export function writeStateFile(path: string, emulator: KeptEmulator, keeper?: string): void {
  const { worldMark: world, aheadMs, contracts } = emulator;
  const state: EmulatorState = { world, aheadMs: BigInt(aheadMs), contracts, services: emulator.saved() };
  try {
    replaceFile(path, `${writeExact({ version, keeper, sha256: digestOf(state), state })}\n`);
  } catch (error) {
    throw new StateFileError(`Cannot write the state file ${path}: ${writeReason(error)}`);
  }
}

/**
 * Writes the whole memory, if the file is still the keeper's: the content of another process is not to be lost.
 * @throws StateFileError if it can't be written, or is another's.
 */
export function updateStateFile(path: string, emulator: KeptEmulator, keeper: string): void {
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
