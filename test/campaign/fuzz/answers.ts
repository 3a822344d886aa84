import assert from "node:assert/strict";
import { readCapabilities } from "../../../src/admin/capabilities.ts";
import { contracts, routeOf } from "../../../src/contract/contracts.ts";
import { settlingRules } from "../../../src/contract/settling.ts";
import { contractNames, type Reply } from "../../../src/core/call.ts";
import { nowMs } from "../../../src/core/clock.ts";
import { isOperationEnd } from "../../../src/core/followed.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { readReply } from "../../../src/envelope/reply.ts";
import { Doubts } from "../../../src/follow/doubts.ts";
import type { OpenOperation } from "../../../src/journal/journal.ts";
import { answersOf } from "../../../src/line/caller.ts";
import { Liveness } from "../../../src/recovery/liveness.ts";
import { nextStep } from "../../../src/settle/machine.ts";
import { RemoteService } from "../../../src/settle/remote-service.ts";
import { stateAfterStop } from "../../../src/settle/state.ts";
import { keyFieldOf, newToken, readToken, type Token, withKnown } from "../../../src/settle/token.ts";
import { failedAnswer } from "../../../src/settle/transport.ts";
import { examples } from "./corpus.ts";
import { mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** What a terminal answers, of every shape, to all that read its JSON: probes, capabilities, the settle machine, doubts. */

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
  sources: ["admin/capabilities.ts", "recovery/liveness.ts", "contract/bank.ts", "contract/fiscal.ts", "contract/qr.ts"],
  unit: "answers",
  make: answersText,
  check: (input, random) => {
    const all = linesOf(input);
    const reports: string[] = [];
    const services = contractNames.map((service) => ({
      ...{ service, framing: contracts[service].framing, replyBytesMax: 1_000, probe: undefined, second: undefined },
      ...answersOf(contracts[service]),
    }));
    const liveness = new Liveness({ name: "till", config: { baudRate: 9_600, crc16: "arc" } }, services, {
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

const operations = contractNames.flatMap((name) =>
  settlingRules[name].map((recovery) => ({ contract: contracts[name], recovery })),
);

const verdicts: readonly unknown[] = ["approved", "declined", "reversed", "closed", "failed", "unprinted", "unknown"];

/** Any operation that can be followed, with a body of its own. */
function tokenOf(random: Random): Token {
  const { contract, recovery } = random.pick(operations);
  const key = routeOf(contract, recovery.route)?.key ?? "pay_id";
  return newToken(contract, recovery.route, { [key]: random.pick(["A-1", "007", "7", "A"]), trans: "T-1", amount: 100 });
}

const settling: Target = {
  name: "the settle machine",
  sources: [
    "settle/machine.ts",
    "settle/proof.ts",
    "settle/state.ts",
    "settle/exact-json.ts",
    "settle/token.ts",
    "settle/remote-service.ts",
  ],
  unit: "answers",
  make: answersText,
  check: async (input, random) => {
    let { token, route, recovery, body } = readToken(tokenOf(random));
    const contract = contracts[random.pick(operations.filter((each) => each.recovery === recovery)).contract.service];
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
    const keyField = keyFieldOf(route);
    const operation = { contract, recovery, keyField, key: body[keyField], asks: route.polling !== undefined };
    for (const [index, answer] of answers.entries()) {
      text = answer;
      const result = await service.tryCall(route, "{}", {});
      if (random.chance(0.05)) token = { ...token, known: stateAfterStop(token.known) };
      const step = nextStep(operation, token.known, result, index * 10_000);
      if ("verdict" in step) {
        assert.ok(verdicts.includes(step.verdict), `an end that is none: ${String(step.verdict)}`);
        break;
      }
      assert.ok(["none", "interval", "back-off"].includes(step.pause));
      // Another process must be able to take it up.
      const stored = JSON.parse(JSON.stringify(withKnown(token, step.state)));
      ({ token, route, recovery, body } = readToken(stored));
      assert.deepEqual(JSON.parse(JSON.stringify(token)), stored);
    }
    return answers.length;
  },
};

/** What was sent before, whose outcome isn't known. */
function openOperations(): OpenOperation[] {
  const routes = { bank: "/sale", fiscal: "/sale", qr: "/showqrcode" } as const;
  return contractNames.map((service, index) => ({
    sent: {
      ...{ kind: "sent", timeMs: Date.now(), requestId: `r${index}`, service, route: routes[service] },
      ...{ key: "A-1", digest: "0", ask: { trans: "T-1", system: "S", currency: "C", terminal: "1" } },
    },
    place: index,
    cause: "no outcome recorded",
    sinceMs: nowMs() - 3_600_000,
  }));
}

const doubting: Target = {
  name: "answers about doubts",
  sources: ["follow/doubts.ts"],
  unit: "answers",
  make: answersText,
  check: (input, random) => {
    let open = openOperations();
    const doubts = new Doubts({
      get open() {
        return open;
      },
      aloneSinceMs: ({ sinceMs }) => (random.chance(0.95) ? sinceMs : undefined),
      progressOf: () => ({
        isAccepted: random.chance(0.2),
        isStopped: random.chance(0.2),
        isUnprinted: random.chance(0.2),
        hasOtherNames: random.chance(0.2),
        mayEndWell: random.chance(0.2),
      }),
      mayBeCleared: () => random.chance(0.1),
      mayHaveOthers: () => random.chance(0.1),
      findOthers: () => (random.chance(0.1) ? { service: "bank-2", sentMs: 0, order: 1 } : undefined),
      begun: () => {},
      heardOf: () => {},
      settle: async (operation, { result }) => {
        assert.ok(isOperationEnd(result), `an end that is none: ${String(result)}`);
        open = open.filter((each) => each !== operation);
        return true;
      },
    });
    doubts.use(new Map(contractNames.map((name) => [name, { contract: contracts[name], merchantId: "M" }])));
    const all = linesOf(input);
    for (const text of all) {
      const operation = open[random.below(3)];
      const question = operation === undefined ? undefined : doubts.questionOf(operation);
      if (operation === undefined || question === undefined) continue;
      const contract = operation.sent.service as keyof typeof contracts; // Of `contractNames`, above.
      const asked = random.chance(0.9) ? question.text : text;
      const form = contracts[contract].envelope === "form";
      const body = form ? `data=${encodeURIComponent(Buffer.from(asked).toString("base64"))}&sign=x` : asked;
      const call = { contract, service: contract, route: question.route, body: [Buffer.from(body)], requestId: "r" };
      const reply: Reply = {
        payload: random.pieces(Buffer.from(text)),
        status: undefined,
        code: undefined,
        queueMs: 0,
        lineMs: 1,
      };
      doubts.asks(operation);
      doubts.answered({ ...call, key: undefined, caller: new Presence() }, reply, nowMs() + random.pick([0, 60_000]));
      assert.ok(isObject(doubts.triedOf(operation)));
      doubts.cannotAsk(operation);
      doubts.absenceDueMs(operation);
    }
    return all.length;
  },
};

export const answerTargets: readonly Target[] = [probes, settling, doubting];
