import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { need, Skipped } from "./host.ts";

test("need() fails where apt-get can't install a package, and is skipped where there is no apt-get", {
  skip: process.getuid?.() !== 0 && "only root installs packages",
}, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "posline-host-"));
  const { PATH } = process.env;
  t.after(() => {
    process.env["PATH"] = PATH;
  });
  t.after(() => rmSync(folder, { recursive: true }));
  process.env["PATH"] = folder;
  assert.throws(() => need({ absent: "absent-package" }), Skipped);
  writeFileSync(join(folder, "apt-get"), "#!/bin/sh\necho no such package >&2\nexit 100\n", { mode: 0o755 });
  assert.throws(
    () => need({ absent: "absent-package" }),
    (error: Error) =>
      !(error instanceof Skipped) && /apt-get install absent-package .* failed: no such package$/.test(error.message),
  );
});
