import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { ServiceConfig } from "../../../src/config/config.ts";
import { contracts } from "../../../src/contract/contracts.ts";
import { settlingRulesOf } from "../../../src/contract/settling.ts";
import { type Call, contractNames } from "../../../src/core/call.ts";
import { checkFirst, Fault, type FaultKind, faultClasses, faultReasons } from "../../../src/core/fault.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { signOf } from "../../../src/envelope/sign.ts";
import { exampleMerchantId, examplesOf } from "../../../src/lab/openapi/examples.ts";
import { reasonsOf } from "../../../src/lab/openapi/fault-answers.ts";
import described from "../../../src/lab/openapi/service.json" with { type: "json" };
import { describedService, serviceDocument, usualService } from "../../../src/lab/openapi/service.ts";
import { ask, closeAll, replyOf, serve } from "../../http/served.ts";
import { serviceConfigOf } from "../../support/service-config.ts";
import { Documented, operationsOf, validDocument } from "./documented.ts";

afterEach(closeAll);

const usual = (service: (typeof contractNames)[number]) => serviceDocument(usualService(contracts[service]));

for (const service of contractNames) {
  test(`serviceDocument() of ${service} is OpenAPI 3.1, and has each route and method with words of its own`, async () => {
    const document = await validDocument(usual(service));
    const operations = operationsOf(document);
    const expected = contracts[service].routes.flatMap(({ path, methods }) => methods.map((method) => `${method} ${path}`));
    assert.deepEqual(operations.map(({ method, path }) => `${method} ${path}`).sort(), [...expected].sort());
    const ids = operations.map(({ operation }) => operation["operationId"]);
    assert.equal(new Set(ids).size, ids.length);
    for (const { path, operation } of operations) {
      assert.match(String(operation["summary"]), /^[A-Z]\w+ /, path);
    }
  });

  test(`serviceDocument() of ${service} says of each route that does something what an unknown outcome asks for`, () => {
    for (const { path, operation } of operationsOf(usual(service))) {
      const route = contracts[service].routes.find((each) => each.path === path);
      const text = String(operation["description"]);
      if (route?.effect === "none") assert.match(text, /may be sent again/, path);
      else if (route?.key === undefined) assert.match(text, /After `unknown` it may have been carried out: look at/, path);
      else {
        const advice = checkFirst[service].replace("Outcome unknown, it", "After `unknown` it");
        assert.ok(text.includes(advice) && text.includes(`with the same \`${route.key}\``), `${path}: ${text}`);
      }
    }
  });

  for (const faultStatus of [undefined, 200] as const) {
    test(`serviceDocument() of ${service} has each fault's status, headers and body, with faultStatus ${faultStatus}`, async () => {
      const config: Partial<ServiceConfig> = {
        contract: service,
        check: "none",
        ...(faultStatus === undefined ? {} : { faultStatus }),
      };
      const documented = new Documented(serviceDocument(describedService(service, serviceConfigOf(config))));
      // Its keys are the kinds. A path and a method that are there are never answered with these; only bank has a key, only fiscal a sign.
      const kinds = (Object.keys(faultClasses) as FaultKind[]).filter(
        (kind) =>
          kind !== "route" &&
          kind !== "method" &&
          (kind !== "key" || service === "bank") &&
          (kind !== "sign" || service === "fiscal"),
      );
      let thrown: Fault | undefined;
      const { port } = await serve(service, { config, handler: () => Promise.reject(thrown) });
      for (const { path, body } of contracts[service].routes) {
        const sent = body === "none" ? "" : service === "fiscal" ? "data=e30%3D&sign=AAAA" : "{}";
        for (const kind of kinds) {
          if (kind === "reused" && settlingRulesOf(service, path) === undefined) continue;
          for (const reason of reasonsOf[kind]) {
            thrown = new Fault(kind, "Cannot do it: a test", { reason, retryAfterS: 3 });
            const { status, headers, text } = await ask(port, "POST", path, sent);
            const answered = { status, headers: Object.fromEntries(headers), text };
            assert.deepEqual(documented.answerProblems("POST", path, answered), [], `${path} ${kind} ${reason}`);
          }
        }
      }
    });
  }

  test(`serviceDocument() of ${service} has the headers of calls that are followed, of answers and of faults`, async () => {
    const documented = new Documented(usual(service));
    const names = [
      "Preference-Applied",
      "X-Posline-Answer-Of",
      "X-Posline-Polls",
      "X-Posline-Repeat-Guard",
      "X-Posline-Result",
    ];
    const followed = { result: "pending", answerOf: "/check", polls: 2, isGuarded: false } as const;
    const learns = (path: string) => settlingRulesOf(service, path)?.learns !== undefined;
    const followedOf = ({ route }: Call) => (learns(route) ? { ...followed, trans: "T-1" } : followed);
    const replied = await serve(service, {
      config: { check: "none" },
      handler: async (call) => ({ ...replyOf("{}"), followed: followedOf(call) }),
    });
    const thrown = await serve(service, {
      config: { check: "none" },
      handler: (call) => Promise.reject(new Fault("timeout", "Cannot do it: a test", { followed: followedOf(call) })),
    });
    const routes = contracts[service].routes.filter(({ path }) => settlingRulesOf(service, path) !== undefined);
    assert.ok(routes.length > 0);
    for (const { path } of routes) {
      const sent = service === "fiscal" ? "data=e30%3D&sign=AAAA" : "{}";
      for (const [httpStatus, { port }] of [
        [200, replied],
        [504, thrown],
      ] as const) {
        const { status, headers, text } = await ask(port, "POST", path, sent);
        assert.equal(status, httpStatus, `${path}: ${text}`);
        for (const name of names) assert.ok(headers.has(name.toLowerCase()), `${path} ${status}: ${name}`);
        const described = documented.headersOf("POST", path, status);
        assert.deepEqual(
          names.filter((name) => !described.includes(name)),
          [],
          `${path} ${status}`,
        );
        if (status === 200 || learns(path))
          assert.equal(described.includes("X-Posline-Trans"), learns(path), `${path} ${status}`);
        const problems = documented.answerProblems("POST", path, { status, headers: Object.fromEntries(headers), text });
        if (status !== 200) assert.deepEqual(problems, [], path);
      }
    }
  });

  test(`serviceDocument() of ${service} has an answer of the terminal as an example for each route and method`, () => {
    for (const { method, path } of operationsOf(usual(service))) {
      const own = examplesOf(service).filter((each) => each.route === path && each.method === method);
      assert.ok(
        own.some(({ httpStatus, outcome }) => httpStatus === 200 && outcome === "answered"),
        `${method} ${path}`,
      );
      assert.equal(new Set(own.map(({ name }) => name)).size, own.length, path);
    }
  });
}

test("service.json has a summary of each route, and of none that its contract doesn't have", () => {
  for (const service of contractNames) {
    const paths = contracts[service].routes.map(({ path }) => path);
    assert.deepEqual(Object.keys(described.contracts[service].summaries).sort(), paths.sort());
  }
});

test("reasonsOf names every reason but those of a gateway, which answers on a line", () => {
  const named = new Set<string>(Object.values(reasonsOf).flat());
  const missing = Object.keys(faultReasons).filter((reason) => !named.has(reason));
  assert.deepEqual(missing, ["upstream-unreachable", "upstream-refused", "connection-lost"]);
});

test("serviceDocument() finds a wrong status, header, reason or body", () => {
  const documented = new Documented(usual("bank"));
  const good = {
    status: 503,
    headers: {
      "content-type": "application/json",
      "x-posline-outcome": "not-sent",
      "x-posline-reason": "line-down",
      "x-request-id": "r-1",
    },
    text: '{"status":"error","code":-3,"message":"m"}',
  };
  assert.deepEqual(documented.answerProblems("POST", "/sale", good), []);
  for (const wrong of [
    { ...good, status: 429 },
    { ...good, status: 504 },
    { ...good, headers: { ...good.headers, "x-posline-reason": "no-reply" } },
    { ...good, headers: { "content-type": "application/json" } },
    { ...good, text: '{"status":"error","code":-20,"message":"m"}' },
    { ...good, text: '{"status":"success"}' },
  ]) {
    assert.notDeepEqual(documented.answerProblems("POST", "/sale", wrong), [], JSON.stringify(wrong));
  }
});

test("serviceDocument() of fiscal has the payload within the form, and its examples are signed", () => {
  const document = usual("fiscal");
  const documented = new Documented(document);
  const form = "application/x-www-form-urlencoded";
  for (const { path, operation } of operationsOf(document)) {
    const { requestBody } = operation;
    if (!isObject(requestBody) || !isObject(requestBody["content"])) continue;
    const media = requestBody["content"][form];
    assert.ok(isObject(media) && isObject(media["examples"]), path);
    for (const example of Object.values(media["examples"])) {
      assert.ok(isObject(example) && isObject(example["value"]));
      const { data, sign } = example["value"];
      assert.equal(sign, signOf(String(data), exampleMerchantId), path);
      assert.deepEqual(documented.requestProblems("POST", path, form, example["value"]), []);
    }
  }
  assert.deepEqual(documented.payloadProblems("/deposit", { documentExtID: "D-1", amount: 5000 }), []);
  assert.notDeepEqual(documented.payloadProblems("/deposit", { documentExtID: "D-1" }), []);
});

test("serviceDocument() has the configuration's name and port, and the API key where bank needs one", async () => {
  const serverOf = (document: object) => ("servers" in document ? document.servers : undefined);
  const config = serviceConfigOf({ contract: "bank", port: 8889, host: "0.0.0.0", apiKey: "KEY" });
  const named = await validDocument(serviceDocument(describedService("bank-2", config)));
  assert.match(JSON.stringify(named["info"]), /\(bank-2\)/);
  assert.match(JSON.stringify(serverOf(named)), /"localhost".*"8889"/);
  assert.deepEqual(named["security"], [{ apiKey: [] }]);
  assert.doesNotMatch(JSON.stringify(named), /KEY"/);
  const { apiKey: _, ...open } = config;
  assert.equal(serviceDocument(describedService("bank-2", open))["security"], undefined);
  assert.deepEqual(usual("bank")["security"], [{}, { apiKey: [] }]);
  assert.equal(usual("qr")["security"], undefined);
});
