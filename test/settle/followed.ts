import assert from "node:assert/strict";
import type { Verdict } from "../../src/contract/settling.ts";
import type { ContractName } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { methodName } from "../../src/settle/remote-service.ts";
import type { Settled } from "../../src/settle/types.ts";
import type { Arrival, Terminal } from "./terminal.ts";

/**
 * Every operation that can be followed, each with what must have been done before, and with what the emulator has in its memory
 * of it afterwards: the truth that a till's result is held against.
 */

/** What really became of an operation. */
export interface Truth {
  /** How often it is there: documents, transactions, or givings back of its amount. */
  readonly count: number;
  /** How it ended, undefined where it hasn't. */
  readonly end: Verdict | undefined;
  /** What the answer must name it by, where the answer has a name. */
  readonly names: Readonly<Record<string, unknown>>;
  /** By which a payment is given back (qr). */
  readonly trans?: unknown;
  /** Without paper; cash has none that anybody is told of. */
  readonly unprinted: boolean;
}

export interface Followed {
  readonly service: ContractName;
  readonly route: string;
  readonly name: string;
  /** It may never arrive twice (bank.md, rule 4; qr.md, flow rule 3). */
  readonly once: boolean;
  /** It can't be asked about, so that what is lost stays unknown (qr.md, flow rule 3). */
  readonly silent: boolean;
  /** Does what must have been done before, and gives its body. */
  body(terminal: Terminal, key: string, amount: number): object;
  truth(terminal: Terminal, key: string, amount: number): Truth;
}

const nothing: Truth = { count: 0, end: undefined, names: {}, unprinted: false };
const money = { currency_name: "AZN" };
const shown = { currency: "944", currency_name: "AZN", pay_system: "QRPAY" };

const endedAs = (record: JsonObject): Verdict | undefined => {
  const { end } = record;
  if (record["ended"] !== true) return undefined;
  return end === "approved" || end === "reversed" ? end : "declined";
};

function bankTruth(terminal: Terminal, route: string, payId: string): Truth {
  const own = terminal.records("bank").filter((each) => each["route"] === route && each["payId"] === payId);
  const [record] = own;
  if (record === undefined) return nothing;
  const names = record["rrn"] === undefined ? {} : { rrn: record["rrn"] };
  return { ...nothing, count: own.length, end: endedAs(record), names };
}

/** @param original What it refers to. @param shared Whether it comes under the pay_id of that. */
function bank(route: string, original?: string, shared = false): Followed {
  const idOf = (key: string) => (shared ? `O-${key}` : key);
  return {
    service: "bank",
    route,
    name: shared ? `${route} under the pay_id of its original` : route,
    once: route === "/confirm" || route === "/cancel",
    silent: false,
    body: (terminal, key, amount) => {
      if (original === undefined) return { pay_id: key, amount, ...money };
      terminal.ask("bank", original, { pay_id: `O-${key}`, amount: 100_000, ...money });
      terminal.ask("bank", "/check", { pay_id: `O-${key}` });
      const { data } = terminal.ask("bank", "/check", { pay_id: `O-${key}` });
      assert.ok(isObject(data));
      return { pay_id: idOf(key), amount, rrn: data["rrn"], ...money };
    },
    truth: (terminal, key) => bankTruth(terminal, route, idOf(key)),
  };
}

function report(route: string): Followed {
  return { ...bank(route), body: (_, key) => ({ pay_id: key }) };
}

function fiscal(route: string, make: (amount: number) => object): Followed {
  const kind = route.slice(1);
  return {
    service: "fiscal",
    route,
    name: route,
    once: false,
    silent: false,
    body: (terminal, key, amount) => {
      terminal.ask("fiscal", "/deposit", { documentExtID: `F-${key}`, amount: 1_000_000 });
      return { documentExtID: key, ...make(amount) };
    },
    truth: (terminal, key) => {
      const own = terminal.records("fiscal").filter((each) => each["kind"] === kind && each["extId"] === key);
      const [record] = own;
      if (record === undefined) return nothing;
      const { closed, id } = record;
      const paper = kind === "sale" || kind === "refund";
      const unprinted = paper && isObject(closed) && closed["printTime"] === undefined;
      return { count: own.length, end: isObject(closed) ? "closed" : undefined, names: { documentID: id }, unprinted };
    },
  };
}

const receipt = (amount: number) => ({
  items: [{ itemName: "Bread", itemAmount: amount }],
  payments: { cashlessAmount: amount },
});

const show: Followed = {
  service: "qr",
  route: "/showqrcode",
  name: "/showqrcode",
  once: false,
  silent: false,
  body: (_, key, amount) => ({ pay_id: key, amount, ...shown }),
  truth: (terminal, key) => {
    const own = terminal.records("qr").filter((each) => each["payId"] === key);
    const [record] = own;
    if (record === undefined) return nothing;
    // qr has one word for all that came to nothing
    const end = endedAs(record) === "reversed" ? "declined" : endedAs(record);
    return { ...nothing, count: own.length, end, names: { rrn: record["rrn"] }, trans: record["trans"] };
  },
};

/** A payment that was paid, with the names by which it is referred to. */
function paid(terminal: Terminal, key: string): object {
  const payId = `O-${key}`;
  const { data } = terminal.ask("qr", "/showqrcode", { pay_id: payId, amount: 100_000, ...shown });
  assert.ok(isObject(data));
  const named = { pay_id: payId, trans: data["trans"], pay_system: shown.pay_system };
  terminal.ask("qr", "/check", named);
  const { data: told } = terminal.ask("qr", "/check", named);
  assert.ok(isObject(told));
  return { ...named, rrn: told["rrn"], ...shown };
}

const silent = { service: "qr", once: true, silent: true } as const;

function givingBack(route: string): Followed {
  return {
    ...silent,
    route,
    name: route,
    body: (terminal, key, amount) => ({ ...paid(terminal, key), amount }),
    truth: (terminal, key, amount) => {
      const payment = terminal.records("qr").find((each) => each["payId"] === `O-${key}`);
      const count = Number(payment?.["givenBack"] ?? 0) / amount;
      return count === 0 ? nothing : { ...nothing, count, end: "approved" };
    },
  };
}

/** The emulator keeps nothing of it: what counts is how often it came and was answered well. */
const confirmed: Followed = {
  ...silent,
  route: "/final_confirm",
  name: "/final_confirm",
  body: (terminal, key, amount) => ({
    ...paid(terminal, key),
    amount,
    fiscal_id: key,
    fiscal_num: "1",
    fiscal_url: "https://receipt.invalid/1",
  }),
  truth: (terminal, key) => {
    const own = terminal.arrivals.filter((each) => each.done && isStart(each, confirmed, key));
    return own.length === 0 ? nothing : { ...nothing, count: own.length, end: "approved" };
  },
};

export const followed: readonly Followed[] = [
  bank("/sale"),
  bank("/preauth"),
  bank("/confirm", "/preauth"),
  bank("/cancel", "/sale"),
  bank("/cancel", "/sale", true),
  bank("/refund", "/sale"),
  report("/xreport"),
  report("/close-shift"),
  show,
  givingBack("/cancel"),
  givingBack("/refund"),
  confirmed,
  fiscal("/sale", receipt),
  fiscal("/refund", receipt),
  fiscal("/deposit", (amount) => ({ amount })),
  fiscal("/withdraw", (amount) => ({ amount })),
];

/** How it is called in the client. */
export const methodOf = ({ route }: Followed) => methodName(route);

/** Whether what arrived is the operation itself; fiscal ones are known by their route, which a world has once. */
export function isStart({ service, route, text }: Arrival, operation: Followed, key: string): boolean {
  if (service !== operation.service || route !== operation.route) return false;
  const data = /^data=([^&]*)/.exec(text)?.[1];
  const json = data === undefined ? text : Buffer.from(decodeURIComponent(data), "base64").toString();
  return json.includes(`"${key}"`) || json.includes(`"O-${key}"`);
}

/** Holds what a till was told against what the terminal remembers. */
export function assertTrue(operation: Followed, terminal: Terminal, key: string, amount: number, settled: Settled): void {
  const { result, data } = settled;
  const { count, end, names, trans, unprinted } = operation.truth(terminal, key, amount);
  const said = `${operation.service} ${operation.name}: ${result} was told, and ${count} are there, ${end ?? "not ended"}`;
  assert.ok(count === 0 || count === 1, said);
  const starts = terminal.arrivals.filter((each) => isStart(each, operation, key)).length;
  if (operation.once) assert.ok(starts <= 1, `${said}: it arrived ${starts} times`);
  // A payment that was paid can be given back, and nothing is by another's name
  if (settled.trans !== undefined || result === "approved")
    assert.equal(settled.trans, trans, `${said}: another trans was told`);
  if (result === "unknown") return;
  // A copy whose answer was lost may have been printed
  if (result === "closed" || result === "unprinted") assert.equal(end, "closed", said);
  else if (result === "failed" || result === "declined" || result === "not-sent")
    assert.ok(count === 0 || end === "declined", said);
  else assert.equal(end, result, said);
  if (result === "closed") assert.ok(!unprinted, `${said}: it has no paper`);
  for (const [name, value] of Object.entries(result === "declined" || result === "failed" ? {} : names)) {
    const told = data?.[name];
    if (told !== undefined) assert.equal(String(told), String(value), `${said}: another ${name} was told`);
  }
}
