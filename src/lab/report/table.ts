import { printable } from "../../core/shell-text.ts";
import { type Case, type Judged, secondsText, type Verdict } from "./judgement.ts";

/** A judgement as a table for a terminal, a row when its case is over. */

const marks: Readonly<Record<Verdict, string>> = { passed: "passed    ", failed: "FAILED    ", "not tested": "not tested" };

export class Table {
  readonly #nameWidth: number;

  constructor(cases: readonly Case[]) {
    this.#nameWidth = Math.max(...cases.map(({ name }) => name.length));
  }

  /** A case's row; of a failed one with its sentence and its time line below. */
  row({ name, verdict, why, note, rule, tookMs, moments }: Judged): string {
    const head = `${marks[verdict]}  ${name.padEnd(this.#nameWidth)}  ${secondsText(tookMs).padStart(7)}`;
    if (verdict === "passed") return note === undefined ? `${head}\n` : `${head}  ${printable(note)}\n`;
    const lines = [`${head}  ${printable(why)}`];
    if (verdict === "failed") {
      lines.push(`          ${rule.from}: ${rule.says}`);
      for (const each of moments) {
        lines.push(`          ${secondsText(each.atMs).padStart(7)}  ${each.who.padEnd(9)}  ${printable(each.text)}`);
      }
    }
    return `${lines.join("\n")}\n`;
  }
}
