import { requiredOf, schemasOf } from "../../contract/schema.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { passed, untested } from "../report/judgement.ts";
import { type Codes, lacking, refusalFinding } from "./answers.ts";
import { type Asker, CheckEnd } from "./asker.ts";
import type { Row, Sentences } from "./check.ts";

/** Right requests of which one field is left out or changed, on each route that has it: each must be refused. */

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

const whole: Sentences = {
  bank: "Financial operation request: All money fields are integers in minor units (no decimal separators, no floats).",
  qr: "Limits: amount | long, minor units",
  fiscal: "What the service does, rule 2: Amounts are integer minor units.",
};

const usual: readonly WrongRow[] = [
  ["lacking", "that lacks a field", lacking, withoutEach, { fiscal: 3 }],
  ["fraction", "with a fraction for its amount", whole, having("amount", 1.5, "1.00")],
];

/** What refers to an operation that didn't come about is left out. */
export function orNothing(error: unknown): undefined {
  if (!(error instanceof CheckEnd)) throw error;
}

/** @param taken What is done about one that wasn't refused. */
export function wrongRows(
  rights: Readonly<Record<string, RightBody>>,
  more: readonly WrongRow[],
  taken: (asker: Asker, body: JsonObject) => Promise<unknown> = async () => {},
): readonly Row[] {
  return [...usual, ...more].map(([name, what, sentences, wrong, codes]) => {
    const run = async (asker: Asker) => {
      const { service } = asker.contract;
      let count = 0;
      for (const [route, right] of Object.entries(rights)) {
        const body = await right(asker, `${name}-${count}`).catch(orNothing);
        for (const each of body === undefined ? [] : wrong(body, requiredOf(schemasOf(service, route)?.request))) {
          count++;
          const answer = await asker.ask(route, each);
          if (answer.status !== "error") await taken(asker, each);
          const refusal = refusalFinding(answer, `to ${route} ${what}: ${JSON.stringify(each)}`, codes?.[service]);
          if (refusal.verdict !== "passed") return refusal;
        }
      }
      return count === 0 ? untested("There is nothing to refer to") : passed(`It refused ${count} requests ${what}`);
    };
    return [name, `a request ${what}`, sentences, run] as const;
  });
}
