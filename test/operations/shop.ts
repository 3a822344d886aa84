import assert from "node:assert/strict";
import { Ways } from "../../src/bridge/ways.ts";
import type { Call, ContractName, Handler, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { Presence } from "../../src/core/presence.ts";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import { keyOf } from "../../src/envelope/json.ts";
import { Operations } from "../../src/operations/operations.ts";
import { bytes, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import type { VirtualTime } from "../support/virtual-time.ts";
import { replyOf } from "./whole-box.ts";

/** Whose terminal a service has, by the mark of its line's device. */
type Place = { readonly contract: ContractName; readonly device: string };

/** What the terminal answers; undefined for nothing. */
export type Answer = (route: string, body: JsonObject, count: number) => object | undefined;

/** What a case does, and the word that is told by then; `422` for a refusal by that. */
export type Step =
  | {
      readonly send: string;
      readonly body?: object;
      readonly plain?: true;
      readonly waitS?: number;
      readonly by?: string;
      readonly is?: string;
    }
  | { readonly check: string; readonly body?: object }
  | { readonly wait: number }
  | { readonly move: string }
  | { readonly restart: true };

export interface Case {
  readonly name: string;
  readonly contract?: ContractName;
  readonly answer: Answer;
  readonly steps: readonly Step[];
  /** How often the route of the first sending was on the line; once unless given. */
  readonly times?: number;
  readonly noJournal?: true;
}

const lost = new Fault("timeout", "No valid reply from line till", { reason: "no-reply" });

/** A bank, fiscal or qr service by the handlers of a bridge, whose terminal answers as a case says, in virtual time. */
export class Shop {
  readonly #time: VirtualTime;
  readonly #answer: Answer;
  readonly #hasJournal: boolean;
  readonly #sent: string[] = [];
  readonly #places = new Map<string, Place>();
  #disk = new SimDisk();
  #operations = new Operations();
  #ways: Ways | undefined;
  #calls = new Map<string, Handler>();

  /** The answer to the last call, or its fault. */
  told: Reply | Fault | undefined;

  constructor(time: VirtualTime, { contract = "bank", answer, noJournal }: Omit<Case, "name" | "steps">) {
    this.#time = time;
    this.#answer = answer;
    this.#hasJournal = noJournal === undefined;
    this.#places.set("till", { contract, device: `${contract} one` });
    this.#places.set("other", { contract, device: `${contract} one` });
    this.#start();
  }

  count(route: string): number {
    return this.#sent.filter((each) => each === route).length;
  }

  async do(step: Step): Promise<string | undefined> {
    if ("wait" in step) await this.#time.advance(step.wait * 1_000);
    else if ("move" in step) {
      for (const [name, { contract }] of this.#places) this.#places.set(name, { contract, device: `${contract} ${step.move}` });
      this.#prepare();
    } else if ("restart" in step) {
      this.#ways?.stop();
      this.#disk = this.#disk.afterCut([{ keeps: "all", bytes: 0 }], true);
      this.#start();
      await this.#time.settle();
    } else if ("check" in step) await this.#call("till", step.check, step.body ?? {}, undefined);
    else return this.#call(step.by ?? "till", step.send, step.body ?? {}, step.plain ? undefined : (step.waitS ?? 60));
    return undefined;
  }

  #start(): void {
    const journal = { folder, bytes, onFailure: "relay", report: new Told(), disk: this.#disk } as const;
    this.#operations = this.#hasJournal ? new Operations(journal) : new Operations();
    void this.#operations.start();
    this.#ways = new Ways({ operations: this.#operations, folder, resolve: "observe", error: assert.ifError });
    this.#prepare();
  }

  #prepare(): void {
    const services = Object.fromEntries(
      [...this.#places].map(([name, { contract }]) => [name, serviceConfigOf({ contract, merchantId: "M" })]),
    );
    for (const [service, { device }] of this.#places) {
      const config = services[service] ?? serviceConfigOf();
      const calls = this.#ways?.handlerOf({ service, config }, (call) => this.#exchange(call, device), device);
      if (calls !== undefined) this.#calls.set(service, calls);
    }
    const line = { name: "till", state: "idle", waiting: 0 };
    this.#ways?.take({ lines: {}, services, journal: false, log: { level: "info" } }, [line]);
  }

  async #call(service: string, route: string, more: object, waitS: number | undefined): Promise<string | undefined> {
    const { contract } = this.#places.get(service) ?? { contract: "bank" };
    const keyField = contract === "fiscal" ? "documentExtID" : "pay_id";
    const json: JsonObject = { [keyField]: "A-1", ...(route.startsWith("/check") ? {} : { amount: 100 }), ...more };
    const text = JSON.stringify(json);
    const body = contract === "fiscal" ? `data=${encodeURIComponent(Buffer.from(text).toString("base64"))}&sign=x` : text;
    const call: Call = {
      ...{ service, contract, route, body: [Buffer.from(body)], requestId: "r", key: keyOf(json[keyField]) },
      ...{ caller: new Presence(), followMs: waitS === undefined ? undefined : waitS * 1_000 },
    };
    let word: string | undefined;
    let isOver = false;
    const calling = this.#calls
      .get(service)?.(call)
      .then(
        (reply) => {
          this.told = reply;
          return reply.followed;
        },
        (error: unknown) => {
          assert.ok(error instanceof Fault, String(error));
          this.told = error;
          word = error.kind === "reused" ? "422" : undefined;
          return error.details.followed;
        },
      );
    void calling?.then((followed) => {
      word ??= followed?.result;
      isOver = true;
    });
    assert.ok(await this.#time.until(() => isOver, 200_000), `${route} is answered`);
    return word;
  }

  /** As a line does it. */
  async #exchange(call: Call, device: string): ReturnType<Handler> {
    const isQuestion = call.route.startsWith("/check");
    const entry = isQuestion ? undefined : this.#operations.begin(call, routeTo(call.route, call.contract), device);
    try {
      await entry?.sent();
      this.#sent.push(call.route);
      const text = Buffer.concat(call.body).toString();
      const { data } = parseForm(Buffer.from(text));
      const json = data === undefined ? text : Buffer.from(unescapeValue(data), "base64").toString();
      const answer = this.#answer(call.route, JSON.parse(json), this.count(call.route));
      await new Promise((resolve) => this.#time.after(10, () => resolve(undefined)));
      if (answer === undefined) throw lost;
      const reply = replyOf(answer);
      await entry?.ended({ outcome: "answered", ...reply });
      return reply;
    } catch (error) {
      if (error instanceof Fault) await entry?.ended({ outcome: error.outcome });
      throw error;
    }
  }
}
