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

/** A check as it is listed: its service, its name behind that, its title, the sentence that it is about, and what it does. */
export type Row = readonly [service: ContractName, name: string, title: string, sentence: Sentence, run: CertifyCheck["run"]];

export function checkOf(...[service, name, title, sentence, run]: Row): CertifyCheck {
  const at = sentence.indexOf(": ");
  const rule = { from: `${service}.md, ${sentence.slice(0, at)}`, says: sentence.slice(at + 2) };
  return { name: `${service}-${name}`, title: `${service}: ${title}`, rule, service, run };
}

/** Checks that sell; at their end those that close the day. */
export const sellingChecks = (rows: readonly Row[], dayRows: readonly Row[] = []): readonly CertifyCheck[] => [
  ...rows.map((row) => ({ ...checkOf(...row), sells: true as const })),
  ...dayRows.map((row) => ({ ...checkOf(...row), sells: true as const, closesDay: true as const })),
];
