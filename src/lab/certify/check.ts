import type { ContractName } from "../../core/call.ts";
import type { Case, CaseResult } from "../report/judgement.ts";
import type { Asker } from "./asker.ts";

/**
 * A certification asks a terminal what a contract says that it answers, and judges the answers. This room owns what is asked and the
 * verdicts; it sends nothing that moves money, prints or changes state, unless it was told an amount. A check is data, and a function.
 */

export interface CertifyCheck extends Case {
  readonly service: ContractName;
  /** True if it moves money, prints or changes state. */
  readonly sells?: true;
  /** True if it ends a batch or a shift. */
  readonly closesDay?: true;
  readonly run: (asker: Asker) => Promise<CaseResult>;
}

/** A sentence of a contract, word for word, behind the place where it stands. */
export type Sentence = `${string}: ${string}`;

/** The sentence that a check is about, for each service that it is for. */
export type Sentences = Readonly<Partial<Record<ContractName, Sentence>>>;

/** A sentence for both services whose frames begin with a length, and one for fiscal. */
export const both = (length: Sentence, fiscal: Sentence): Sentences => ({ bank: length, qr: length, fiscal });

/** A check as it is listed: its name behind that of a service, its title, its sentences, and what it does. */
export type Row = readonly [name: string, title: string, sentences: Sentences, run: CertifyCheck["run"]];

/** The row that ends a batch or a shift. */
const closing = "close-shift";

/** The checks of a service. */
export const checksOf = (service: ContractName, rows: readonly Row[], sells = false): readonly CertifyCheck[] =>
  rows.flatMap(([name, title, { [service]: sentence }, run]) => {
    if (sentence === undefined) return [];
    const at = sentence.indexOf(": ");
    const rule = { from: `${service}.md, ${sentence.slice(0, at)}`, says: sentence.slice(at + 2) };
    const flags = { ...(sells && { sells: true as const }), ...(name === closing && { closesDay: true as const }) };
    return [{ name: `${service}-${name}`, title: `${service}: ${title}`, rule, service, run, ...flags }];
  });
