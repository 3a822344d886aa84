import assert from "node:assert/strict";
import { test } from "node:test";
import { transformSync } from "esbuild";
import { numberedMutants } from "./build.ts";
import { equivalentOf, equivalents } from "./equivalents.ts";
import { type Mutant, mutantsOf, withMutants } from "./operators.ts";

const source = `
type Word = "a b" | 7;
export class Till {
  #sum = 0;
  add(n: number, words: readonly string[]): string {
    if (n < 2 && !words.some((each) => each === "no thanks")) this.#sum += n;
    else this.#sum = (n as number) & 3;
    for (let i = 0; i < 2; i++) this.#sum += Math.min(i, 1) * 2;
    return \`\${this.#sum - 1} of \${words[0] ?? "none"}\`;
  }
}
`;

/** What the code answers to a few inputs, or the error that it throws. */
function answers(text: string): string {
  const { code } = transformSync(text.replace("export class", "class"), { loader: "ts" });
  // The source above, changed.
  const Till = new Function(`${code}; return Till;`)() as new () => { add(n: number, words: readonly string[]): string };
  return [0, 1, 2, 3].flatMap((n) => [[], ["no thanks"], ["x", "no thanks"]].map((words) => new Till().add(n, words))).join();
}

const changed = ({ start, end, to }: Mutant) => `${source.slice(0, start)}${to === "" ? "{}" : `(${to})`}${source.slice(end)}`;

test("mutantsOf() changes operators, conditions, numbers, texts and statements, and no type", () => {
  const mutants = mutantsOf(source).map(({ line, from, to }) => `${line}: ${from} → ${to}`);
  for (const expected of [
    ...["4: 0 → 1", "6: n < 2 → n <= 2", "6: n < 2 → n >= 2", '6: "no thanks" → ""', "6: this.#sum += n; → "],
    ...["7: (n as number) & 3 → (n as number) | 3", "8: i < 2 → false", "8: Math.min(i, 1) → Math.max(i, 1)"],
    '9: words[0] ?? "none" → words[0]',
  ])
    assert.ok(mutants.includes(expected), `${expected}\n${mutants.join("\n")}`);
  assert.deepEqual(
    mutants.filter((mutant) => mutant.startsWith("2:") || mutant.includes("i++ →")),
    [],
  );
});

test("withMutants() behaves as the original while no mutant is in force, and as the changed source while one is", () => {
  const mutants = mutantsOf(source);
  const withAll = withMutants(source, mutants, 1, (id) => `$m===${id}`);
  assert.equal(answers(`const $m = 0;${withAll}`), answers(source));
  for (const [index, mutant] of mutants.entries()) {
    assert.equal(answers(`const $m = ${index + 1};${withAll}`), answers(changed(mutant)), `${mutant.from} → ${mutant.to}`);
  }
});

test("equivalents.json explains mutants that there are, each with a reason", () => {
  const mutants = numberedMutants([...new Set(equivalents.map(({ file }) => file))]);
  const explained = new Set(mutants.map(equivalentOf));
  for (const entry of equivalents) {
    assert.ok(explained.has(entry), `${entry.file}: "${entry.line}" has no mutant ${entry.from} → ${entry.to}: remove it`);
    assert.ok(entry.reason.length > 20, entry.line);
  }
});
