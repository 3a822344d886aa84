import * as real from "node:test";

/**
 * Stands in for `node:test` in the tests' build: it keeps the tests that a file registers, so that the runner can run those that
 * reach a mutant, the quickest first, and can stop at the first failure.
 */
export interface Registered {
  readonly file: string;
  /** Its place among the tests of its file. */
  readonly index: number;
  readonly name: string;
  readonly options: object;
  run(context: unknown): Promise<void>;
}

type Hook = () => unknown;
type Body = (context: unknown) => unknown;

/** Hooks of one file. The root of `node:test` would run them for each file's tests. */
type Hooks = { readonly before: Hook[]; readonly beforeEach: Hook[]; readonly afterEach: Hook[]; begun: boolean };

export const registered: Registered[] = [];
const hooksByFile = new Map<string, Hooks>();
let file = "";

/** The file that is about to be imported. */
export function importing(name: string): void {
  file = name;
  hooksByFile.set(name, { before: [], beforeEach: [], afterEach: [], begun: false });
}

function hooks(): Hooks {
  return hooksByFile.get(file) ?? { before: [], beforeEach: [], afterEach: [], begun: false };
}

async function runAll(list: readonly Hook[]): Promise<void> {
  for (const hook of list) await hook();
}

export function test(name: string, ...rest: readonly (object | Body)[]): void {
  const body = rest.find((each): each is Body => typeof each === "function");
  const options = rest.find((each) => typeof each !== "function") ?? {};
  const its = hooks();
  const index = registered.filter((each) => each.file === file).length;
  const run = async (context: unknown): Promise<void> => {
    if (!its.begun) await runAll(its.before);
    its.begun = true;
    await runAll(its.beforeEach);
    try {
      await body?.(context);
    } finally {
      await runAll(its.afterEach);
    }
  };
  registered.push({ file, index, name, options, run });
}

export function before(hook: Hook): void {
  hooks().before.push(hook);
}

export function beforeEach(hook: Hook): void {
  hooks().beforeEach.push(hook);
}

export function afterEach(hook: Hook): void {
  hooks().afterEach.push(hook);
}

export const after = real.after;
export const mock = real.mock;
