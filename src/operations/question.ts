import type { Contract, Polling, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { SettlingRules } from "../contract/settling.ts";
import { type JsonObject, looseInteger } from "../core/json-object.ts";
import { quotedName } from "../core/log-text.ts";
import { parseObject } from "../envelope/json.ts";
import { emptySummary } from "../settle/call-result.ts";
import { parseExactObject, scalarText, writeExactObject } from "../settle/exact-json.ts";
import type { Said } from "../settle/fact.ts";
import type { JudgedOperation } from "../settle/judge.ts";
import type { AnsweredCall } from "../settle/proof.ts";
import { fieldOf, operationOf, type Sending } from "./sending.ts";

/** The contract's question about an operation, and the meaning of its answers. */

/** An operation that its contract has a question about, under its rules. */
export interface Subject {
  readonly route: Route;
  readonly polling: Polling;
  readonly rules: SettlingRules;
  readonly followed: JudgedOperation;
}

/** @param contract The service's, by which the sending is judged from here on. */
export function subjectOf(contract: Contract, sending: Sending): Subject | undefined {
  if (sending.contract !== contract.service) Object.assign(sending, { contract: contract.service, known: undefined });
  const route = routeOf(contract, sending.sent.route);
  if (route?.polling === undefined) return undefined;
  const followed = operationOf(sending);
  return followed && { route, polling: route.polling, rules: followed.rules, followed };
}

/** The question's body, as JSON. @param learned The name that the operation's own answer gave. */
export function questionText(sending: Sending, { route, polling, rules }: Subject, learned: string | undefined): string {
  const fields = polling.keys.map((name) => [name, name === rules.learns ? learned : fieldOf(sending, name, route.key)]);
  return writeExactObject(Object.fromEntries(fields));
}

/** True if a question names this operation: by its key, by all its other fields except the learned one, and by no number of another. */
export function asksAbout(sending: Sending, { route, polling, rules, followed }: Subject, asked: JsonObject): boolean {
  if (scalarText(asked[followed.keyField]) !== scalarText(followed.key)) return false;
  if (polling.ownNumber !== undefined && asked[polling.ownNumber] !== undefined) return false;
  const others = polling.keys.filter((name) => name !== followed.keyField && name !== rules.learns);
  return others.every((name) => scalarText(asked[name]) === scalarText(fieldOf(sending, name, route.key)));
}

/** So many digits one after the other may be a number that loses some of them; the exact reader takes ten times as long. */
const longDigits = /\d{16}/;

/** An answer as the settle machine takes it; undefined if the contract has no such answer. */
export function answeredOf(text: string): AnsweredCall | undefined {
  const reply = (longDigits.test(text) ? parseExactObject(text) : undefined) ?? parseObject(text);
  const status = reply?.["status"];
  if (reply === undefined || (status !== "success" && status !== "error")) return undefined;
  const [code, message] = [looseInteger(reply["code"]), scalarText(reply["message"])];
  return {
    outcome: "answered",
    success: status === "success",
    reply,
    summary: { ...emptySummary, code, message },
  };
}

/** An answer in words, for people. */
export function answerWords({ success, summary: { code } }: Pick<AnsweredCall, "success" | "summary">): string {
  const status = success ? "success" : "error";
  return code === undefined ? status : `${status}, code ${code}`;
}

/** An error in words, with the terminal's own. */
export function errorText({ code, message }: Pick<Said, "code" | "message">): string {
  const summary = { ...emptySummary, code };
  return answerWords({ success: false, summary }) + (message === undefined ? "" : `, ${quotedName(message)}`);
}
