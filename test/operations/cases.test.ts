import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { Settling } from "../../src/app/settling.ts";
import type { Call, ContractName, Handler } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { Presence } from "../../src/core/presence.ts";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import { keyOf } from "../../src/envelope/json.ts";
import { Operations } from "../../src/operations/operations.ts";
import { bytes, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { absent, final, replyOf, success } from "./whole-box.ts";

/**
 * Tests src/operations/whose.ts, src/operations/hearing.ts, src/operations/known.ts, src/operations/answer.ts.
 *
 * The cases of docs/settling.md: what is sent and answered, and the word that a till is given then. Every contract, by the handlers of a bridge.
 */

const time = new VirtualTime();
after(() => time.restore());
afterEach(() => time.forgetTimers());

/** Whose terminal a service has, by the mark of its line's device. */
interface Place {
  readonly contract: ContractName;
  readonly device: string;
}

/** What the terminal answers; undefined for nothing. */
type Answer = (route: string, body: JsonObject, count: number) => object | undefined;

/** What a case does, and the word that is told by then; `422` for a refusal by that. */
type Step =
  | { readonly send: string; readonly body?: object; readonly plain?: true; readonly by?: string; readonly is?: string }
  | { readonly check: string; readonly body?: object }
  | { readonly wait: number }
  | { readonly move: string }
  | { readonly restart: true };

interface Case {
  readonly name: string;
  readonly contract?: ContractName;
  readonly answer: Answer;
  readonly steps: readonly Step[];
  /** How often the route of the first sending was on the line; once unless given. */
  readonly times?: number;
  readonly noJournal?: true;
}

const lost = new Fault("timeout", "No valid reply from line till", { reason: "no-reply" });

class Shop {
  readonly #answer: Answer;
  readonly #hasJournal: boolean;
  readonly #sent: string[] = [];
  readonly #places = new Map<string, Place>();
  #disk = new SimDisk();
  #operations = new Operations();
  #settling: Settling | undefined;
  #calls = new Map<string, Handler>();

  constructor({ contract = "bank", answer, noJournal }: Case) {
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
    if ("wait" in step) await time.advance(step.wait * 1_000);
    else if ("move" in step) {
      for (const [name, { contract }] of this.#places) this.#places.set(name, { contract, device: `${contract} ${step.move}` });
      this.#prepare();
    } else if ("restart" in step) {
      this.#settling?.stop();
      this.#disk = this.#disk.afterCut([{ keeps: "all", bytes: 0 }], true);
      this.#start();
      await time.settle();
    } else if ("check" in step) await this.#call("till", step.check, step.body ?? {}, undefined);
    else return this.#call(step.by ?? "till", step.send, step.body ?? {}, step.plain ? undefined : 60);
    return undefined;
  }

  #start(): void {
    const journal = { folder, bytes, onFailure: "relay", report: new Told(), disk: this.#disk } as const;
    this.#operations = this.#hasJournal ? new Operations(journal) : new Operations();
    void this.#operations.start();
    this.#settling = new Settling({ operations: this.#operations, folder, resolve: "observe", error: assert.ifError });
    this.#prepare();
  }

  #prepare(): void {
    const services = Object.fromEntries(
      [...this.#places].map(([name, { contract }]) => [name, serviceConfigOf({ contract, merchantId: "M" })]),
    );
    for (const [service, { device }] of this.#places) {
      const config = services[service] ?? serviceConfigOf();
      const calls = this.#settling?.prepare({ service, config }, (call) => this.#exchange(call, device), device);
      if (calls !== undefined) this.#calls.set(service, calls);
    }
    const line = { name: "till", state: "idle", waiting: 0 };
    this.#settling?.take({ lines: {}, services, journal: false, log: { level: "info" } }, [line]);
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
        ({ followed }) => followed,
        (error: unknown) => {
          assert.ok(error instanceof Fault, String(error));
          word = error.kind === "reused" ? "422" : undefined;
          return error.details.followed;
        },
      );
    void calling?.then((followed) => {
      word ??= followed?.result;
      isOver = true;
    });
    assert.ok(await time.until(() => isOver, 200_000), `${route} is answered`);
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
      await new Promise((resolve) => time.after(10, () => resolve(undefined)));
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

const approved = final("APPROVED", "T-1");
const declined = final("ERROR", "T-1");
/** A terminal that loses an operation's answer, and says this of it. */
const losing =
  (...says: readonly object[]): Answer =>
  (route, _, count) =>
    route.startsWith("/check") ? (says[count - 1] ?? says.at(-1)) : undefined;

const closed = { status: "success", docStatus: 1, documentID: 7 };
const noDocument = { status: "error", code: 9 };
const code = { status: "success", data: { trans: "T-9" } };
const paid = { status: "success", data: { rrn: "77", trans: "T-9" } };

const cases: readonly Case[] = [
  { name: "alone: what /check says counts", answer: losing(success, approved), steps: [{ send: "/sale", is: "approved" }] },
  { name: "alone: so does that it was declined", answer: losing(declined), steps: [{ send: "/sale", is: "declined" }] },
  {
    name: "alone: an answer to the till's own question counts as well, and the same call again is only asked about",
    answer: losing(approved),
    steps: [{ send: "/sale", plain: true }, { check: "/check" }, { restart: true }, { send: "/sale", is: "approved" }],
  },
  {
    name: "'there is none' counts after 30 s, said three times, and then the same call is sent again",
    answer: losing(absent),
    steps: [
      { send: "/sale", is: "failed" },
      { send: "/sale", is: "failed" },
    ],
    times: 2,
  },
  {
    name: "'there is none' proves nothing once a batch was closed behind it",
    answer: (route) => (route === "/check" ? absent : route === "/sale" ? undefined : success),
    steps: [
      { send: "/sale", plain: true },
      { send: "/close-shift", plain: true, body: { pay_id: "Z" } },
      { send: "/sale", is: "unknown" },
    ],
  },
  {
    name: "'there is none' proves nothing of what the terminal had",
    answer: losing(success, absent),
    steps: [{ send: "/sale", is: "pending" }],
  },
  {
    name: "'failed' is taken back by the terminal's own word",
    answer: (route, { note }) => (route === "/sale" ? undefined : note === "till" ? approved : absent),
    steps: [
      { send: "/sale", is: "failed" },
      { check: "/check", body: { note: "till" } },
      { send: "/sale", is: "approved" },
    ],
  },
  {
    name: "sent twice without the header: a bad end doesn't count",
    answer: losing(declined),
    steps: [
      { send: "/sale", plain: true },
      { send: "/sale", plain: true },
      { send: "/sale", is: "unknown" },
    ],
    times: 2,
  },
  {
    name: "sent twice without the header: a good one does",
    answer: losing(approved),
    steps: [
      { send: "/sale", plain: true },
      { send: "/sale", plain: true },
      { send: "/sale", is: "approved" },
    ],
    times: 2,
  },
  {
    name: "shared: another body is refused, and the first one goes on",
    answer: losing(success, approved),
    steps: [
      { send: "/sale", is: "approved" },
      { send: "/sale", body: { amount: 200 }, is: "422" },
      { send: "/sale", is: "approved" },
    ],
  },
  {
    name: "shared: another route is refused, after a restart too",
    answer: losing(approved),
    steps: [{ send: "/sale", plain: true }, { restart: true }, { send: "/preauth", is: "422" }],
  },
  {
    name: "shared: another body without the header makes the word unknown",
    answer: losing(approved),
    steps: [
      { send: "/sale", plain: true },
      { send: "/sale", plain: true, body: { amount: 200 } },
      { send: "/sale", is: "unknown" },
    ],
    times: 2,
  },
  {
    name: "shared: another service's key on the same terminal is refused",
    answer: losing(approved),
    steps: [
      { send: "/sale", plain: true, by: "other" },
      { send: "/sale", is: "422" },
    ],
  },
  {
    name: "shared: what another service sends under the key later makes the word unknown",
    answer: losing(approved),
    steps: [
      { send: "/sale", plain: true },
      { send: "/sale", plain: true, by: "other" },
      { send: "/sale", is: "unknown" },
    ],
    times: 2,
  },
  {
    name: "another terminal's answer counts for nothing, until the service has the first one again",
    answer: losing(approved),
    steps: [
      { send: "/sale", plain: true },
      { move: "two" },
      { send: "/sale", is: "unknown" },
      { move: "one" },
      { send: "/sale", is: "approved" },
    ],
  },
  {
    name: "follow-up: what differs from before counts, and is known after a restart",
    answer: (route, _, count) => (route !== "/check" ? success : count <= 2 ? approved : final("APPROVED", "T-2")),
    steps: [
      { send: "/sale", is: "approved" },
      { send: "/cancel", is: "approved" },
      { restart: true },
      { send: "/cancel", is: "approved" },
    ],
  },
  {
    name: "follow-up: what stood there before is not its end",
    answer: (route) => (route !== "/check" ? success : approved),
    steps: [
      { send: "/sale", is: "approved" },
      { send: "/cancel", is: "pending" },
    ],
  },
  {
    name: "follow-up: without an end of the sale it isn't sent",
    answer: (route) => (route === "/check" ? success : success),
    steps: [
      { send: "/cancel", plain: true, body: { pay_id: "B" } },
      { send: "/sale", is: "pending" },
      { send: "/cancel", is: "failed" },
    ],
  },
  {
    name: "follow-up: after a restart what was seen before is forgotten",
    answer: (route, _, count) =>
      route === "/check" ? (count <= 2 ? approved : final("APPROVED", "T-2")) : route === "/sale" ? success : undefined,
    steps: [
      { send: "/sale", is: "approved" },
      { send: "/cancel", plain: true },
      { restart: true },
      { send: "/cancel", is: "unknown" },
    ],
  },
  {
    name: "fiscal: a refund under its own number",
    contract: "fiscal",
    answer: (route, _, count) => (route === "/refund" ? undefined : count <= 3 ? noDocument : closed),
    steps: [{ send: "/refund", is: "closed" }, { restart: true }, { send: "/refund", is: "closed" }],
  },
  {
    name: "fiscal: a refund under the number of its sale isn't given the sale's end",
    contract: "fiscal",
    answer: (route) => (route.startsWith("/check") ? closed : { status: "success" }),
    steps: [
      { send: "/sale", is: "closed" },
      { send: "/refund", is: "pending" },
    ],
  },
  {
    name: "fiscal: closed, and not printed",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 15 } : closed),
    steps: [{ send: "/sale", is: "unprinted" }],
  },
  {
    name: "fiscal: 'failed' by its own answer is taken back, once the terminal says that it goes on",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 14 } : { status: "success", code: 0, docStatus: 0 }),
    steps: [
      { send: "/sale", is: "failed" },
      { check: "/check_status", body: { note: "till" } },
      { send: "/sale", is: "pending" },
    ],
  },
  {
    name: "fiscal: what an abort took away has failed",
    contract: "fiscal",
    answer: (route, _, count) =>
      route === "/sale"
        ? { status: "error", code: 44 }
        : route === "/abort"
          ? success
          : count < 2
            ? { status: "error", code: 44 }
            : noDocument,
    steps: [
      { send: "/sale", plain: true },
      { check: "/check_status" },
      { send: "/abort", plain: true },
      { send: "/sale", is: "failed" },
    ],
  },
  {
    name: "qr: paid by the trans that its answer gave, after a restart too",
    contract: "qr",
    answer: (route, { trans }) => (route === "/showqrcode" ? code : trans === "T-9" ? paid : { status: "error", code: 1 }),
    steps: [{ send: "/showqrcode", plain: true }, { restart: true }, { send: "/showqrcode", is: "approved" }],
  },
  {
    name: "qr: an error proves nothing where the trans is lost",
    contract: "qr",
    answer: losing({ status: "error", code: 1 }),
    steps: [{ send: "/showqrcode", is: "unknown" }],
  },
  {
    name: "qr: what is given back is told apart by its amount, and ended by its own success alone",
    contract: "qr",
    answer: (_, { amount }) => (amount === 300 ? { status: "error", code: 1 } : { status: "success", data: { rrn: "1" } }),
    steps: [
      { send: "/refund", is: "approved" },
      { send: "/refund", body: { amount: 300 }, is: "unknown" },
      { send: "/refund", body: { amount: 300, note: "x" }, is: "422" },
      { send: "/refund", is: "approved" },
    ],
    times: 2,
  },
  {
    name: "without a journal the same call is only asked about as long as posline runs",
    noJournal: true,
    answer: losing(approved),
    steps: [
      { send: "/sale", is: "approved" },
      { send: "/sale", is: "approved" },
    ],
  },
];

for (const each of cases) {
  test(`Settling, ${each.name}`, async () => {
    const shop = new Shop(each);
    const words: (string | undefined)[] = [];
    const wanted: (string | undefined)[] = [];
    let first: string | undefined;
    for (const step of each.steps) {
      const word = await shop.do(step);
      if (!("send" in step)) continue;
      first ??= step.send;
      words.push(step.is === undefined ? undefined : word);
      wanted.push(step.is);
    }
    assert.deepEqual([words, shop.count(first ?? "")], [wanted, each.times ?? 1]);
  });
}
