import assert from "node:assert/strict";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { Presence } from "../../src/core/presence.ts";
import { type EmulatedReply, Emulator, type EmulatorOptions } from "../../src/emulator/emulator.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { merchantId } from "./scripted.ts";

/** What came to the emulator, and how it was answered, whatever befell the answer then. */
export interface Arrival {
  readonly service: ContractName;
  readonly route: string;
  readonly text: string;
  readonly done: boolean;
}

/** The emulator with an ear at its door. */
export class Terminal {
  readonly emulator: Emulator;
  readonly arrivals: Arrival[] = [];
  /** Told of each arrival, once it was carried out and before its answer leaves. */
  arrived: (arrival: Arrival) => void = () => {};

  constructor(options: EmulatorOptions = {}) {
    this.emulator = new Emulator({ merchantId, ...options });
  }

  answer(call: Call): EmulatedReply {
    const emulated = this.emulator.answer(call);
    const { contract: service, route, body } = call;
    const arrival = { service, route, text: Buffer.concat(body).toString(), done: emulated.reply.status === "success" };
    this.arrivals.push(arrival);
    this.arrived(arrival);
    return emulated;
  }

  /** Does something at the terminal itself, where nothing can get lost. */
  ask(service: ContractName, route: string, body: object): JsonObject {
    const json = JSON.stringify(body);
    const data = Buffer.from(json).toString("base64");
    const form = `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, merchantId))}`;
    const pieces = [Buffer.from(contracts[service].envelope === "form" ? form : json)];
    const call = {
      service,
      contract: service,
      route,
      body: pieces,
      requestId: "before",
      key: undefined,
      caller: new Presence(),
    };
    const reply: unknown = JSON.parse(Buffer.concat(this.emulator.answer(call).reply.payload).toString());
    assert.ok(isObject(reply) && reply["status"] === "success", `${route} before: ${JSON.stringify(reply)}`);
    return reply;
  }

  /** What it remembers of a service, as a list of records. */
  records(service: ContractName): readonly JsonObject[] {
    const saved = this.emulator.saved()[service];
    const list = isObject(saved) ? (saved["operations"] ?? saved["documents"]) : undefined;
    assert.ok(Array.isArray(list));
    return list.filter(isObject);
  }
}
