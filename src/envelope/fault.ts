import type { Contract, FaultWord } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { type Fault, faultClasses } from "../core/fault.ts";
import { readReply } from "./reply.ts";

/**
 * Writes faults to the till, over HTTP and on a line.
 *
 * A till on a line reads the body alone, and many do over HTTP. So a fault's body is never one that the contract lets a till read as final
 * unless that is proven. Which word that leaves for a route and an outcome is the contract's (`faultWords`); the word is written here, and
 * nowhere else.
 */

/** A fault's body. */
export interface FaultBody {
  readonly word: FaultWord;
  /** The body's `status` and `code`. */
  readonly status: "success" | "error" | undefined;
  readonly code: number | undefined;
  readonly payload: Buffer;
}

type Told = Pick<Fault, "kind" | "outcome" | "reason" | "message">;

/**
 * Writes a fault's body.
 * @param path The path asked for; undefined if no request could be read.
 */
export function faultBody(contract: Contract, path: string | undefined, fault: Told): FaultBody {
  const { kind, message } = fault;
  const word = wordOf(contract, path, fault);
  const { status, code } = envelopeOf(contract, word, kind);
  return { word, status, code, payload: Buffer.from(JSON.stringify({ status, code, message })) };
}

/**
 * The HTTP status of a fault.
 * @param faultStatus 200 if tills throw other statuses away. A body without a word keeps its own, so that it is thrown away too.
 */
export function faultHttpStatus(
  contract: Contract,
  word: FaultWord,
  { kind, httpStatus }: Pick<Fault, "kind" | "httpStatus">,
  faultStatus: 200 | undefined,
): number {
  if (word === "none") return httpStatus;
  return faultStatus ?? (contract.faultsInOk.includes(kind) ? 200 : httpStatus);
}

/**
 * Writes a fault on a line. If there is no word, nothing is written: the till's own timeout is the contract's "unknown".
 *
 * An upstream posline's own words are passed on only if they may be an error here as well: it may have another version. No header says on a
 * line that the outcome is unknown, so the body does: the same code may be a terminal's own word.
 * @param path As in `faultBody`.
 */
export function faultOnLine(contract: Contract, path: string | undefined, fault: Fault): readonly Buffer[] {
  const { word, status, code, payload } = faultBody(contract, path, fault);
  const { outcome, message } = fault;
  if (word === "none") return [];
  if (outcome === "unknown") return [Buffer.from(JSON.stringify({ status, code, message, outcome }))];
  const theirs = word === "error" ? fault.details.payload : undefined;
  return theirs !== undefined && isError(theirs) ? theirs : [payload];
}

function isError(payload: readonly Buffer[]): boolean {
  const read = readReply(payload);
  return typeof read === "object" && read.status === "error";
}

function wordOf(contract: Contract, path: string | undefined, { kind, outcome, reason }: Told): FaultWord {
  // An unread request may be any route's.
  if (path === undefined) return contract.routes.every(({ faultWords }) => faultWords[outcome] === "error") ? "error" : "none";
  // A path that the contract doesn't have asks about no operation.
  const word = routeOf(contract, path)?.faultWords[outcome] ?? "error";
  // A till that goes on asking would repeat its own mistake for ever; what an upstream refuses is none of its own.
  const isOwnMistake = faultClasses[kind].httpStatus < 500 && reason !== "upstream-refused";
  return word === "in progress" && isOwnMistake ? "none" : word;
}

function envelopeOf(contract: Contract, word: FaultWord, kind: Fault["kind"]): Pick<FaultBody, "status" | "code"> {
  switch (word) {
    case "error":
      return { status: "error", code: contract.faultCodes[kind] };
    case "in progress":
      return contract.inProgress;
    case "none":
      return { status: undefined, code: undefined };
  }
}
