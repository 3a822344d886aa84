import { type JsonObject, looseInteger } from "../core/json-object.ts";
import { parseBounded, type Unparsed } from "./bounded-json.ts";
import { wholeOf } from "./json.ts";

/** A reply's own words, read once, so that nobody parses it again. */
export interface ReadReply {
  readonly json: JsonObject;
  readonly status: string | undefined;
  readonly code: number | undefined;
}

/** Reads a reply's payload, or says why it isn't one of a service. */
export function readReply(payload: readonly Buffer[]): ReadReply | Unparsed {
  const read = parseBounded(wholeOf(payload));
  if (typeof read === "string") return read;
  const { json } = read;
  const status = json["status"];
  return {
    json,
    status: typeof status === "string" ? status.slice(0, 16) : undefined,
    code: looseInteger(json["code"]),
  };
}
