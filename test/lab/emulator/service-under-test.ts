import assert from "node:assert/strict";
import { validateReply } from "../../../src/contract/schema.ts";
import type { ContractName } from "../../../src/core/call.ts";
import type { JsonObject } from "../../../src/core/json-object.ts";
import type { ServiceAnswer } from "../../../src/lab/emulator/answer.ts";
import { parseExact, writeExact } from "../../../src/lab/emulator/exact-json.ts";
import { type EmulatedOutcome, magicAmountOf } from "../../../src/lab/emulator/faults/magic-amounts.ts";
import type { EmulatedService, ServiceContext } from "../../../src/lab/emulator/service-context.ts";

/** A context whose clock a test drives, and in which amounts decide unless the test does. */
class TestContext implements ServiceContext {
  nowMs = Date.UTC(2024, 4, 6);
  /** What becomes of the next operation. */
  next: EmulatedOutcome | undefined;
  /** Routes that something new began on, or came to nothing. */
  readonly begun: string[] = [];
  changes = 0;

  now(): Date {
    return new Date(this.nowMs);
  }

  outcomeOf(route: string, amount: bigint): EmulatedOutcome | undefined {
    this.begun.push(route);
    const course = magicAmountOf(amount)?.effect;
    const outcome = this.next ?? (course !== undefined && "outcome" in course ? course.outcome : undefined);
    this.next = undefined;
    return outcome;
  }

  changed(): void {
    this.changes += 1;
  }
}

/** A service in a context of its own, asked as over a line: every body and answer goes through its text. */
export class ServiceUnderTest {
  readonly context = new TestContext();
  readonly #name: ContractName;
  readonly #make: (context: ServiceContext) => EmulatedService;
  service: EmulatedService;

  constructor(name: ContractName, make: (context: ServiceContext) => EmulatedService) {
    this.#name = name;
    this.#make = make;
    this.service = make(this.context);
  }

  ask(route: string, body: JsonObject = {}): ServiceAnswer {
    const answer = this.service.answer(route, throughText(body));
    const text = writeExact(answer);
    assert.equal(validateReply(this.#name, route, JSON.parse(text)), undefined, text);
    return answer;
  }

  /** Asserts that an answer is a refusal that people can use, and returns its code. */
  refused(route: string, body: JsonObject = {}): number | undefined {
    const answer = this.ask(route, body);
    assert.equal(answer.status, "error");
    assert.match(String(answer["message"]), /^Cannot .+: .+: .+[^.]$/);
    assert.equal(answer["data"], undefined);
    return answer.code;
  }

  /** Asserts success without data. */
  accepted(route: string, body: JsonObject = {}): void {
    assert.deepEqual(this.ask(route, body), { status: "success" });
  }

  /** As after a restart: another one takes the state back, from its text. */
  restart(): void {
    const saved = throughText(this.service.saved());
    this.service = this.#make(this.context);
    this.service.restore(saved);
    assert.deepEqual(this.service.saved(), saved);
  }
}

function throughText(json: JsonObject): JsonObject {
  const parsed = parseExact(writeExact(json));
  assert.ok(parsed);
  return parsed;
}

/** The `data` of an answer; none when it has none. */
export function dataOf(answer: ServiceAnswer): JsonObject {
  const { data } = answer;
  // The answer went through validateReply, by which data is an object
  return (data ?? {}) as JsonObject;
}

/** The `data` within `data`, where the bank puts what an operation was about. */
export function innerOf(answer: ServiceAnswer): JsonObject {
  const { data } = dataOf(answer);
  // As above
  return (data ?? {}) as JsonObject;
}
