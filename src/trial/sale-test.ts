import type { Client } from "../client/client.ts";
import type { Settled, SettleEventType, SettleOptions } from "../client/settle-types.ts";
import { isObject } from "../core/json-object.ts";
import { logged, loggedSentence } from "../core/log-text.ts";
import { scalarText } from "../settle/exact-json.ts";
import { type TestedTerminal, testedTerminal } from "./terminal-test.ts";

/**
 * A test sale at a bank terminal: a sale of a named amount, followed to its end, and given back. Sale and giving back go out once each, each
 * with a key of its own. Only an approved sale is given back, by the reference number of its own answer: what is in doubt is left to the
 * person at the terminal.
 */

/** Milliseconds for which sale and giving back are followed, each: a customer's card and PIN take a minute or two. */
const windowMs = 180_000;

/** Steps that are told, of which repeated ones count once. */
const stepsMax = 64;

interface TestStep {
  readonly time: string;
  readonly route: string;
  readonly key: string;
  readonly type: SettleEventType;
}

/**
 * How a test sale ended. `given-back`: approved, and given back. `kept`: approved, and not given back. `in-doubt`: nobody knows whether the
 * sale was carried out, and nothing was given back. `back-in-doubt`: approved, and nobody knows whether it was given back. `not-approved`,
 * `not-sent`: no money has moved.
 */
export type SaleTestEnd = "given-back" | "kept" | "in-doubt" | "back-in-doubt" | "not-approved" | "not-sent";

export interface TestedMoney {
  readonly amount: number;
  readonly currency: string;
}

const giveByEye = "Give it back at the terminal";
const lookFirst = "Look at the terminal and its report before anything else";

export class SaleTest {
  readonly money: TestedMoney;
  readonly steps: TestStep[] = [];
  end: SaleTestEnd | undefined;
  /** Why it ended so, and what to do. */
  message: string | undefined;
  readonly #bank: Client["bank"];
  readonly #newKey: () => string;
  readonly #ask: () => Promise<TestedTerminal>;
  readonly #stop: AbortSignal;

  /** @param service The name of the service, with which the client was made. @param stop Stops following. */
  constructor(client: Client, service: string, money: TestedMoney, stop: AbortSignal) {
    this.money = money;
    // The client has each service that it was made with under its name; this one speaks the bank's contract.
    this.#bank = (client as unknown as Readonly<Record<string, Client["bank"]>>)[service] ?? client.bank;
    this.#newKey = () => client.newKey();
    this.#ask = () => testedTerminal(client, { name: service, contract: "bank" });
    this.#stop = stop;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#sell();
    } catch (error) {
      // A bug proves nothing of what has left.
      const sent = this.steps.findLast(({ type }) => type === "sent")?.route;
      const end = sent === undefined ? "not-sent" : sent === "/sale" ? "in-doubt" : "back-in-doubt";
      this.#ended(end, `${String(error)}: ${sent === undefined ? "nothing was sent" : lookFirst}`);
    }
  }

  async #sell(): Promise<void> {
    const asked = await this.#ask();
    if ("error" in asked) return this.#ended("not-sent", asked.error);
    const offered = asked.offer !== undefined && "operations" in asked.offer ? asked.offer.operations : [];
    if (!offered.includes("sale")) return this.#ended("not-sent", "The terminal doesn't offer sale");
    const sale = await this.#once("sale", undefined);
    if (sale.result === "not-sent") return this.#ended("not-sent", sale.message);
    if (sale.result === "unknown") return this.#ended("in-doubt", said(sale, lookFirst));
    if (sale.result !== "approved") return this.#ended("not-approved", sale.message);
    const back = (["cancel", "refund"] as const).find((each) => offered.includes(each));
    if (back === undefined) return this.#ended("kept", `The terminal offers neither cancel nor refund. ${giveByEye}`);
    const rrn = isObject(sale.data) ? scalarText(sale.data["rrn"]) : undefined;
    if (rrn === undefined) return this.#ended("kept", `The terminal named no rrn to give it back by. ${giveByEye}`);
    const given = await this.#once(back, rrn);
    if (given.result === "approved" || given.result === "reversed") return this.#ended("given-back", undefined);
    if (given.result === "unknown") return this.#ended("back-in-doubt", said(given, lookFirst));
    this.#ended("kept", said(given, giveByEye));
  }

  /** Sends one operation once, and follows it by questions alone. */
  async #once(operation: "sale" | "cancel" | "refund", rrn: string | undefined): Promise<Settled> {
    const { amount, currency } = this.money;
    const key = this.#newKey();
    const askOnly = new AbortController();
    let isSent = false;
    let why: string | undefined;
    const options: SettleOptions = {
      windowMs,
      signal: this.#stop,
      askOnly: askOnly.signal,
      onProgress: ({ type, message }) => {
        // Whatever comes after its sending, it isn't sent again.
        if (isSent) askOnly.abort();
        isSent ||= type === "sent";
        why = message ?? why;
        this.#step({ time: new Date().toISOString(), route: `/${operation}`, key, type });
      },
    };
    const body = { pay_id: key, amount, currency_name: currency, ...(rrn !== undefined && { rrn }) };
    const settled = await this.#bank.settle(operation, body, options);
    return { ...settled, message: (settled.result === "not-sent" ? why : undefined) ?? settled.message };
  }

  #step(step: TestStep): void {
    const isAgain = this.steps.slice(-2).some(({ route, type }) => route === step.route && type === step.type);
    if (!isAgain && this.steps.length < stepsMax) this.steps.push(step);
  }

  #ended(end: SaleTestEnd, message: string | undefined): void {
    this.end = end;
    this.message = message === undefined ? undefined : loggedSentence(message);
  }

  /** What the admin port says of it. */
  get view() {
    const { money, steps, end, message } = this;
    return { ...money, currency: logged(money.currency), steps, end, message };
  }
}

const said = ({ message }: Settled, advice: string) => (message === undefined ? advice : `${message}. ${advice}`);
