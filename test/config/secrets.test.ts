import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readAtMost, readSecret, reason } from "../../src/config/secrets.ts";

const folder = mkdtempSync(join(tmpdir(), "posline-secret-"));
after(() => rmSync(folder, { recursive: true }));
const node = { type: "string", pattern: "^[!-~]+$", maxLength: 256, writeOnly: true } as const;

function read(content: string | undefined): { value: string | undefined; problems: string[] } {
  const file = join(folder, "secret");
  if (content !== undefined) writeFileSync(file, content);
  const problems: string[] = [];
  return {
    value: readSecret(node, content === undefined ? join(folder, "absent") : file, "services.bank.apiKeyFile", problems),
    problems,
  };
}

test("readSecret() trims one trailing line break and nothing else", () => {
  for (const content of ["K", "K\n", "K\r\n"]) assert.deepEqual(read(content), { value: "K", problems: [] });
  for (const content of ["K\n\n", " K", "K "]) assert.equal(read(content).value, undefined);
});

test("readSecret() tells an empty, an unusable and a large file without what is in it", () => {
  for (const content of ["", "\n", "GEHEIM GEHEIM", "GEHEIM".repeat(50), "GEHEIM".repeat(1_000)]) {
    const { value, problems } = read(content);
    assert.equal(value, undefined);
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? "", /^services\.bank\.apiKeyFile/);
    assert.ok(problems[0]?.includes(join(folder, "secret")));
    assert.doesNotMatch(problems.join(), /GEHEIM/);
  }
});

test("readSecret() tells a missing file and a folder with path and cure", () => {
  assert.deepEqual(read(undefined).problems, [
    `services.bank.apiKeyFile: cannot read ${join(folder, "absent")}: there is no such file: create it or correct the path`,
  ]);
  const problems: string[] = [];
  readSecret(node, folder, "at", problems);
  assert.deepEqual(problems, [`at: cannot read ${folder}: it is a folder: name a file`]);
});

test("readSecret() takes a file as an editor of Windows writes it, and refuses what isn't UTF-8", () => {
  assert.deepEqual(read("\uFEFFK\r\n"), { value: "K", problems: [] });
  const file = join(folder, "latin-1");
  writeFileSync(file, Buffer.from("CAF\u00e9\n", "latin1"));
  const problems: string[] = [];
  assert.equal(readSecret({ type: "string", writeOnly: true }, file, "services.fiscal.merchantIdFile", problems), undefined);
  assert.deepEqual(problems, [`services.fiscal.merchantIdFile: cannot read ${file}: it is not UTF-8 text: save it as UTF-8`]);
});

test("reason() tells a refused permission with the commands that mend it", () => {
  const denied = Object.assign(new Error("denied"), { code: "EACCES" });
  assert.equal(
    reason(denied, "/etc/k"),
    "permission denied: let posline's group read it: sudo chgrp GROUP /etc/k && sudo chmod 640 /etc/k",
  );
});

test("readAtMost() stops at its bound on a file without an end", () => {
  assert.equal(readAtMost("/dev/zero", 100).length, 100);
});
