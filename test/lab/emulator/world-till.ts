import assert from "node:assert/strict";
import { validateReply } from "../../../src/contract/schema.ts";
import type { ContractName } from "../../../src/core/call.ts";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { Emulator, type EmulatorOptions } from "../../../src/lab/emulator/emulator.ts";
import { worldOf } from "../../../src/lab/emulator/world.ts";
import type { WorldShape } from "../../../src/lab/emulator/world-schema.ts";
import type { Ask } from "./conformance-rows.ts";
import { bodyOf, merchantId } from "./conforming.ts";

/** A till at an emulator on a line whose answers all have to fit the contract. */
export class WorldTill {
  readonly emulator: Emulator;

  constructor(shape: WorldShape = {}, options: EmulatorOptions = {}) {
    const clock = () => new Date(2026, 10, 20, 12, 0, 0);
    this.emulator = new Emulator({ merchantId, clock, world: worldOf(shape), ...options });
  }

  /** The answer's text. */
  text(service: ContractName, ask: Ask): string {
    const body = [Buffer.from(bodyOf(service, ask.body === undefined && service === "fiscal" ? { ...ask, body: {} } : ask))];
    const call = { service, contract: service, route: ask.route, body, requestId: "r", key: undefined, caller: new Presence() };
    const text = Buffer.concat(this.emulator.answer(call, "line").reply.payload).toString();
    assert.equal(validateReply(service, ask.route, JSON.parse(text))?.message, undefined, text);
    return text;
  }

  ask(service: ContractName, route: string, body: JsonObject = {}): JsonObject {
    return JSON.parse(this.text(service, { route, body }));
  }

  /** The code of a refusal; undefined, or fiscal's 0, for success. */
  code(service: ContractName, route: string, body: JsonObject = {}): unknown {
    return this.ask(service, route, body)["code"];
  }
}
