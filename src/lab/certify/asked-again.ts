import { setTimeout as pause } from "node:timers/promises";
import type { ContractName } from "../../core/call.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed } from "../report/judgement.ts";
import { codeText } from "./answers.ts";
import { type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import type { Row, Sentence } from "./check.ts";

/** An operation that has ended is asked about again: in other words, after a while, and under another key. */

/** An end, and the question that it answered. */
export interface AskedEnd {
  readonly end: TerminalAnswer;
  readonly body: JsonObject;
}

/** What tells an end from others. */
export function factsOf({ status, json, ...answer }: TerminalAnswer): string {
  const data = dataIn({ status, json, ...answer });
  const ids = [data["txn_id"], data["rrn"], json["documentID"], json["fiscalNum"]];
  return [status, data["status"] ?? json["docStatus"], ...ids].filter((each) => each !== undefined).join(", ");
}

/** Other questions that must have the same answer. */
type Questions = (body: JsonObject, end: TerminalAnswer) => readonly (JsonObject | string)[];

/** The same JSON with white space, with its letters e written as escapes, and with its fields in another order. */
const spellings: Questions = (body) => {
  const text = JSON.stringify(body);
  const escaped = text.replaceAll(/:"[^"]*"/g, (value) => value.replaceAll("e", "\\u0065"));
  return [JSON.stringify(body, null, 2), escaped, Object.fromEntries(Object.entries(body).reverse())];
};

const inLanguages: Questions = (body) => ["en", "ru", "xx"].map((language) => ({ ...body, language }));

const byId: Questions = (_, { json: { documentID } }) => (documentID === undefined ? [] : [{ documentID }]);

type AgainRow = readonly [name: string, title: string, sentences: Partial<Record<ContractName, Sentence>>, again: Questions];

const rows: readonly AgainRow[] = [
  [
    "spelled",
    "the same question in other JSON",
    {
      bank: "Endpoints, Serial transport: <route>, a newline, and the JSON body.",
      qr: "Endpoints, Serial: :<port><route>, a newline and the JSON body.",
      fiscal: "Endpoints, HTTP request envelope: data (required, Base64 of the UTF-8 JSON business payload)",
    },
    spellings,
  ],
  ["language", "language", { bank: "Status query request: language (string, optional)" }, inLanguages],
  ["by-id", "a document by its documentID", { fiscal: "Endpoints: documentExtID (string); at least one required" }, byId],
];

const recovery: Readonly<Record<ContractName, Sentence>> = {
  bank: "What the service does: pay_id is the idempotency key and the state-recovery key.",
  qr: "What the service does: Stable identifiers pay_id and trans are used for polling and recovery.",
  fiscal: "What the service does, rule 6: documentExtID is the external key of choice for first sends and recovery.",
};

/** Those of a service. @param key The field that names its operations. */
export function againRows(
  service: ContractName,
  route: string,
  key: string,
  endOf: (asker: Asker) => Promise<AskedEnd>,
): readonly Row[] {
  const asked = async (asker: Asker, again: Questions): Promise<CaseResult> => {
    const { end, body } = await endOf(asker);
    const first = factsOf(end);
    for (const question of again(body, end)) {
      const now = factsOf(await asker.ask(route, question));
      if (now !== first) return failed(`Asked ${JSON.stringify(question)}, it answered ${now}; and before ${first}`);
    }
    return passed(`It answered ${first} each time`);
  };
  const later = async (asker: Asker) => {
    await endOf(asker);
    asker.note("bridge", `asks nothing for ${asker.pace.idleMs / 1_000} s`);
    await pause(asker.pace.idleMs);
    return asked(asker, (body) => [body]);
  };
  /** A key that differs in its last character alone. */
  const otherKey = async (asker: Asker) => {
    const { end, body } = await endOf(asker);
    const answer = await asker.ask(route, { ...body, [key]: String(body[key]).replace(/.$/, "1") });
    const { absentCodes } = asker.contract.finals;
    const isAbsent = answer.status === "error" && (absentCodes.length === 0 || absentCodes.includes(Number(answer.code)));
    if (isAbsent) return passed(`It has nothing under another key${codeText(answer)}`);
    return failed(`Under another key it answered ${factsOf(answer)}${codeText(answer)}; the last one's end is ${factsOf(end)}`);
  };
  return [
    ...rows.flatMap(([name, title, { [service]: sentence }, again]): Row[] =>
      sentence === undefined ? [] : [[service, name, title, sentence, (asker) => asked(asker, again)]],
    ),
    [service, "other-key", "a key that differs in its last character", recovery[service], otherKey],
    [service, "kept", "an end that is asked for later", recovery[service], later],
  ];
}
