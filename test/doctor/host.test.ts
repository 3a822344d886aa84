import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "../../src/doctor/host.ts";

test("runCommand() gives a program's output and code, and takes its words as they are", async () => {
  assert.deepEqual(await runCommand(process.execPath, ["-p", "process.argv[1]", "$HOME; ls"]), {
    ran: true,
    code: 0,
    out: "$HOME; ls\n",
  });
  assert.deepEqual(await runCommand(process.execPath, ["-e", "process.exit(1)"]), { ran: true, code: 1, out: "" });
});

test("runCommand() says that a program isn't there", async () => {
  assert.deepEqual(await runCommand("posline-no-such-program", []), {
    ran: false,
    why: "there is no posline-no-such-program here",
  });
});

test("runCommand() ends a program that doesn't end", async () => {
  const result = await runCommand(process.execPath, ["-e", "setTimeout(() => {}, 600_000)"], 20);
  assert.equal(result.ran, false);
});
