import { refusalCheck } from "./answers.ts";
import { cardSales } from "./card-sales.ts";
import { type CertifyCheck, checkOf } from "./check.ts";
import { codePayments } from "./code-payments.ts";
import { documents } from "./documents.ts";

/** What a terminal is asked with an amount: this moves money, and prints. One operation of a kind is judged by several checks. */

const all = [cardSales, codePayments, documents];

const selling = all.flatMap(({ rows, refusals }) => [...rows.map((row) => checkOf(...row)), ...refusals.map(refusalCheck)]);

/** The checks that sell; at their end those that close the day. */
export const saleChecks: readonly CertifyCheck[] = [
  ...selling.map((check) => ({ ...check, sells: true as const })),
  ...all
    .flatMap(({ dayRows }) => dayRows)
    .map((row) => ({ ...checkOf(...row), sells: true as const, closesDay: true as const })),
];
