import assert, { AssertionError } from "node:assert/strict";
import { inspect } from "node:util";

/**
 * Loaded before each test file. A failed `assert.ok(value)` without a message makes Node look for its own text in the source; of what tsx
 * compiles, which is one line, that takes minutes in a long file (nodejs/node#52677), and looks like a test that hangs.
 */

const ok: (value: unknown, message?: string | Error) => asserts value = (value, message) => {
  if (value) return;
  if (message instanceof Error) throw message;
  const text = message ?? `it is ${inspect(value)}, and should be truthy`;
  throw new AssertionError({ message: text, actual: value, expected: true, operator: "==", stackStartFn: ok });
};

Object.assign(assert, { ok });
