import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { adminDocument, isAt, usualAdmin } from "../../src/lab/openapi/admin.ts";
import { Documented, operationsOf, validDocument } from "../lab/openapi/documented.ts";
import { ask, type BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { tellStory, withBridges, withoutTimes } from "./stories.ts";

/**
 * Tests src/lab/openapi/service.ts, src/lab/openapi/examples.ts and src/process/openapi.ts.
 *
 * * The documents as the real bundle prints and serves them, and what it answers held against them.
 */

async function printed(name: string): Promise<Documented> {
  const command = new PoslineProcess(["openapi", name]);
  assert.equal(await command.ended(), 0, command.stderr);
  return new Documented(await validDocument(JSON.parse(command.stdout)));
}

async function served(bridge: BridgeProcess, name: string): Promise<JsonObject> {
  const answer = await ask(await bridge.port("admin"), "GET", `/openapi/${name}.json`, "");
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  return validDocument(JSON.parse(answer.text));
}

for (const service of contractNames) {
  test(`each example of ${service}'s document is answered as it says, and as the document describes`, async () => {
    const documented = await printed(service);
    const isForm = contracts[service].envelope === "form";
    await withBridges(service, async (emulated, absent) => {
      for (const { example, now, answer } of await tellStory(service, emulated, absent)) {
        const { method, route, name, request } = example;
        assert.equal(withoutTimes(now), withoutTimes(example), `${route} ${name}: see src/lab/openapi/examples.ts`);
        assert.deepEqual(documented.answerProblems(method, route, answer), [], `${route} ${name}`);
        // What the terminal refuses, or nobody sent, may be as wrong as it likes.
        if (request === undefined || example.answer["status"] === "error") continue;
        const problems = isForm
          ? documented.payloadProblems(route, request)
          : documented.requestProblems(method, route, "application/json", request);
        assert.deepEqual(problems, [], `${route} ${name}`);
      }
      const document = await served(emulated, service);
      assert.deepEqual(document["paths"], documented.document["paths"]);
      assert.match(JSON.stringify(document["servers"]), new RegExp(`"default":"${await emulated.port(service)}"`));
    });
  });
}

const posted: Readonly<Record<string, string>> = {
  "/emulator": '{"next":{"service":"bank","route":"/sale","outcome":"declined"}}',
  "/test": '{"service":"bank"}',
};

test("the admin port's own document has each path that the port answers, and what it answers to each", async () => {
  await withBridges("bank", async (emulated, absent) => {
    const documented = new Documented(await served(emulated, "admin"));
    const port = await emulated.port("admin");
    // The refusal of another path names them all.
    const { text } = await ask(port, "GET", "/nowhere", "");
    const routes = [...text.matchAll(/(?:GET|POST) \/[^ "]*/g)].map(([route]) => route);
    assert.ok(routes.length >= 6, text);
    const names = operationsOf(adminDocument(usualAdmin)).map(({ method, path }) => `${method} ${path}`);
    for (const route of routes) {
      const name = names.find((each) => isAt(each, route));
      assert.ok(name !== undefined, `${route} is not in src/lab/openapi/admin.json`);
      const [method = "", path = ""] = name.split(" ");
      if (path === "/events" || path === "/tap") continue;
      const body = method === "POST" ? (posted[path] ?? "") : "";
      if (body !== "") assert.deepEqual(documented.requestProblems(method, path, "application/json", JSON.parse(body)), []);
      const answer = await ask(port, method, route.split(" ")[1] ?? "", body);
      assert.deepEqual(documented.answerProblems(method, path, answer), [], `${route}: ${answer.text}`);
    }
    const described = operationsOf(documented.document).map(({ method, path }) => `${method} ${path}`);
    for (const name of described)
      assert.ok(
        routes.some((route) => isAt(name, route)),
        `${name} is described, and not answered`,
      );

    const unready = new Documented(await served(absent, "admin"));
    for (const path of ["/readyz", "/status"]) {
      const answer = await ask(await absent.port("admin"), "GET", path, "");
      assert.deepEqual(unready.answerProblems("GET", path, answer), [], answer.text);
    }
    const wrong = await ask(port, "POST", "/emulator", "{}");
    assert.equal(wrong.status, 400);
    assert.deepEqual(documented.answerProblems("POST", "/emulator", wrong), []);
  });
});

const noPorts = {
  POSLINE_FISCAL_PORT: undefined,
  POSLINE_BANK_PORT: undefined,
  POSLINE_QR_PORT: undefined,
  POSLINE_ADMIN_PORT: undefined,
};

test("a service of a name of its own has a document, printed and served, and so has one that a reload brings", async (t) => {
  const scratch = scratchFolder();
  const file = join(scratch.path, "posline.json");
  const [first = 0, second = 0, admin = 0] = await freePorts(3);
  const write = (ports: Readonly<Record<string, number>>) => {
    const services = Object.entries(ports).map(([name, port]) => [name, { contract: "bank", line: "till", port }] as const);
    const lines = { till: { path: "/dev/ttyUSB0" } };
    writeFileSync(
      file,
      JSON.stringify({ lines, services: Object.fromEntries(services), admin: { port: admin }, journal: false }),
    );
  };
  write({ "bank-2": first });
  const command = new PoslineProcess(["openapi", "bank-2", "--config", file], { env: noPorts });
  assert.equal(await command.ended(), 0, command.stderr);
  assert.match(command.stdout, new RegExp(`\\(bank-2\\)[^]*"default": "${first}"`));
  const bridge = new PoslineProcess(["serve", "--config", file, "--emulated"], { env: noPorts });
  const status = async (name: string) => (await ask(admin, "GET", `/openapi/${name}.json`, "")).status;
  t.after(() => bridge.ended("SIGTERM"));
  await bridge.port("admin");
  assert.deepEqual([await status("bank-2"), await status("bank-3"), await status("bank")], [200, 404, 404]);
  write({ "bank-3": second });
  bridge.child.kill("SIGHUP");
  await bridge.logged(({ msg }) => String(msg).startsWith("the configuration was "), "the reload");
  assert.deepEqual([await status("bank-2"), await status("bank-3"), await status("admin")], [404, 200, 200]);
});
