import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { Upstream } from "../http/upstream.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { Till } from "../support/till.ts";
import { until } from "../support/until.ts";
import { fiscalForm } from "./emulating.ts";

/**
 * A line is given back while its tills ask without a pause and read late, so that answers lie in the kernel when the process is
 * stopped or takes another configuration: each answer that the log has as given must come, whole.
 */

/** Times that a process is stopped, and half as many reloads: 20 for `npm test`, and as many as GIVE_BACK_ROUNDS says. */
const rounds = Number(process.env["GIVE_BACK_ROUNDS"] ?? 20);

/** Milliseconds until the service that a gateway asks answers, at most. */
const upstreamMsMax = 30;
/** Milliseconds until a till reads on after it has asked, at most. */
const lateMsMax = 40;
/** Milliseconds under load before the line is given back, at most. */
const loadMsMax = 60;
/** Bytes of an answer over a gateway, at most: more than a pty's reader is handed at once. */
const answerBytesMax = 9_000;

/**
 * At the usual speeds serialport's opening flushes both ways. A device has sent all by then, but of a pty that takes what its reader has
 * not read yet: at a speed without a constant of its own nothing is flushed but what posline flushes itself.
 */
const baudRate = 9_601;

const noPorts = {
  POSLINE_FISCAL_PORT: undefined,
  POSLINE_BANK_PORT: undefined,
  POSLINE_QR_PORT: undefined,
  POSLINE_ADMIN_PORT: undefined,
};

const folder = scratchFolder();
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
  folder.remove();
});

const below = (limit: number) => Math.floor(Math.random() * limit);

/** A question of each service, with a key of its own. */
function requestOf(till: Till, service: ContractName, key: string): Buffer {
  if (service === "fiscal") return till.frame("stx", `command=/check_status&${fiscalForm({ documentExtID: key })}`);
  if (service === "bank") return till.frame("length", `/check\n{"pay_id":"${key}"}`);
  return till.frame("length", `:8887/check\n{"pay_id":"${key}","trans":"T","pay_system":"P"}`);
}

/** What a till asks at once, with a key that it has not used yet. */
type Asking = (till: Till, key: string) => readonly Buffer[];

/** A till that asks without a pause, and reads late. */
class LateTill {
  readonly till: Till;
  readonly service: ContractName;
  readonly link: string;
  readonly #asking: Asking;
  #asked = 0;
  #stopped = true;
  #loop: Promise<void> = Promise.resolve();

  constructor(service: ContractName, asking: Asking) {
    this.service = service;
    this.link = join(folder.path, `tty-${service}`);
    this.till = new Till(this.link);
    this.#asking = asking;
  }

  get answers(): readonly string[] {
    return this.till.answers;
  }

  /** Asks until it is answered: what comes right after an opening isn't taken. */
  async greet(): Promise<void> {
    const before = this.answers.length;
    const [request = Buffer.alloc(0)] = this.#requests();
    while (this.answers.length === before) {
      await this.till.send(request);
      const due = performance.now() + 250;
      await until(() => this.answers.length > before || performance.now() > due, "an answer");
    }
  }

  begin(): void {
    this.#stopped = false;
    this.#loop = this.#ask();
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  async #ask(): Promise<void> {
    while (!this.#stopped) {
      const requests = this.#requests();
      const wanted = this.answers.length + requests.length;
      this.till.pause();
      await this.till.send(Buffer.concat(requests));
      await sleep(below(lateMsMax));
      this.till.resume();
      // Whoever is not answered in time asks anew: what was lost is in the tally.
      await until(() => this.answers.length >= wanted || this.#stopped, "the answers", 2_000).catch(() => {});
    }
  }

  #requests(): readonly Buffer[] {
    return this.#asking(this.till, `${this.service}-${++this.#asked}`);
  }

  unplug(): void {
    this.till.unplug();
  }
}

/** What was given, and what of it came. */
class Tally {
  given = 0;
  lost = 0;
  /** Answers that came cut short. */
  broken = 0;

  /** Adds what a process that has ended gave, and what came of it once a till had the time to read all that lies in the kernel. */
  async add(tills: readonly LateTill[], before: readonly number[], { log }: PoslineProcess): Promise<void> {
    for (const [n, { service, till }] of tills.entries()) {
      const exchanges = log.filter((line) => line["msg"] === "exchange" && line["service"] === service);
      const given = exchanges.filter((line) => line["left"] !== true).length;
      const came = () => till.answers.length - (before[n] ?? 0);
      await until(() => came() >= given, "the answers", 500).catch(() => {});
      this.given += given;
      this.lost += Math.max(0, given - came());
      this.broken += till.answers.slice(before[n]).filter((answer) => answer.startsWith("discarded")).length;
      till.giveUpPending();
    }
  }

  check(what: string): void {
    const told = `${what}, ${this.given} answers given, ${this.lost} lost, ${this.broken} came broken`;
    console.log(told);
    assert.deepEqual([this.lost, this.broken], [0, 0], told);
    assert.ok(this.given > rounds, told);
  }
}

/** A gateway's till for each service, on a line of its own. */
interface Shop {
  readonly tills: readonly LateTill[];
  readonly file: string;
  /** Writes the configuration. */
  configure(lateReplyMs: number): void;
}

async function shopOf(): Promise<Shop> {
  const upstream = await Upstream.start(({ body }, response) => {
    const key = /"?(?:pay_id|documentExtID)"?:"([\w-]+)"/.exec(bodyText(body))?.[1] ?? "";
    const answer = JSON.stringify({ status: "success", code: 0, key, note: "x".repeat(below(answerBytesMax)) });
    setTimeout(() => response.end(answer), below(upstreamMsMax));
  });
  const tills = contractNames.map((service) => new LateTill(service, (till, key) => [requestOf(till, service, key)]));
  const file = join(folder.path, "posline.json");
  ends.push(
    () => upstream.stop(),
    () => {
      for (const till of tills) till.unplug();
    },
  );
  const configure = (lateReplyMs: number) => {
    const lines = Object.fromEntries(tills.map(({ service, link }) => [service, { path: link, baudRate, lateReplyMs }]));
    const services = Object.fromEntries(contractNames.map((service) => [service, { line: service, upstream: upstream.url }]));
    writeFileSync(file, JSON.stringify({ lines, services }));
  };
  configure(30_000);
  return { tills, file, configure };
}

/** A request's body in clear: fiscal's is unwrapped from its form. */
function bodyText(body: string): string {
  const data = new URLSearchParams(body).get("data");
  return data === null ? body : Buffer.from(data, "base64").toString();
}

async function started(args: readonly string[], tills: readonly LateTill[]): Promise<PoslineProcess> {
  const posline = new PoslineProcess(args, { env: noPorts });
  ends.push(() => posline.ended("SIGKILL"));
  await Promise.all(tills.map((till) => till.greet()));
  return posline;
}

/** Stops a process under load, again and again. */
async function stopOften(args: readonly string[], tills: readonly LateTill[]): Promise<void> {
  const tally = new Tally();
  for (let round = 0; round < rounds / 2; round++) {
    const before = tills.map(({ answers }) => answers.length);
    const posline = await started(args, tills);
    for (const till of tills) till.begin();
    await sleep(below(loadMsMax));
    assert.equal(await posline.ended("SIGTERM"), 0);
    for (const till of tills) await till.end();
    await tally.add(tills, before, posline);
  }
  tally.check(`${rounds / 2} times stopped`);
}

test("posline gateway that is stopped under load loses no answer that it gave", async () => {
  const { tills, file } = await shopOf();
  await stopOften(["gateway", "--config", file], tills);
});

test("posline gateway that takes another configuration under load loses no answer that it gave", async () => {
  const { tills, file, configure } = await shopOf();
  const tally = new Tally();
  const before = tills.map(({ answers }) => answers.length);
  const gateway = await started(["gateway", "--config", file], tills);
  for (let round = 0; round < rounds / 2; round++) {
    const after = gateway.log.length;
    for (const till of tills) till.begin();
    await sleep(below(loadMsMax));
    configure(30_001 + round);
    gateway.child.kill("SIGHUP");
    const opened = () => gateway.log.slice(after).filter(({ state }) => state === "open").length;
    await gateway.until(() => (opened() === tills.length ? true : undefined), "the lines to open anew");
    for (const till of tills) await till.end();
    for (const { till } of tills) till.giveUpPending();
    await Promise.all(tills.map((till) => till.greet()));
  }
  assert.equal(await gateway.ended("SIGTERM"), 0);
  await tally.add(tills, before, gateway);
  tally.check(`${rounds / 2} reloads`);
});
