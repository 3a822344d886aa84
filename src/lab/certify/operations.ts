import { setTimeout as pause } from "node:timers/promises";
import { routeOf } from "../../contract/contracts.ts";
import { requiredOf, schemasOf } from "../../contract/schema.ts";
import { settlingRules, settlingRulesOf } from "../../contract/settling.ts";
import { nowMs } from "../../core/clock.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { hasCode, refusesStart, verdictIn } from "../../settle/proof.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { absent, absentCodes, type Codes, codeText, lacking, refusalFinding, rightRefused } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";
import { both, type Row, type Sentences } from "./check.ts";

/**
 * An operation is started, and asked about until an answer names its end by the contract's own rules. Then it is asked about in other words,
 * which must have the same answer; and right requests with one thing wrong must be refused.
 */

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
  if (isRefused) throw new CheckEnd(rightRefused(asker, `the ${what}`, start));
  const isAbsent = polls.length > 0 && polls.every(({ code }) => hasCode(asker.contract.finals.absentCodes, code));
  if (isAbsent && start.status === "success")
    throw new CheckEnd(failed(`It took the ${what}, and answers about it that there is none`));
  const why = `The ${what} of key ${key} had not ended after ${polls.length} questions: look at the terminal`;
  throw new CheckEnd(untested(why));
}

/** Judges that an operation ends, and that until then it is called in progress. */
export async function endFinding(asker: Asker, operation: Promise<FollowedToEnd>): Promise<CaseResult> {
  const followed = await operation;
  const end = ended(asker, followed);
  const { pendingCodes } = asker.contract.finals;
  const isOdd = (answer: TerminalAnswer) =>
    answer.status === "error" && !namesEnd(asker, answer) && !hasCode(pendingCodes, answer.code);
  const odd = followed.polls.find(isOdd);
  if (odd !== undefined) return failed(`It answered about the ${followed.what} in progress with an error${codeText(odd)}`);
  return passed(`The ${followed.what} ended with status ${String(end.status)}`);
}

/** Whether an answer names an end, if only its status fitted. */
export function namesEnd({ contract }: Asker, { json, status }: TerminalAnswer): boolean {
  if (contract.finals.errorIsFinal && status === "error") return true;
  // Where an end stands in an answer, and in which words, is the same for all operations of a contract.
  const [rules] = settlingRules[contract.service];
  return rules !== undefined && [true, false].some((success) => verdictIn({ contract, rules }, json, success) !== undefined);
}

/**
 * Starts an operation, and asks about it until its end is named.
 * @param what As people call it, and behind its key.
 * @param ask Asks something once its start was answered.
 */
export async function follow(
  asker: Asker,
  [what, route, body]: readonly [what: string, route: string, body: JsonObject],
  ask?: () => Promise<TerminalAnswer>,
): Promise<FollowedToEnd> {
  const { contract, pace } = asker;
  const key = asker.key(what);
  if (!(await asker.serves(route))) throw new CheckEnd(untested(`It lists no ${route}`));
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

/** What tells an end from others. */
function factsOf(answer: TerminalAnswer): string {
  const { status, json } = answer;
  const { status: end = json["docStatus"], txn_id, rrn } = dataIn(answer);
  return [status, end, txn_id, rrn, json["documentID"], json["fiscalNum"]].filter((each) => each !== undefined).join(", ");
}

/** Other questions that must have the same answer. */
type Questions = (body: JsonObject, end: TerminalAnswer) => readonly (JsonObject | string)[];

/** The same JSON with white space, with its letters e written as escapes, and with its fields in another order. */
const spellings: Questions = (body) => {
  const text = JSON.stringify(body);
  const escaped = text.replaceAll(/:"[^"]*"/g, (value) => value.replaceAll("e", "\\u0065"));
  return [JSON.stringify(body, null, 2), escaped, Object.fromEntries(Object.entries(body).reverse())];
};

const withOptions: Questions = (body) =>
  [{ language: "en" }, { language: "xx" }, { no_print_data: true }].map((option) => ({ ...body, ...option }));

const byId: Questions = (_, { json: { documentID } }) => (documentID === undefined ? [] : [{ documentID }]);

const recovery: Sentences = {
  bank: "What the service does: pay_id is the idempotency key and the state-recovery key.",
  qr: "What the service does: Stable identifiers pay_id and trans are used for polling and recovery.",
  fiscal: "What the service does, rule 6: documentExtID is the external key of choice for first sends and recovery.",
};
const json = both("Serial: and the JSON body", "Endpoints: Base64 of the UTF-8 JSON business payload");
const optional: Sentences = { bank: "Status query request: language (string, optional)" };
const ids: Sentences = { fiscal: "Endpoints: documentExtID (string); at least one required" };

/** Of an operation that ended. */
export function againRows(followed: (asker: Asker) => Promise<FollowedToEnd>): readonly Row[] {
  const asked = async (asker: Asker, again: Questions): Promise<CaseResult> => {
    const operation = await followed(asker);
    const [route, body] = operation.question;
    const end = ended(asker, operation);
    const first = factsOf(end);
    for (const question of again(body, end)) {
      const now = factsOf(await asker.ask(route, question));
      if (now !== first) return failed(`Asked ${JSON.stringify(question)}, it answered ${now}; and before ${first}`);
    }
    return passed(`It answered ${first} each time`);
  };
  const later = async (asker: Asker) => {
    ended(asker, await followed(asker));
    await asker.waitIdle();
    return asked(asker, (body) => [body]);
  };
  return [
    ["spelled", "the same question in other JSON", json, (asker) => asked(asker, spellings)],
    ["options", "its optional fields", optional, (asker) => asked(asker, withOptions)],
    ["by-id", "a document by its documentID", ids, (asker) => asked(asker, byId)],
    ["remembered", "an end that is asked for later", recovery, later],
  ];
}

/** A right body of a route. @throws CheckEnd without what it refers to. */
export type RightBody = (asker: Asker, name: string) => Promise<JsonObject>;

/** The wrong bodies that are made of a right one. */
type Wrong = (body: JsonObject, required: readonly string[]) => readonly JsonObject[];

const withoutEach: Wrong = (body, required) =>
  required.map((name) => Object.fromEntries(Object.entries(body).filter(([field]) => field !== name)));

/** Of bodies that have the field. */
export function having(field: string, ...values: readonly unknown[]): Wrong {
  return (body) => (body[field] === undefined ? [] : values.map((value) => ({ ...body, [field]: value })));
}

export type WrongRow = readonly [name: string, what: string, sentences: Sentences, wrong: Wrong, codes?: Codes];

const minor = "What the service does: Amounts are integer minor units.";
const whole: Sentences = { bank: "Limits: integer minor units", qr: "Limits: long, minor units", fiscal: minor };

/** Another operation's name: a key that differs in its last character, or a number that none has. Where it would be new, it isn't wrong. */
const others: Wrong = (body) => {
  if (body["trans"] === undefined && (body["amount"] ?? body["items"]) !== undefined) return [];
  const changed = (name: string, value: unknown) =>
    name === "documentID" ? Number.MAX_SAFE_INTEGER : String(value).replace(/.$/, "1");
  const named = Object.entries(body).filter(([name]) => ["pay_id", "documentExtID", "documentID"].includes(name));
  return named.map(([name, value]) => ({ ...body, [name]: changed(name, value) }));
};

const usual: readonly WrongRow[] = [
  ["other-key", "for what differs in its key's last character", absent, others, absentCodes],
  ["lacking", "that lacks a field", lacking, withoutEach, { fiscal: 3 }],
  ["fraction", "with a fraction for its amount", whole, having("amount", 1.5, "1.00")],
];

/** What refers to an operation that didn't come about is left out. */
export function orNothing(error: unknown): undefined {
  if (!(error instanceof CheckEnd)) throw error;
}

/** @param taken What is asked about one that wasn't refused; its answer is judged in place of the first. */
export function wrongRows(
  rights: Readonly<Record<string, RightBody>>,
  more: readonly WrongRow[],
  taken: (asker: Asker, body: JsonObject) => Promise<TerminalAnswer | undefined> = async () => undefined,
): readonly Row[] {
  return [...usual, ...more].map(([name, what, sentences, wrong, codes]) => {
    const run = async (asker: Asker) => {
      const { service } = asker.contract;
      let count = 0;
      for (const [route, right] of Object.entries(rights)) {
        const body = (await asker.serves(route)) ? await right(asker, `${name}-${count}`).catch(orNothing) : undefined;
        for (const each of body === undefined ? [] : wrong(body, requiredOf(schemasOf(service, route)?.request))) {
          count++;
          let answer = await asker.ask(route, each);
          if (answer.status !== "error") answer = (await taken(asker, each)) ?? answer;
          if (answer.code === -80) break;
          const refusal = refusalFinding(answer, `to ${route} ${what}: ${JSON.stringify(each)}`, codes?.[service]);
          if (refusal.verdict !== "passed") return refusal;
        }
      }
      return count === 0 ? untested("There is nothing to refer to") : passed(`It refused ${count} requests ${what}`);
    };
    return [name, `a request ${what}`, sentences, run] as const;
  });
}
