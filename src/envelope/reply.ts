import type { JsonObject } from "../core/json-object.ts";
import { wholeOf } from "./json.ts";
import { Names, readMembers } from "./members.ts";

/** What a reply says of itself, read once, so that nobody parses it again. */
export interface ReadReply {
  /** What posline looks at of it, and no more: `status`, `code`, `message`, and the lists by which a probe's answer is known. */
  readonly json: JsonObject;
  readonly status: string | undefined;
  readonly code: number | undefined;
}

/** How deep objects and lists may nest in a reply. The deepest documented one has five levels, and a till's parser may recurse. */
export const replyDepthMax = 64;

/** Barriers' answers: `operations` at the top (fiscal) or in `data` (bank), `data.systems` (qr). */
const looked = new Names({
  status: true,
  code: true,
  message: true,
  operations: true,
  data: { operations: true, systems: true },
});

/** Why a reply wasn't read, as it stands behind "it is". */
export type UnreadReply = "no JSON object" | typeof tooDeep;

const tooDeep = `nested deeper than ${replyDepthMax} levels` as const;

/**
 * Reads a reply's payload, or says why it is none that a service answers. Whatever it holds, this takes time by its bytes alone, and
 * little memory.
 */
export function readReply(payload: readonly Buffer[]): ReadReply | UnreadReply {
  const read = readMembers(wholeOf(payload), looked, replyDepthMax);
  if (read === "nested too deeply") return tooDeep;
  if (typeof read === "string") return read;
  const { json } = read;
  const status = json["status"];
  const code = json["code"];
  return {
    json,
    status: typeof status === "string" ? status.slice(0, 16) : undefined,
    code: typeof code === "number" ? code : undefined,
  };
}
