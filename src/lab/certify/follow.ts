import { setTimeout as pause } from "node:timers/promises";
import { routeOf } from "../../contract/contracts.ts";
import { settlingRules, settlingRulesOf } from "../../contract/settling.ts";
import { nowMs } from "../../core/clock.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { hasCode, refusesStart, verdictIn } from "../../settle/proof.ts";
import { failed, untested } from "../report/judgement.ts";
import { refused } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";

/** An operation is started and asked about until an answer names its end, by the contract's own rules. A check judges the answers. */

export interface FollowedToEnd {
  /** As people call it: `sale`. */
  readonly what: string;
  readonly key: string;
  /** How it is asked about. */
  readonly question: readonly [route: string, body: JsonObject];
  readonly start: TerminalAnswer;
  /** What was answered to the questions about it. */
  readonly polls: readonly TerminalAnswer[];
  /** The answer to what was asked right after the start. */
  readonly meanwhile: TerminalAnswer | undefined;
  /** The answer with the end; undefined if none came while it was followed. */
  readonly end: TerminalAnswer | undefined;
  /** It is proven that the start was refused. */
  readonly isRefused: boolean;
}

/** @throws CheckEnd for one that hasn't ended, or was refused. */
export function ended(asker: Asker, { what, key, start, polls, end, isRefused }: FollowedToEnd): TerminalAnswer {
  if (end !== undefined) return end;
  if (isRefused) throw new CheckEnd(refused(asker, `the ${what}`, start));
  const isAbsent = polls.length > 0 && polls.every(({ code }) => hasCode(asker.contract.finals.absentCodes, code));
  if (isAbsent && start.status === "success")
    throw new CheckEnd(failed(`It took the ${what}, and answers about it that there is none`));
  const why = `The ${what} of key ${key} had not ended after ${polls.length} questions: look at the terminal`;
  throw new CheckEnd(untested(why));
}

/** Whether an answer names an end, if only its status fitted. */
export function namesEnd({ contract }: Asker, { json }: TerminalAnswer): boolean {
  // Where an end stands in an answer, and in which words, is the same for all operations of a contract.
  const [rules] = settlingRules[contract.service];
  return rules !== undefined && [true, false].some((success) => verdictIn({ contract, rules }, json, success) !== undefined);
}

/** What is followed: what people call it, the name behind its key, its route and its body. */
export interface Operation {
  readonly what: string;
  readonly name: string;
  readonly route: string;
  readonly body: JsonObject;
}

/**
 * Starts an operation, and asks about it until its end is named.
 * @param ask Asks something once its start was answered.
 * @throws CheckEnd if something wasn't answered.
 */
export async function follow(asker: Asker, operation: Operation, ask?: () => Promise<TerminalAnswer>): Promise<FollowedToEnd> {
  const { contract, pace } = asker;
  const { what, name, route, body } = operation;
  const key = asker.key(name);
  const start = await asker.ask(route, body);
  const meanwhile = await ask?.();
  const rules = settlingRulesOf(contract.service, route);
  const { route: asked = route, keys = [] } = routeOf(contract, route)?.polling ?? {};
  const ids = Object.entries({ trans: key, ...body, ...dataIn(start) }).filter(([field]) => keys.includes(field));
  const question = [asked, Object.fromEntries(ids)] as const;
  const isByCode = rules !== undefined && refusesStart(rules, start.code);
  const isRefused = start.status === "error" && (isByCode || contract.finals.errorIsFinal);
  let end = rules?.startMayEnd === true && namesEnd(asker, start) ? start : undefined;
  const polls: TerminalAnswer[] = [];
  for (const untilMs = nowMs() + pace.followMs; end === undefined && !isRefused && nowMs() < untilMs; ) {
    await pause(pace.pollMs);
    const answer = await asker.ask(...question);
    polls.push(answer);
    if (namesEnd(asker, answer)) end = answer;
  }
  return { what, key, question, start, polls, meanwhile, end, isRefused };
}
