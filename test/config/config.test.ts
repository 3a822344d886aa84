import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../../src/config/config.ts";

test("ConfigError tells one problem in its first line, and several one by line", () => {
  assert.equal(new ConfigError(["a: wrong"]).message, "Cannot use the configuration: a: wrong");
  assert.equal(
    new ConfigError(["a: wrong", "b: wrong"], "/etc/x.json").message,
    "Cannot use the configuration of /etc/x.json: 2 problems\n  a: wrong\n  b: wrong",
  );
});
