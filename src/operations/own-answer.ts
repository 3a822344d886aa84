import { contracts } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import type { Call } from "../core/call.ts";
import { keyOf, textOf } from "../envelope/json.ts";
import { isStoredWhole, type OutcomeRecord } from "../journal/record.ts";
import { emptySummary } from "../settle/call-result.ts";
import { scalarText } from "../settle/exact-json.ts";
import type { Said } from "../settle/fact.ts";
import { type JudgedOperation, type Known, provenEnd } from "../settle/judge.ts";
import { saidToStart } from "../settle/said.ts";
import { answeredOf } from "./question.ts";

/** What the answer to an operation's own sending says. */
export function ownAnswer(operation: JudgedOperation, call: Call, ending: OperationLogEnding): Said {
  const { outcome, status, code, payload = [] } = ending;
  if (outcome !== "answered") return { says: "nothing" };
  const { keyField } = operation;
  const whole = answeredOf(textOf(payload))?.reply ?? {};
  // A call's key is cut, a terminal's isn't, so this one is cut before they are compared.
  const key = keyOf(scalarText(whole[keyField]));
  const reply = key === whole[keyField] ? whole : { ...whole, [keyField]: key };
  const summary = { ...emptySummary, code, message: scalarText(reply["message"]) };
  const answered = { outcome, reply, success: status === "success", summary } as const;
  const said = saidToStart({ ...operation, contract: contracts[call.contract], key: call.key }, answered);
  // Its words are kept only if no question will say more
  return operation.asks ? { ...said, message: undefined } : said;
}

/** Facts of the answer, as its record has them. */
export function recordedOf(
  { asks, rules }: JudgedOperation,
  { says, name, message = "" }: Said,
  known: Known,
): Pick<OutcomeRecord, "begun" | "learned" | "end" | "message"> {
  const end = provenEnd(known);
  // A success without a name means the till's own (qr.md, Endpoints: data.trans must be saved and used)
  const learned = rules.learns === undefined ? undefined : (name ?? (says === "going" ? known.name : undefined));
  return {
    begun: known.isAccepted && end === undefined ? true : undefined,
    end,
    ...(learned !== undefined && isStoredWhole(learned) && { learned }),
    // No question will say more
    message: !asks && says === "error" ? message : undefined,
  };
}
