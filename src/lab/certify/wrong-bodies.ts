import { requiredOf, schemasOf } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { passed, untested } from "../report/judgement.ts";
import { refusalFinding } from "./answers.ts";
import { type Asker, CheckEnd, type TerminalAnswer } from "./asker.ts";
import type { Row, Sentence } from "./check.ts";

/** Right requests of which one field is left out or changed, on each route that has it: each must be refused. */

/** A right body of a route. @throws CheckEnd without what it refers to. */
export type RightBody = (asker: Asker, name: string) => Promise<JsonObject>;

/** The wrong bodies that are made of a right one. */
type Wrong = (body: JsonObject, required: readonly string[]) => readonly JsonObject[];

const lacking: Wrong = (body, required) =>
  required.map((name) => Object.fromEntries(Object.entries(body).filter(([field]) => field !== name)));

/** Bodies that have the field. */
export const having =
  (field: string, ...values: readonly unknown[]): Wrong =>
  (body) =>
    body[field] === undefined ? [] : values.map((value) => ({ ...body, [field]: value }));

export type WrongRow = readonly [name: string, what: string, sentence: Sentence, wrong: Wrong, code?: number | undefined];

/** No decimal separators, and no floats. */
const fractions = having("amount", 1.5, "1.00");

const usual = (missing: Sentence, odd: Sentence, code?: number): readonly WrongRow[] => [
  ["lacking", "that lacks a field", missing, lacking, code],
  ["fraction", "with a fraction for its amount", odd, fractions],
];

const usualRows: Readonly<Record<ContractName, readonly WrongRow[]>> = {
  bank: usual(
    "Errors: -29 | invalid request parameters or body",
    "Financial operation request: All money fields are integers in minor units (no decimal separators, no floats).",
  ),
  qr: usual("Endpoints: Request bodies (types; R = required)", "Limits: amount | long, minor units"),
  fiscal: usual(
    "Errors, rule 2: Missing required field: code 3.",
    "What the service does, rule 2: Amounts are integer minor units.",
    3,
  ),
};

/** What refers to an operation that didn't come about is left out. */
function untestedOnly(error: unknown): undefined {
  if (!(error instanceof CheckEnd)) throw error;
}

/** @param taken What is done about one that wasn't refused. */
export function wrongRows(
  service: ContractName,
  rights: Readonly<Record<string, RightBody>>,
  more: readonly WrongRow[],
  taken: (asker: Asker, body: JsonObject) => Promise<unknown> = async () => {},
): readonly Row[] {
  return [...usualRows[service], ...more].map(([name, what, sentence, wrong, code]) => [
    service,
    name,
    `a request ${what}`,
    sentence,
    async (asker) => {
      let count = 0;
      for (const [route, right] of Object.entries(rights)) {
        const body = await right(asker, `${name}-${count}`).catch(untestedOnly);
        if (body === undefined) continue;
        for (const each of wrong(body, requiredOf(schemasOf(service, route)?.request))) {
          count++;
          const answer: TerminalAnswer = await asker.ask(route, each);
          if (answer.status !== "error") await taken(asker, each);
          const refusal = refusalFinding(answer, `to ${route} ${what}: ${JSON.stringify(each)}`, code);
          if (refusal.verdict !== "passed") return refusal;
        }
      }
      return count === 0 ? untested("There is nothing to refer to") : passed(`It refused ${count} requests ${what}`);
    },
  ]);
}
