import assert from "node:assert/strict";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, type ContractName, contractNames, type Handler } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { memoryTransport } from "../../src/device/memory-transport.ts";
import { msPerByte } from "../../src/device/transport.ts";
import type { EmulatedReply, Emulator } from "../../src/emulator/emulator.ts";
import { faultyTransport } from "../../src/emulator/faults/faulty-transport.ts";
import type { WireFault } from "../../src/emulator/faults/wire-fault.ts";
import { lineEndpoint } from "../../src/emulator/line-endpoint.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { lineCaller } from "../../src/line/caller.ts";
import type { Line } from "../../src/line/line.ts";
import { LineListener } from "../../src/line/listener.ts";
import { configOf, lineOver, merchantId } from "../line/lines.ts";
import { VirtualTime } from "../support/virtual-time.ts";

/** The bridge's own parts against an emulator whose answers go wrong, over a line in memory, in a time of their own. */

export const time = new VirtualTime();

/** Milliseconds that a till waits for a sale. */
const replyTimeoutMs = 10_000;

/** Stands where the emulator does: answers each call with its id, and what befalls the answers is up to the test. */
export class Terminal {
  /** What befalls the answers to calls, one after the other, and those to probes. */
  faults: (WireFault | undefined)[] = [];
  probeFaults: (WireFault | undefined)[] = [];
  /** The calls that were carried out, by id, with the answer that was given. */
  readonly carriedOut = new Map<string, string>();

  answer(call: Call): EmulatedReply {
    const isBarrier = call.route === contracts[call.contract].probe.route;
    const id = idIn(call);
    const filler = "x".repeat(Number(/\d+/.exec(id)?.[0] ?? 0) % 97);
    const json = isBarrier
      ? { status: "success", ...probeAnswers[call.contract] }
      : { status: "success", code: 0, data: { id, filler } };
    const text = JSON.stringify(json);
    if (!isBarrier) this.carriedOut.set(id, text);
    const reply = { payload: [Buffer.from(text)], status: "success", code: 0, queueMs: 0, lineMs: 0 };
    return { reply, fault: (isBarrier ? this.probeFaults : this.faults).shift() };
  }
}

const probeAnswers = {
  fiscal: { operations: ["sale"] },
  bank: { data: { operations: ["sale"] } },
  qr: { data: { systems: [] } },
} as const;

/** A call's id, out of the JSON text or the Base64 of it. */
function idIn({ body }: Call): string {
  const text = Buffer.concat(body).toString();
  const data = /^data=([^&]*)/.exec(text)?.[1];
  const json = data === undefined ? text : Buffer.from(decodeURIComponent(data), "base64").toString();
  return /"id":"(\w+)"/.exec(json)?.[1] ?? "";
}

const routes: Readonly<Record<ContractName, string>> = { fiscal: "/sale", bank: "/sale", qr: "/showqrcode" };

function callOf(service: ContractName, id: string, route: string, body: object): Call {
  const json = JSON.stringify(body);
  const data = Buffer.from(json).toString("base64");
  const form = `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, merchantId))}`;
  const written = [Buffer.from(contracts[service].envelope === "form" ? form : json)];
  return { service, contract: service, route, body: written, requestId: id, key: id, caller: new Presence() };
}

/** How a call ended: answered with these bytes, or a fault. */
export interface Ended {
  readonly id: string;
  text?: string;
  fault?: Fault;
}

export interface BenchOptions {
  readonly services?: readonly ContractName[];
  readonly baudRate?: number;
  /** The far end, where it isn't the bench's `terminal`. */
  readonly emulator?: Emulator;
}

/** Bridge and terminal at the two ends of a line in memory. */
export class Bench {
  readonly terminal = new Terminal();
  readonly line: Line;
  readonly #handlers: Readonly<Record<ContractName, Handler>>;
  readonly #listener: LineListener;
  #count = 0;

  constructor({ services = contractNames, baudRate = 115_200, emulator }: BenchOptions = {}) {
    const config = configOf({ baudRate });
    const { near, far, unplug } = memoryTransport(msPerByte(config));
    const { handler, stepsFor } = lineEndpoint(emulator ?? this.terminal, config.crc16);
    this.#listener = new LineListener({
      config,
      open: faultyTransport({ open: far, stepsFor, msPerByte: msPerByte(config), unplug }),
      services: services.map((service) => ({ contract: contracts[service], handler })),
      report: { discard: () => {}, state: () => {} },
    });
    this.#listener.start();
    const { line } = lineOver(near, { services, config: { baudRate }, merchantId });
    this.line = line;
    const caller = (service: ContractName) => {
      const contract = contracts[service];
      return lineCaller({ contract, line, replyTimeoutMs: { [routes[service]]: replyTimeoutMs }, merchantId });
    };
    this.#handlers = { fiscal: caller("fiscal"), bank: caller("bank"), qr: caller("qr") };
    line.start();
  }

  /** Sends a call; how it ends is noted in what it gives. */
  send(service: ContractName, route = routes[service], body?: object): Ended {
    const ended: Ended = { id: `ID${this.#count++}` };
    this.#handlers[service](callOf(service, ended.id, route, body ?? { id: ended.id })).then(
      ({ payload }) => {
        ended.text = Buffer.concat(payload).toString();
      },
      (error: unknown) => {
        if (!(error instanceof Fault)) throw error;
        ended.fault = error;
      },
    );
    return ended;
  }

  async end(...all: readonly Ended[]): Promise<void> {
    const isEnd = () => all.every(({ text, fault }) => text !== undefined || fault !== undefined);
    assert.equal(await time.until(isEnd), true, "a call never ended");
  }

  async idle(): Promise<void> {
    assert.equal(await time.until(() => this.line.state === "idle", 120_000), true, `${this.line.state}: ${this.line.reason}`);
  }

  /** What every till must be able to rely on. */
  assertTrue({ id, text, fault }: Ended): void {
    if (text !== undefined) assert.equal(text.trimEnd(), this.terminal.carriedOut.get(id), `${id} was given another's answer`);
    else if (fault?.outcome === "not-sent") assert.equal(this.terminal.carriedOut.has(id), false, `${id} was sent`);
    else assert.equal(fault?.outcome, "unknown");
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([this.line.stop(0), this.#listener.stop()]);
    await time.advance(2_000);
    await stopped;
  }
}
