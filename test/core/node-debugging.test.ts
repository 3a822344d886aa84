import assert from "node:assert/strict";
import { test } from "node:test";
import { debuggingOf, printingVariable } from "../../src/core/node-debugging.ts";

test("debuggingOf() names flags and variables by which Node opens, prints or writes, and no value of theirs", () => {
  const env = {
    NODE_OPTIONS: '--max-semi-space-size=1 --inspect-brk=0.0.0.0:9229 "--report-on-signal" --enable-source-maps',
    NODE_DEBUG: "http",
    NODE_DEBUG_NATIVE: "",
    NODE_V8_COVERAGE: "/tmp/coverage",
    NODE_ENV: "production",
    NODE_EXTRA_CA_CERTS: "/etc/ssl/ca.pem",
  };
  assert.deepEqual(debuggingOf(env, ["--cpu-prof", "--trace-warnings", "--max-old-space-size=64", "--disable-sigusr1"]), [
    ...["--cpu-prof", "--trace-warnings", "--inspect-brk in NODE_OPTIONS", "--report-on-signal in NODE_OPTIONS"],
    ...["NODE_DEBUG", "NODE_V8_COVERAGE"],
  ]);
  assert.deepEqual(debuggingOf({ NODE_OPTIONS: "--max-semi-space-size=1", PATH: "/usr/bin" }, []), []);
});

test("printingVariable() names the variable by which Node prints what passes through, unless it is empty", () => {
  assert.equal(printingVariable({ NODE_DEBUG: "" }), undefined);
  assert.equal(printingVariable({ NODE_DEBUG: "net" }), "NODE_DEBUG");
  assert.equal(printingVariable({ NODE_DEBUG_NATIVE: "CRYPTO" }), "NODE_DEBUG_NATIVE");
});
