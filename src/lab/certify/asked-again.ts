import type { JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed } from "../report/judgement.ts";
import { codeText } from "./answers.ts";
import { type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import type { Row, Sentences } from "./check.ts";
import { ended, type FollowedToEnd } from "./follow.ts";

/** An operation that has ended is asked about again: in other words, after a while, and under another key. */

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
const json: Sentences = {
  bank: "Endpoints, Serial transport: <route>, a newline, and the JSON body.",
  qr: "Endpoints, Serial: :<port><route>, a newline and the JSON body.",
  fiscal: "Endpoints, HTTP request envelope: data (required, Base64 of the UTF-8 JSON business payload)",
};
const optional: Sentences = { bank: "Status query request: language (string, optional)" };
const ids: Sentences = { fiscal: "Endpoints: documentExtID (string); at least one required" };

/** Of an operation that ended. @param key The field that names it. */
export function againRows(key: string, followed: (asker: Asker) => Promise<FollowedToEnd>): readonly Row[] {
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
  /** A key that differs in its last character alone. */
  const otherKey = async (asker: Asker) => {
    const operation = await followed(asker);
    const [route, body] = operation.question;
    ended(asker, operation);
    const answer = await asker.ask(route, { ...body, [key]: String(body[key]).replace(/.$/, "1") });
    const { absentCodes } = asker.contract.finals;
    const isAbsent = answer.status === "error" && (absentCodes.length === 0 || absentCodes.includes(Number(answer.code)));
    if (isAbsent) return passed(`It has nothing under another key${codeText(answer)}`);
    return failed(`Under another key than the last one's it answered ${factsOf(answer)}${codeText(answer)}`);
  };
  return [
    ["spelled", "the same question in other JSON", json, (asker) => asked(asker, spellings)],
    ["options", "its optional fields", optional, (asker) => asked(asker, withOptions)],
    ["by-id", "a document by its documentID", ids, (asker) => asked(asker, byId)],
    ["other-key", "a key that differs in its last character", recovery, otherKey],
    ["remembered", "an end that is asked for later", recovery, later],
  ];
}
