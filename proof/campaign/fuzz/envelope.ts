import assert from "node:assert/strict";
import { contracts } from "../../../src/contract/contracts.ts";
import { validateRequest } from "../../../src/contract/schema.ts";
import { type Call, contractNames } from "../../../src/core/call.ts";
import { Fault } from "../../../src/core/fault.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { parseBounded } from "../../../src/envelope/bounded-json.ts";
import { parseForm, unescapeValue } from "../../../src/envelope/form.ts";
import { toHttp } from "../../../src/envelope/http-request.ts";
import { readReply } from "../../../src/envelope/reply.ts";
import { readFormLine, readHttpBody, readTextLine, toLine } from "../../../src/envelope/request.ts";
import { signOf } from "../../../src/envelope/sign.ts";
import { bodyFields } from "../../../src/journal/body-fields.ts";
import { examples } from "./corpus.ts";
import { mutated, mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** The envelopes: what a till wrote is read, or refused by a fault; what passes is exactly what it wrote. */

const merchantId = "MERCHANT-1";

function formOf(random: Random, json: string): string {
  const data = Buffer.from(json).toString("base64");
  const escaped = random.chance(0.5) ? encodeURIComponent(data) : data;
  const sign = encodeURIComponent(random.chance(0.9) ? signOf(data, merchantId) : "c2lnbg==");
  const pairs = [`data=${escaped}`, `sign=${sign}`];
  if (random.chance(0.1)) pairs.push(random.pick(["command=/refund", "data=e30=", "x=1", "", "=", "sign=%zz"]));
  return pairs.join("&");
}

/** The same pairs as multipart/form-data, each value without its escapes. */
function multipartOf(random: Random, json: string): string {
  const parts = formOf(random, json).split("&");
  const partOf = (pair: string) => {
    const at = pair.indexOf("=");
    const value = unescapeValue(Buffer.from(pair.slice(at + 1)));
    return `--b\r\nContent-Disposition: form-data; name="${pair.slice(0, Math.max(at, 0))}"\r\n\r\n${value}\r\n`;
  };
  return `${parts.map(partOf).join("")}--b--\r\n`;
}

const bodyJson = (random: Random) =>
  random.chance(0.2) ? randomObject(random) : mutatedJson(random, random.pick(examples).request, 0.05);

function anyBody(random: Random): Buffer {
  const json = bodyJson(random);
  const body = Buffer.from(random.chance(0.5) ? (random.chance(0.2) ? multipartOf : formOf)(random, json) : json);
  return random.chance(0.5) ? mutated(random, body) : body;
}

const faultKinds: readonly string[] = ["malformed", "missing", "sign", "route"];

/** What a reader gives; undefined where it refuses by one of its faults. */
function orFault<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Fault && faultKinds.includes(error.kind) && error.outcome === "not-sent") return undefined;
    throw error;
  }
}

const requests: Target = {
  name: "request bodies",
  unit: "bodies read",
  make: anyBody,
  check: (input, random) => {
    let read = 0;
    for (const name of contractNames) {
      const contract = contracts[name];
      const route = random.pick(contract.routes);
      for (const check of ["none", "envelope", "contract"] as const) {
        const rules = { check, merchantId: random.chance(0.7) ? merchantId : undefined, validate: validateRequest };
        const got = orFault(() => readHttpBody(contract, route, random.pieces(input), rules));
        if (got === undefined) continue;
        read++;
        const body = Buffer.concat(got.body);
        if (contract.envelope === "text")
          assert.ok(body.length === 0 || body.equals(input), "the body is passed on as it came");
        bodyFields(contract, route.key, got.body, route);
        assertRelayed(contract.service, route.path, got.body, check);
      }
    }
    return read;
  },
};

/** What goes over a line, and on to a service behind a gateway, is the same request. */
function assertRelayed(service: Call["contract"], route: string, body: readonly Buffer[], check: string): void {
  const contract = contracts[service];
  const payload = orFault(() => toLine(contract, route, body, merchantId));
  if (payload === undefined) return;
  const line = Buffer.concat(payload);
  if (contract.framing === "stx" && check !== "none")
    assert.ok(!line.includes(2) && !line.includes(3), "no STX and no ETX in it");
  const text = contract.envelope === "form" ? undefined : readTextLine(line);
  const back = contract.envelope === "form" ? readFormLine(line) : text;
  assert.equal(back?.route, route);
  assert.equal(text?.prefix ?? "", contract.linePrefix);
  if (body.length > 0) assert.ok(Buffer.concat(back?.body ?? []).equals(Buffer.concat(body)), "the same body");
  toHttp(contract, { route, body: back?.body ?? [] });
}

const received: Target = {
  name: "requests on a line",
  unit: "requests read",
  make: (random) => {
    const { service, route } = random.pick(examples);
    const contract = contracts[service];
    const json = bodyJson(random);
    const body = Buffer.from(contract.envelope === "form" ? formOf(random, json) : json);
    return mutated(random, Buffer.concat(toLine(contract, route, [body], merchantId)));
  },
  check: (input) => {
    const text = readTextLine(input);
    const all = [
      { contract: contracts.fiscal, request: readFormLine(input) },
      { contract: contracts.bank, request: text },
    ];
    for (const { contract, request } of all) {
      if (request === undefined) continue;
      orFault(() => toHttp(contract, request));
      bodyFields(contract, "pay_id", request.body);
    }
    const form = parseForm(input);
    for (const value of [form.command, form.data, form.sign]) {
      if (value !== undefined) assert.ok(unescapeValue(value).length <= value.length);
    }
    return all.filter(({ request }) => request !== undefined).length;
  },
};

const replies: Target = {
  name: "replies and bounded JSON",
  unit: "replies read",
  make: (random) => {
    const text = random.chance(0.5) ? randomObject(random, 5) : mutatedJson(random, random.pick(examples).answer);
    const bytes = Buffer.from(random.chance(0.01) ? `{"a":[${"[],".repeat(70_000)}0]}` : text);
    return random.chance(0.5) ? mutated(random, bytes) : bytes;
  },
  check: (input, random) => {
    const reply = readReply(random.pieces(input));
    const bounded = parseBounded(input, ["pay_id", "amount"]);
    let whole: unknown;
    try {
      whole = JSON.parse(input.toString("utf8"));
    } catch {}
    if (typeof bounded === "string") {
      assert.equal(reply, bounded);
      if (bounded === "not a JSON object") assert.ok(!isObject(whole), "JSON.parse reads an object where none was found");
      return 0;
    }
    assert.equal(JSON.stringify(bounded.json), JSON.stringify(whole));
    assert.ok(typeof reply !== "string" && (reply.status?.length ?? 0) <= 16);
    return 1;
  },
};

export const envelopeTargets: readonly Target[] = [requests, received, replies];
