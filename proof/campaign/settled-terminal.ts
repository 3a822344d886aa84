import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, type ContractName, contractNames, type ServiceName } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { Presence } from "../../src/core/presence.ts";
import type { OpenTransport } from "../../src/device/transport.ts";
import { Emulator } from "../../src/lab/emulator/emulator.ts";
import type { FaultChance } from "../../src/lab/emulator/faults/fault-plan.ts";
import { listenAtDevice } from "../../src/lab/emulator/line-endpoint.ts";
import type { LineListener } from "../../src/line/listener.ts";
import { bodyOf, merchantId } from "./request-body.ts";

/**
 * The terminal at the other end of a line: posline's emulator, whose ledger can be looked at at every moment, and which notes each operation
 * that arrives with what it knew of it before.
 */

const baudRate = 115_200;

/** What the terminal has of an operation. `unprinted`: closed, and its print is missing. */
export type Standing = "absent" | "running" | "approved" | "declined" | "reversed" | "closed" | "unprinted";

/** An operation, as a ledger finds it. What its service is called on the box is nothing that a terminal knows. */
export type Named = { readonly contract: ContractName; readonly route: string; readonly key: string };

export interface Arrival extends Named {
  /** What the terminals had of it before. */
  readonly before: Standing;
}

/** The terminal's end of a line, which can be unplugged. */
export type SettledDevice = { readonly open: OpenTransport; unplug(ms: number): void; close(): Promise<void> | void };

export interface SettledTerminalOptions {
  /** Where posline finds it. */
  readonly path: string;
  readonly device: SettledDevice;
  /** Its services by name. */
  readonly services: Readonly<Record<ServiceName, ContractName>>;
  readonly seed: number;
  readonly chances: readonly FaultChance[];
  /** What all terminals have of an operation: a box may have asked another one before. */
  readonly standing: (named: Named) => Standing;
}

export class SettledTerminal {
  /** The operations that were sent to it, in order. */
  readonly arrivals: Arrival[] = [];
  /** Called when the next one comes, before it is carried out. */
  onArrival = () => {};
  readonly #services: SettledTerminalOptions["services"];
  readonly #standing: SettledTerminalOptions["standing"];
  readonly #emulator: Emulator;
  readonly #device: SettledDevice;
  readonly #listener: LineListener;

  constructor({ path, device, services, seed, chances, standing }: SettledTerminalOptions) {
    this.#services = services;
    this.#standing = standing;
    this.#emulator = new Emulator({ merchantId, seed, chances });
    for (const [service, contract] of Object.entries(services)) {
      this.#emulator.play(service, { contract, merchantId });
      if (contract === "fiscal") this.#ask(service, "/open_shift", {});
    }
    const config = { ...lineDefaults, path, baudRate };
    this.#device = device;
    this.#listener = listenAtDevice({
      emulator: { answer: (call) => this.#answer(call) },
      config,
      open: device.open,
      unplug: (ms) => device.unplug(ms),
      services: Object.entries(services).map(([service, contract]) => ({ contract: contracts[contract], service })),
    });
  }

  /** Carries out a large sale, without the line. @returns its rrn, for refunds. */
  soldBefore(service: ServiceName, key: string): string {
    this.#ask(service, "/sale", { pay_id: key, amount: 900_000_000_00, currency_name: "EUR" });
    const asked = [1, 2].map(() => this.#ask(service, "/check", { pay_id: key })["data"]);
    const rrn = isObject(asked[1]) ? asked[1]["rrn"] : undefined;
    if (typeof rrn !== "string") throw new Error(`Cannot sell before: the answer is ${JSON.stringify(asked)}`);
    return rrn;
  }

  /** What it has of an operation now. */
  standing(named: Named): Standing {
    const { contract } = named;
    const found = this.#recordOf(named);
    if (found === undefined) return "absent";
    if (contract === "fiscal") {
      const { closed } = found;
      if (!isObject(closed)) return "running";
      return closed["printTime"] === undefined ? "unprinted" : "closed";
    }
    if (found["ended"] !== true) return "running";
    const { end } = found;
    // A qr payment that was reversed is an error as any other.
    if (end === "approved" || (end === "reversed" && contract === "bank")) return end;
    return "declined";
  }

  /** The number by which the terminal's answer names an operation that was carried out. */
  numberOf(named: Named): unknown {
    return this.#recordOf(named)?.[named.contract === "fiscal" ? "id" : "rrn"];
  }

  /** No answer goes wrong from now on but by its amount. */
  calm(): void {
    this.#emulator.plan.chances = [];
  }

  async end(): Promise<void> {
    await this.#listener.stop();
    await this.#device.close();
  }

  #recordOf({ contract, route, key }: Named): JsonObject | undefined {
    const service = Object.keys(this.#services).find((name) => this.#services[name] === contract) ?? contract;
    const saved = this.#emulator.services[service]?.saved() ?? {};
    const list: unknown = contract === "fiscal" ? saved["documents"] : saved["operations"];
    const fits = (record: JsonObject) => {
      if (contract === "fiscal") return record["extId"] === key && `/${String(record["kind"])}` === route;
      return record["payId"] === key && (contract === "qr" || record["route"] === route);
    };
    return (Array.isArray(list) ? list : []).filter(isObject).findLast(fits);
  }

  #answer(call: Call): ReturnType<Emulator["answer"]> {
    const contract = this.#services[call.service];
    const route = contracts[call.contract].routes.find(({ path }) => path === call.route);
    const keyField = route?.polling === undefined ? undefined : route.key;
    const key = keyField === undefined ? undefined : jsonOf(call)[keyField];
    if (contract !== undefined && typeof key === "string") {
      const named = { contract, route: call.route, key };
      this.arrivals.push({ ...named, before: this.#standing(named) });
      this.onArrival();
    }
    return this.#emulator.answer(call);
  }

  /** Asks it by itself, not over the line. */
  #ask(service: ServiceName, route: string, body: object): JsonObject {
    const contract = this.#services[service] ?? "bank";
    const text = bodyOf(contract, body);
    const call = {
      service,
      contract,
      route,
      body: [Buffer.from(text)],
      requestId: "-",
      key: undefined,
      caller: new Presence(),
    };
    const answer: unknown = JSON.parse(Buffer.concat(this.#emulator.answer(call).reply.payload).toString());
    return isObject(answer) ? answer : {};
  }
}

function jsonOf({ contract, body }: Call): JsonObject {
  const text = Buffer.concat(body).toString();
  const isForm = contracts[contract].envelope === "form";
  const json: unknown = JSON.parse(
    isForm ? Buffer.from(new URLSearchParams(text).get("data") ?? "", "base64").toString() || "{}" : text || "{}",
  );
  return isObject(json) ? json : {};
}

/** Every contract once, named by the line: `bank-2`. */
export function servicesOf(line: number): Readonly<Record<ServiceName, ContractName>> {
  return Object.fromEntries(contractNames.map((contract) => [line === 1 ? contract : `${contract}-${line}`, contract]));
}
