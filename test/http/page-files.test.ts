import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AdminListener } from "../../src/http/admin-listener.ts";
import { readPageFiles } from "../../src/http/page-files.ts";
import { ask } from "./served.ts";

const folder = mkdtempSync(join(tmpdir(), "posline-page-"));
const open: AdminListener[] = [];
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await Promise.all(open.map((listener) => listener.close()));
});

/** An admin port with the files of this folder and a route that wants a token. */
async function started(name: string): Promise<number> {
  const listener = new AdminListener({
    config: { host: "127.0.0.1", port: 0, token: "0123456789abcdef" },
    routes: { "GET /status": () => ({ status: 200, text: "{}" }) },
    files: await readPageFiles(pathToFileURL(`${join(folder, name)}/`), { paths: ["/status"] }),
    error: (error) => assert.fail(String(error)),
  });
  open.push(listener);
  return (await listener.listen()).port;
}

test("readPageFiles answers each file with its type, a strict policy, nosniff and no-store, and without a token", async () => {
  const types = {
    "/": "text/html; charset=utf-8",
    "/page/page.js": "text/javascript; charset=utf-8",
    "/page/page.css": "text/css; charset=utf-8",
    "/page/icon.svg": "image/svg+xml",
    "/page/en.json": "application/json",
    "/page/de.json": "application/json",
    "/page/paths.json": "application/json",
  };
  for (const path of Object.keys(types))
    writeFileSync(join(folder, path === "/" ? "index.html" : path.slice("/page/".length)), path);
  const port = await started(".");
  assert.equal((await ask(port, "GET", "/status")).status, 401);
  for (const [path, type] of Object.entries(types)) {
    const { status, headers, text } = await ask(port, "GET", `${path}?v=1`);
    assert.equal(status, 200, path);
    assert.equal(text, path === "/page/paths.json" ? '{"paths":["/status"]}\n' : path);
    assert.equal(headers.get("content-type"), type);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(
      headers.get("content-security-policy"),
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    assert.equal((await ask(port, "HEAD", path)).status, 200);
    assert.notEqual((await ask(port, "POST", path)).status, 200);
  }
});

test("readPageFiles says which folder is empty, and what to use, where the files are missing", async () => {
  const { status, text } = await ask(await started("nowhere"), "GET", "/");
  assert.equal(status, 404);
  assert.match(text, /Cannot show the status page: there are no files in .*nowhere\/: install posline again, or use \/status/);
});
