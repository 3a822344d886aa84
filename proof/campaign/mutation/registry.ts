import * as real from "node:test";

/**
 * Stands in for `node:test` in a test file's build: it keeps the tests that the file registers, so that the runner can run those that
 * reach a mutant, the quickest first, and can stop at the first failure.
 */
interface Registered {
  readonly name: string;
  readonly options: object;
  run(context: unknown): Promise<void>;
}

type Hook = () => unknown;
type Body = (context: unknown) => unknown;

export const registered: Registered[] = [];

/** The root of `node:test` would run them for tests that aren't chosen, too. */
const hooks = { before: [] as Hook[], beforeEach: [] as Hook[], afterEach: [] as Hook[] };

async function runAll(list: readonly Hook[]): Promise<void> {
  for (const hook of list) await hook();
}

export function test(name: string, ...rest: readonly (object | Body)[]): void {
  const body = rest.find((each): each is Body => typeof each === "function");
  const options = rest.find((each) => typeof each !== "function") ?? {};
  const run = async (context: unknown): Promise<void> => {
    // Once.
    await runAll(hooks.before.splice(0));
    await runAll(hooks.beforeEach);
    try {
      await body?.(context);
    } finally {
      await runAll(hooks.afterEach);
    }
  };
  registered.push({ name, options, run });
}

export const before = (hook: Hook) => void hooks.before.push(hook);
export const beforeEach = (hook: Hook) => void hooks.beforeEach.push(hook);
export const afterEach = (hook: Hook) => void hooks.afterEach.push(hook);

export const after = real.after;
export const mock = real.mock;
