import assert from "node:assert/strict";
import { validateReply } from "../../../../src/contract/schema.ts";
import type { JsonObject } from "../../../../src/core/json-object.ts";
import { parseExact, writeExact } from "../../../../src/lab/emulator/exact-json.ts";
import { type EmulatedOutcome, magicAmountOf } from "../../../../src/lab/emulator/faults/magic-amounts.ts";
import { emulatedFiscal } from "../../../../src/lab/emulator/fiscal/fiscal.ts";
import type { EmulatedService, ServiceContext } from "../../../../src/lab/emulator/service-context.ts";

/** The emulated fiscal service in a context whose clock stands still until it is moved, and whose courses can be forced. */
export class FiscalContext implements ServiceContext {
  readonly service: EmulatedService;
  /** Milliseconds. */
  time = new Date(2024, 4, 6, 7, 8, 9).getTime();
  /** What becomes of the operations that begin next, before their amounts are looked at. */
  readonly forced: (EmulatedOutcome | undefined)[] = [];
  /** The operations whose outcome was asked for. */
  readonly begun: { readonly route: string; readonly amount: bigint }[] = [];
  changes = 0;

  constructor() {
    this.service = emulatedFiscal(this);
  }

  now(): Date {
    return new Date(this.time);
  }

  outcomeOf(route: string, amount: bigint): EmulatedOutcome | undefined {
    this.begun.push({ route, amount });
    if (this.forced.length > 0) return this.forced.shift();
    const course = magicAmountOf(amount)?.effect;
    return course !== undefined && "outcome" in course ? course.outcome : undefined;
  }

  changed(): void {
    this.changes += 1;
  }

  /** Asks as a till does, by JSON text, and holds every answer against the contract's schema. Integers come back as bigints. */
  ask(route: string, body: JsonObject = {}): JsonObject {
    const text = writeExact(this.service.answer(route, read(writeExact(body))));
    assert.equal(validateReply("fiscal", route, JSON.parse(text)), undefined, `${route}: ${text}`);
    const answer = read(text);
    assert.equal(answer["status"], answer["code"] === 0n ? "success" : "error", text);
    assert.equal(answer["status"] === "error", typeof answer["message"] === "string", text);
    return answer;
  }

  /** The code of the answer. */
  code(route: string, body: JsonObject = {}): number {
    return Number(this.ask(route, body)["code"]);
  }

  /** Asks for what must succeed. */
  done(route: string, body: JsonObject = {}): JsonObject {
    const answer = this.ask(route, body);
    assert.equal(answer["status"], "success", `${route}: ${answer["message"]}`);
    return answer;
  }

  /** A context like this one, that got what this one remembers from a file. */
  restored(): FiscalContext {
    const context = new FiscalContext();
    context.time = this.time;
    context.service.restore(read(writeExact(this.service.saved())));
    return context;
  }
}

function read(text: string): JsonObject {
  const json = parseExact(text);
  assert.ok(json, text);
  return json;
}

/** A receipt over one item, paid in cash unless it says otherwise. */
export function receipt(documentExtID: string, itemAmount: number | bigint, more: JsonObject = {}): JsonObject {
  return { documentExtID, items: [{ itemName: "Bread", itemAmount }], ...more };
}

export const byCard = (cashlessAmount: number | bigint) => ({ payments: { cashlessAmount } });
