import assert from "node:assert/strict";
import { readCapabilities } from "../../../src/admin/capabilities.ts";
import { RemoteService } from "../../../src/client/remote-service.ts";
import { factOfStart } from "../../../src/client/settle.ts";
import { newToken, readToken, type Token } from "../../../src/client/token.ts";
import { contracts, routeOf } from "../../../src/contract/contracts.ts";
import { settlingRules } from "../../../src/contract/settling.ts";
import { type Call, type ContractName, contractNames, type Reply } from "../../../src/core/call.ts";
import { nowMs } from "../../../src/core/clock.ts";
import { isOperationEnd } from "../../../src/core/followed.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { readReply } from "../../../src/envelope/reply.ts";
import { answersOf } from "../../../src/line/caller.ts";
import { Hearing } from "../../../src/operations/hearing.ts";
import { Operations } from "../../../src/operations/operations.ts";
import { areFacts } from "../../../src/settle/fact.ts";
import { saidToQuestion } from "../../../src/settle/said.ts";
import { failedAnswer } from "../../../src/settle/transport.ts";
import { Liveness } from "../../../src/trouble/liveness.ts";
import { examples } from "./corpus.ts";
import { mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** What a terminal answers, of every shape, to all that read its JSON: probes, capabilities, the settle machine, and what hears of operations. */

/** One answer a line: the settle machine is given several. */
function answersText(random: Random): Buffer {
  const answers = Array.from({ length: 1 + random.size(11) }, () =>
    random.chance(0.2)
      ? randomObject(random, 4)
      : mutatedJson(random, random.pick(examples).answer, random.chance(0.5) ? 0.04 : 0.2),
  );
  return Buffer.from(answers.join("\n"));
}

const linesOf = (input: Buffer) => input.toString("utf8").split("\n");

const probes: Target = {
  name: "answers to probes",
  unit: "answers",
  make: answersText,
  check: (input, random) => {
    const all = linesOf(input);
    const reports: string[] = [];
    const services = contractNames.map((service) => ({
      ...{ service, framing: contracts[service].framing, replyBytesMax: 1_000, probe: undefined, second: undefined },
      ...answersOf(contracts[service]),
    }));
    const liveness = new Liveness({ name: "till", config: { path: "/dev/ttyUSB0", baudRate: 9_600, crc16: "arc" } }, services, {
      unheard: (service, { cause, cure }) => reports.push(`${service} ${cause} ${cure}`),
      heardAgain: (service) => reports.push(service),
      echoes: ({ cause }) => reports.push(cause),
    });
    for (const [index, text] of all.entries()) {
      const at = index * random.pick([0, 1, 60_000]);
      const service = random.pick(contractNames);
      const head = Buffer.from(text).subarray(0, 16).toString("hex");
      if (random.chance(0.5)) liveness.discarded({ kind: "discard", reason: "noise", wireBytes: text.length, head }, at);
      else liveness.unanswered(service, at);
      const reply = readReply([Buffer.from(text)]);
      if (typeof reply === "string") continue;
      for (const name of contractNames) assert.equal(typeof contracts[name].probe.isAnswer(reply.json), "boolean");
      const capabilities = readCapabilities(reply.json);
      if (capabilities !== undefined) assert.ok(JSON.stringify(capabilities).length < 1_000_000);
      if (random.chance(0.3)) liveness.heard(service, at);
      liveness.reportDue(at);
      assert.equal(liveness.view().length, services.length);
    }
    for (const report of reports) assert.equal(typeof report, "string");
    return all.length;
  },
};

const operations = contractNames.flatMap((name) => settlingRules[name].map((rules) => ({ contract: contracts[name], rules })));

const verdicts: readonly unknown[] = ["approved", "declined", "reversed", "closed", "failed", "unprinted", "unknown"];

/** Any operation that can be followed, with a body of its own. */
function tokenOf(random: Random): Token {
  const { contract, rules } = random.pick(operations);
  const key = routeOf(contract, rules.route)?.key ?? "pay_id";
  return newToken(contract, rules.route, { [key]: random.pick(["A-1", "007", "7", "A"]), trans: "T-1", amount: 100 });
}

const settling: Target = {
  name: "the settle machine",
  unit: "answers",
  make: answersText,
  check: async (input, random) => {
    let { token, route, operation } = readToken(tokenOf(random));
    const { contract } = operation;
    const answers = linesOf(input);
    let text = "";
    const send = async () => {
      if (random.chance(0.15)) return failedAnswer(random.pick(["not-sent", "unknown"] as const), "lost");
      return {
        ...failedAnswer("unknown", ""),
        outcome: "answered" as const,
        text,
        httpStatus: random.pick([200, 400, 500, 502]),
      };
    };
    const service = new RemoteService({
      contract,
      transport: { send, close: async () => {} },
      merchantId: "M",
      timeoutMs: 60_000,
    });
    for (const [index, answer] of answers.entries()) {
      text = answer;
      const result = await service.tryCall(route, "{}", {});
      const { next, name } = readToken(token).known;
      const atMs = index * 10_000;
      const sent = { is: "sent", atMs } as const;
      const told =
        result.outcome === "answered" ? [{ is: "told", atMs, said: saidToQuestion(operation, result, name), name }] : [];
      const heard = next === "start" ? [sent, { ...factOfStart(operation, result), atMs }] : told;
      const stop = random.chance(0.05) ? [{ is: "stopped", atMs }] : [];
      // Another process must be able to take it up.
      const facts: unknown = JSON.parse(JSON.stringify([...token.facts, ...heard, ...stop]));
      assert.ok(areFacts(facts), JSON.stringify(facts));
      const read = readToken({ ...token, facts });
      ({ token, route, operation } = read);
      const { end } = read.known;
      assert.ok(end === undefined || end === "not-sent" || verdicts.includes(end), `an end that is none: ${String(end)}`);
      if (end !== undefined) break;
    }
    return answers.length;
  },
};

const routes = { bank: "/sale", fiscal: "/sale", qr: "/showqrcode" } as const;
const keyFields = { bank: "pay_id", fiscal: "documentExtID", qr: "pay_id" } as const;

/** As text for the envelope of a contract. */
const enveloped = (contract: ContractName, text: string) =>
  contracts[contract].envelope === "form" ? `data=${encodeURIComponent(Buffer.from(text).toString("base64"))}&sign=x` : text;

const callOf = (contract: ContractName, route: string, text: string): Call => ({
  ...{ service: contract, contract, route, body: [Buffer.from(enveloped(contract, text))], requestId: "r", key: "A-1" },
  caller: new Presence(),
});

const hearing: Target = {
  name: "answers about operations",
  unit: "answers",
  make: answersText,
  check: async (input, random) => {
    const operations = new Operations();
    const heard = new Hearing(operations, random.chance(0.9), (error) => {
      throw error;
    });
    const all = linesOf(input);
    const replyOf = (text: string): Reply => {
      const read = readReply([Buffer.from(text)]);
      const { status, code } = typeof read === "string" ? { status: undefined, code: undefined } : read;
      return { payload: random.pieces(Buffer.from(text)), status, code, queueMs: 0, lineMs: 1 };
    };
    for (const text of all) {
      const contract = random.pick(contractNames);
      const [path, keyField] = [random.chance(0.8) ? routes[contract] : "/refund", keyFields[contract]];
      const route = routeOf(contracts[contract], path);
      if (route !== undefined && random.chance(0.3)) {
        const body = JSON.stringify({ [keyField]: "A-1", trans: "T-1", amount: random.below(2) });
        const entry = operations.begin(callOf(contract, path, body), route);
        await entry.sent();
        const ways = [{ outcome: "unknown" }, { outcome: "not-sent" }, { outcome: "answered", ...replyOf(text) }] as const;
        await entry.ended(random.pick(ways));
      }
      const question = contract === "fiscal" ? "/check_status" : "/check";
      const asked = random.chance(0.9) ? JSON.stringify({ [keyField]: "A-1", trans: "T-1" }) : text;
      heard.heard(callOf(contract, question, asked), replyOf(text), {
        askedMs: nowMs() + random.pick([0, 60_000]),
        device: undefined,
      });
      for (const sending of operations.under(contract, "A-1")) {
        const { end } = operations.togetherOf(sending);
        assert.ok(end === undefined || isOperationEnd(end), `an end that is none: ${String(end)}`);
        const service = { contract: contracts[contract], merchantId: "M" };
        assert.ok(isObject(heard.triedOf(sending, service)));
      }
    }
    return all.length;
  },
};

export const answerTargets: readonly Target[] = [probes, settling, hearing];
