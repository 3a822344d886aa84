import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { Route } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { OperationLog, OperationLogEnding } from "../../src/contract/operation-log.ts";
import type { Call, ContractName, Reply } from "../../src/core/call.ts";
import { askAgain, checkByEye, checkFirst, Fault } from "../../src/core/fault.ts";
import type { OperationEnd } from "../../src/core/followed.ts";
import { Presence } from "../../src/core/presence.ts";
import { lineCaller } from "../../src/line/caller.ts";
import type { LineRequest } from "../../src/line/exchange.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { lineOver } from "./lines.ts";

/** What is recorded of calls, and when. */

const time = virtualTime();

/** A ledger whose disk takes some time, or refuses, or lets nothing end. */
class FakeOperationLog implements OperationLog {
  readonly told: string[] = [];
  diskMs = 5;
  refuses = false;
  end: OperationEnd | undefined;

  refuseCopy({ key }: Call): void {
    if (key === "COPY") throw new Fault("broken", "Cannot send it once more", { reason: "sent-before" });
  }

  begin({ route, key }: Call, _: Route, device = "") {
    this.told.push(`begin ${route} ${key} over ${device}`);
    return {
      sent: async () => {
        await this.#disk();
        if (this.refuses) throw new Fault("unavailable", "Cannot send: its record can't be written");
        this.told.push("sent");
      },
      ended: async ({ outcome, status, code, left }: OperationLogEnding) => {
        this.told.push(`ending ${outcome} ${status} ${code}${left === true ? " left" : ""}`);
        await this.#disk();
        this.told.push("ended");
        return this.end;
      },
    };
  }

  #disk(): Promise<void> {
    return new Promise((resolve) => time.after(this.diskMs, resolve));
  }
}

const callOf = (service: ContractName, route: string, key: string | undefined, caller = new Presence()): Call => ({
  ...{ service, contract: service, route, body: [Buffer.from("{}")], requestId: "r", key, caller },
});

async function bench(answers = true) {
  const ledger = new FakeOperationLog();
  const device: FakeDevice = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) return device.reply(framing, probe);
    ledger.told.push(`heard ${text.split("\n")[0]}`);
    if (answers) device.reply(framing, '{"status":"success","code":7}');
  });
  const { line } = lineOver(device.open);
  line.start();
  await time.until(() => line.state === "idle");
  const settings = { contract: contracts.bank, replyTimeoutMs: { "/sale": 4_000 }, merchantId: undefined };
  const ask = lineCaller({ ...settings, line, ledger, device: "tty" });
  const run = async (route: string, caller = new Presence(), key: string | null = "K") => {
    const outcome = (await ask(callOf("bank", route, key ?? undefined, caller)).catch((error: unknown) => error)) as
      | Reply
      | Fault;
    ledger.told.push(outcome instanceof Fault ? `told ${outcome.outcome}` : `told ${outcome.code}`);
    return outcome;
  };
  return { ledger, line, device, run };
}

test("lineCaller() records a call before its first byte, and its outcome before the caller learns it", async () => {
  const { ledger, run } = await bench();
  void run("/sale");
  await time.advance(100);
  assert.deepEqual(ledger.told, [
    ...["begin /sale K over tty", "sent", "heard /sale", "ending answered success 7", "ended", "told 7"],
  ]);
});

test("lineCaller() says of an answer which end it proves, by the record", async () => {
  const { ledger, run } = await bench();
  const ends: unknown[] = [];
  for (const end of [undefined, "approved"] as const) {
    ledger.end = end;
    void run("/sale").then((reply) => ends.push(reply instanceof Fault ? reply : reply.end));
    await time.advance(100);
  }
  assert.deepEqual(ends, [undefined, "approved"]);
});

test("lineCaller() asks on the route of the second question as on any other", async () => {
  const device: FakeDevice = new FakeDevice((framing, text) =>
    device.reply(framing, probeReply({ framing, text, number: 0 }) ?? '{"status":"success","code":8}'),
  );
  const { line } = lineOver(device.open, { services: ["qr"] });
  line.start();
  await time.until(() => line.state === "idle");
  const ask = lineCaller({ contract: contracts.qr, line, replyTimeoutMs: {}, merchantId: undefined });
  const asked = ask(callOf("qr", "/check", "K"));
  await time.advance(100);
  assert.equal((await asked).code, 8);
});

test("lineCaller() refuses the copy of what a crash cut off when it comes, whatever its line does", async () => {
  const { ledger, line, run } = await bench();
  void line.stop(0);
  const fault = await run("/sale", new Presence(), "COPY");
  assert.ok(fault instanceof Fault);
  assert.deepEqual([fault.outcome, fault.reason], ["unknown", "sent-before"]);
  assert.deepEqual(ledger.told, ["told unknown"]);
});

test("lineCaller() records neither a question nor a call that was refused before its turn", async () => {
  const { ledger, line, run } = await bench();
  void run("/check");
  await time.advance(100);
  void line.stop(0);
  void run("/sale");
  await time.advance(100);
  assert.deepEqual(ledger.told, ["heard /check", "told 7", "told not-sent"]);
});

test("lineCaller() records an unknown outcome, and one that was not sent after all", async () => {
  const { ledger, device, run } = await bench(false);
  void run("/sale");
  await time.advance(60_000);
  assert.deepEqual(ledger.told.slice(3), ["ending unknown undefined undefined", "ended", "told unknown"]);
  ledger.told.length = 0;
  const caller = new Presence();
  void run("/refund", caller);
  await time.settle();
  caller.leave();
  await time.advance(100);
  assert.deepEqual(ledger.told.slice(0, 2), ["begin /refund K over tty", "ending not-sent undefined undefined left"]);
  assert.deepEqual(ledger.told.filter((each) => /^(heard|ending|told)/.test(each)).slice(1), ["told not-sent"]);
  ledger.told.length = 0;
  void run("/sale");
  await time.settle();
  device.unplug();
  await time.advance(100);
  assert.ok(ledger.told.includes("ending not-sent undefined undefined"));
  assert.ok(ledger.told.includes("told not-sent"));
});

test("lineCaller() refuses what its ledger refuses, and says so to the ledger too", async () => {
  const { ledger, run } = await bench();
  ledger.refuses = true;
  void run("/sale");
  await time.advance(100);
  assert.deepEqual(ledger.told, ["begin /sale K over tty", "ending not-sent undefined undefined", "told not-sent", "ended"]);
});

test("lineCaller() doesn't let whoever was not sent wait for a disk that hangs", async () => {
  const { ledger, run } = await bench();
  ledger.refuses = true;
  void run("/sale");
  await time.settle();
  ledger.diskMs = Number.MAX_SAFE_INTEGER;
  await time.advance(10);
  assert.equal(ledger.told.at(-1), "told not-sent");
});

test("lineCaller() tells the ledger that the caller had left before the outcome", async () => {
  const { ledger, run } = await bench(false);
  const caller = new Presence();
  void run("/sale", caller);
  await time.advance(100);
  caller.leave();
  await time.advance(60_000);
  assert.ok(ledger.told.includes("ending unknown undefined undefined left"));
});

test("lineCaller() advises to ask again after a question without a reply, to check first after a sale, and to look where there is no name to ask by", async () => {
  for (const [route, advice, key] of [
    ["/check", askAgain, "K"],
    ["/sale", checkFirst.bank, "K"],
    ["/sale", checkByEye, null],
    ["/terminate", checkByEye, "K"],
  ] as const) {
    const { run } = await bench(false);
    const outcome = run(route, new Presence(), key);
    await time.advance(60_000);
    const fault = await outcome;
    assert.ok(fault instanceof Fault && fault.message.endsWith(advice), `${route}: ${String(fault)}`);
  }
});

test("lineCaller() has what only reads sent once more after a corrupt reply, and nothing that moves money", async () => {
  for (const [route, times] of [
    ["/check", 2],
    ["/sale", 1],
  ] as const) {
    const { ledger, device, run } = await bench(false);
    void run(route);
    await time.advance(100);
    device.reply("length", "no JSON");
    await time.advance(5_000);
    assert.equal(ledger.told.filter((each) => each.startsWith("heard")).length, times, route);
  }
});

test("lineCaller() refuses a route that its contract doesn't have, and names it", async () => {
  const { ledger, run } = await bench();
  const outcome = await run("/slae");
  assert.ok(outcome instanceof Fault);
  assert.deepEqual([outcome.reason, outcome.outcome], ["unknown-route", "not-sent"]);
  assert.match(outcome.message, /Cannot send the request: .*\/slae.*\/sale/);
  assert.deepEqual(ledger.told, ["told not-sent"]);
});

test("lineCaller() records what fails by a bug as unknown: nobody knows whether it was sent", async () => {
  const { ledger, line, run } = await bench();
  mock.method(line, "run", async ({ beforeSend }: LineRequest) => {
    await beforeSend?.();
    throw new TypeError("a bug");
  });
  void run("/sale");
  await time.advance(100);
  assert.ok(ledger.told.includes("ending unknown undefined undefined"), ledger.told.join());
});

test("lineCaller() says which of posline's own questions a reply may look like: its route's own, and of a shift", async () => {
  const shapes: Record<string, unknown> = {};
  for (const contract of Object.values(contracts)) {
    for (const { path } of contract.routes) {
      const { line } = lineOver(new FakeDevice(() => {}).open);
      mock.method(line, "run", ({ shapedAs }: LineRequest) => {
        if (shapedAs !== undefined) shapes[`${contract.service} ${path}`] = shapedAs;
        return Promise.reject(new Fault("unavailable", "not here"));
      });
      const ledger = new FakeOperationLog();
      const ask = lineCaller({ contract, line, replyTimeoutMs: {}, merchantId: "M", ledger, device: "tty" });
      await ask(callOf(contract.service, path, undefined)).catch(() => {});
    }
  }
  assert.deepEqual(shapes, {
    "fiscal /supported_operations": "probe",
    "fiscal /open_shift": "second",
    "fiscal /close_shift": "second",
    "fiscal /check_shift": "second",
    "fiscal /x_report": "second",
    "fiscal /dates_report": "second",
    "fiscal /get_info": "second",
    "bank /supported_operations": "probe",
    "bank /terminals": "second",
    "qr /check_connection": "probe",
    "qr /check": "second",
  });
});
