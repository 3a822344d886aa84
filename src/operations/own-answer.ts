import { contracts } from "../contract/contracts.ts";
import type { OperationLogEnding } from "../contract/operation-log.ts";
import type { Call } from "../core/call.ts";
import type { Ids } from "../core/followed.ts";
import { keyOf, textOf } from "../envelope/json.ts";
import { isStoredWhole, type JournalOperation, type OutcomeRecord, type SettledRecord } from "../journal/record.ts";
import { emptySummary } from "../settle/call-result.ts";
import { scalarText } from "../settle/exact-json.ts";
import type { Fact, Said } from "../settle/fact.ts";
import { type JudgedOperation, type Known, provenEnd } from "../settle/judge.ts";
import { saidToStart } from "../settle/said.ts";
import { answeredOf } from "./question.ts";

/** The answer to an operation's own sending: as it is heard, as its record has it, and as that is read after a restart. */

/** What it says. */
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

/** What it says, as far as its record has it. */
export function saidInRecord(
  { rules }: Pick<JudgedOperation, "rules">,
  { outcome, code, begun, end, learned: name, message }: Omit<OutcomeRecord, "kind" | "timeMs" | "sent">,
): Said {
  const unprinted = code !== undefined && rules.print?.code === code ? ({ unprinted: true } as const) : {};
  if (outcome !== "answered") return { says: message === undefined ? "nothing" : "error", code, message };
  if (begun === false) return { says: "refused", code };
  if (end !== undefined) return { says: "end", end, name };
  if (begun === true) return { says: "going", name, ...unprinted };
  // Of its code alone nobody knows what it was an answer to
  return { says: "error", name, code, message };
}

/** The records of a sending whose process has ended. */
interface RecordedSending extends Partial<Pick<JournalOperation, "ending" | "isFound">> {
  readonly before: Ids | null;
  readonly sentMs: number;
  readonly settled?: Pick<SettledRecord, "result" | "by"> | undefined;
}

/** The facts that records have. @param atMs When they are read. */
export function factsIn(
  operation: JudgedOperation | undefined,
  { before, sentMs, ending, isFound, settled }: RecordedSending,
  atMs: number,
): readonly Fact[] {
  const said = operation && ending && saidInRecord(operation, ending);
  return [
    { is: "sent", atMs: sentMs, before },
    ...(said === undefined ? [] : [{ is: "answered", atMs, said } as const]),
    { is: "resumed", atMs },
    ...(isFound === true ? [{ is: "told", atMs, said: { says: "going" } } as const] : []),
    ...(settled === undefined ? [] : [{ is: "ended", atMs, end: settled.result, by: settled.by } as const]),
  ];
}
