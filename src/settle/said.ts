import type { SettlingRules } from "../contract/settling.ts";
import type { Ids } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { isInexact, scalarText } from "./exact-json.ts";
import type { Said } from "./fact.ts";
import {
  type AnsweredCall,
  type FollowedOperation,
  finalEndIn,
  hasCode,
  isOwnRefusal,
  refusesStart,
  saysAbsent,
  saysNothing,
  saysPending,
  saysUnprinted,
  verdictIn,
} from "./proof.ts";

/** Reads an answer, once: of all its bytes this is what a judgement needs. */

const nothing: Said = { says: "nothing" };

/** What the answer to the operation itself says. */
export function saidToStart(operation: FollowedOperation, result: AnsweredCall): Said {
  if (saysNothing(operation, result)) return nothing;
  const { rules, asks } = operation;
  const { reply, success, summary } = result;
  const { code, message } = summary;
  const name = nameIn(rules, reply);
  if (success) {
    if (rules.success !== "followed" && !saysPending(operation, result))
      return { says: "end", end: rules.success, name, ids: detailsOf(operation, result).ids, code, message };
    const end = rules.startMayEnd ? verdictIn(operation, reply, true) : undefined;
    if (end === undefined && !asks) return nothing;
    return end === undefined
      ? { says: "going", name }
      : { says: "end", end, name, ...detailsOf(operation, result), code, message };
  }
  const says = asks ? classOf(operation, code) : "error";
  const isUnprinted = says === "going" && code === rules.print?.code;
  return { says, name, code, message, ...(isUnprinted && { unprinted: true }) };
}

/** The class of an error to the operation itself, by its code. */
function classOf({ rules, contract }: Pick<FollowedOperation, "rules" | "contract">, code: number | undefined): Said["says"] {
  const { pendingCodes, absentCodes } = contract.finals;
  if (hasCode(pendingCodes, code) || (code !== undefined && code === rules.print?.code)) return "going";
  if (hasCode(rules.signCodes, code)) return "sign";
  if (hasCode(rules.refusals, code)) return "refused";
  if (hasCode(rules.resendCodes, code)) return "resend";
  if (hasCode(absentCodes, code)) return "none";
  return isOwnRefusal(contract, code) ? "failed" : "error";
}

/**
 * What the answer to a question says.
 * @param asked The name by which it was asked about, if it has one that only its start's answer gives: an answer that names another is that
 * start's own, or another payment's, late.
 */
export function saidToQuestion(operation: FollowedOperation, result: AnsweredCall, asked: string | undefined): Said {
  const { rules, contract } = operation;
  const { reply, success, summary } = result;
  const { code, message } = summary;
  const name = nameIn(rules, reply);
  if (saysNothing(operation, result) || (name !== undefined && name !== asked)) return nothing;
  if (saysAbsent(operation, result)) return { says: "none", code, message };
  const end = verdictIn(operation, reply, success);
  const details = detailsOf(operation, result);
  if (end !== undefined) return { says: "end", end, ...details, code, message };
  const isUnprinted = !success && code !== undefined && code === rules.print?.code;
  const isGoing = success || isUnprinted || hasCode(contract.finals.pendingCodes, code);
  if (isGoing) return { says: "going", ...details, ...(isUnprinted && { unprinted: true }) };
  if (contract.finals.errorIsFinal) return { says: "failed", code, message };
  return { says: refusesStart(rules, code) ? "refused" : "error", ...details, code, message };
}

function detailsOf(operation: FollowedOperation, result: AnsweredCall): Pick<Said, "ids" | "unprinted"> {
  const ids = finalEndIn(operation, result.reply) === undefined ? undefined : idsIn(operation, result.reply);
  return { ...(ids && { ids }), ...(saysUnprinted(operation, result) && { unprinted: true }) };
}

/** Whether an answer may be that of a terminal that has forgotten the operation: after a day it is no fact. */
export const mayBeForgotten = ({ says }: Said): boolean => says === "none" || says === "failed";

/** Takes over the name that only the start's answer gives (qr.md, Endpoints: data.trans must be saved and used). */
function nameIn({ learns }: SettlingRules, { data }: JsonObject): string | undefined {
  return learns !== undefined && isObject(data) ? scalarText(data[learns]) : undefined;
}

/**
 * Fields by which one transaction (bank.md, Transaction result) or document (fiscal.md, Document) differs from another; what is
 * printed may vary.
 */
const identity = ["txn_id", "status", "rrn", "auth", "documentID", "fiscalID", "docStatus"] as const;

/** What an answer says of the fields above; a number that has lost digits as it was read would name another. */
function idsIn({ contract }: FollowedOperation, reply: JsonObject): Ids {
  const isForm = contract.envelope === "form";
  const source = isForm ? reply : reply["data"];
  if (!isObject(source)) return {};
  const texts = identity.flatMap((name) => {
    const text = isInexact(source[name]) ? undefined : scalarText(source[name]);
    // The envelope's own status, which fiscal has beside the document, is none of it
    return text === undefined || (isForm && name === "status") ? [] : [[name, text] as const];
  });
  return Object.fromEntries(texts);
}
