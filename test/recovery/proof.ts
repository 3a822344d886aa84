import assert from "node:assert/strict";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { lineService } from "../../src/line/caller.ts";
import { drainMs, staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import type { Question } from "../../src/recovery/questions.ts";
import { Recovery } from "../../src/recovery/recovery.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { merchantId } from "../line/lines.ts";
import { bothReplies, probeReplies } from "../support/terminal.ts";

export const lateReplyMs = 30_000;
export const probeIntervalMs = 2_000;
export const answers: Readonly<Record<ContractName, readonly [Framing, string]>> = {
  fiscal: ["stx", probeReplies.supported],
  bank: ["length", probeReplies.bankSupported],
  qr: ["length", probeReplies.connection],
};

/** Whose probe it is. */
export function serviceAsked(probe: string): ContractName {
  if (probe.includes("command=")) return "fiscal";
  return probe.includes("/check_connection") ? "qr" : "bank";
}

/** A recovery with its own small clock. */
export class Proof {
  now = 1_000_000;
  readonly recovery: Recovery;

  constructor(services: readonly ContractName[], signed = true) {
    const rules = { crc16: "arc" as const, quiet: false, merchantId: signed ? merchantId : undefined };
    this.recovery = new Recovery(
      services.map((service) => lineService(contracts[service], rules)),
      { lateReplyMs, probeIntervalMs },
    );
    this.recovery.begin(this.now);
  }

  /** The text of the probe that is sent now. */
  ask(): string | undefined {
    const frame = this.recovery.probeDue(this.now)?.frame;
    return frame === undefined ? undefined : Buffer.concat(frame).toString("latin1");
  }

  askAfter(ms: number): string | undefined {
    this.now += ms;
    return this.ask();
  }

  hear(framing: Framing, text: string): string {
    this.recovery.heardBytes(this.now);
    const { kind, service } = this.recovery.heard(framing, JSON.parse(text), this.now);
    return kind === "answer" ? service : "late";
  }

  answer(service: ContractName): string {
    return this.hear(...answers[service]);
  }

  /** Asks, and is answered by this service. */
  exchange(service: ContractName): void {
    this.ask();
    this.answer(service);
  }

  /** Proves all as a live terminal does: each probe is answered at once. */
  prove(): this {
    for (let text = this.ask(); text !== undefined; text = this.ask()) this.answer(serviceAsked(text));
    this.now += drainMs;
    assert.ok(this.clean, "proven");
    return this;
  }

  get clean(): boolean {
    return this.recovery.isClean(this.now);
  }

  fail(service: ContractName, shapedAs?: Question): this {
    this.recovery.owe(service, shapedAs);
    this.recovery.begin(this.now);
    return this;
  }

  /** An error comes to a call. @returns whether it may be another's. */
  errs(service: ContractName, framing: Framing = "length"): boolean {
    return this.#replies(service, framing, "error");
  }

  /** The same of a bare success. */
  succeeds(service: ContractName): boolean {
    return this.#replies(service, "length", "success");
  }

  #replies(service: ContractName, framing: Framing, status: string): boolean {
    return this.recovery.takeAmbiguous(framing, { service, shapedAs: undefined }, { status }, this.now);
  }

  /** Waits until silence settles somebody. */
  settle(): this {
    for (const beganMs = this.now; this.now < beganMs + 3_600_000; this.now += 1_000) {
      if (this.recovery.settleBySilence(this.now)) return this;
    }
    return assert.fail("no silence settles anybody within an hour");
  }

  /** Bytes come each second until somebody is asked. */
  humUntilAsked(): void {
    for (const beganMs = this.now; this.now < beganMs + 3_600_000; this.now += 1_000) {
      if (this.ask() !== undefined) return;
      this.recovery.heardBytes(this.now);
    }
    assert.fail("nobody is asked within an hour");
  }
}

/** What a line hands on of a service that answered nothing. */
export const knowsNothing = {
  ...{ isBehind: false, offersSecond: false, answersSecond: false },
  isProven: false,
  isOdd: false,
  answersProbes: false,
  answeredProbes: false,
  isGivenUp: false,
  stillOut: 0,
} as const;

/** The answers of a terminal that has both questions of bank. */
export const both: Readonly<Record<Question, Readonly<Record<string, unknown>>>> = {
  probe: JSON.parse(bothReplies.bankSupported),
  second: JSON.parse(bothReplies.terminals),
};

/** A recovery of bank that may have so many answers to come, and answers both questions. */
export function bothAsked(assumed: number, seed = 1): Recovery {
  const [bank] = new Proof(["bank"]).recovery.known;
  assert.ok(bank !== undefined);
  const recovery = new Recovery([lineService(contracts.bank, { crc16: "arc", quiet: false, merchantId: undefined })], {
    lateReplyMs,
    probeIntervalMs,
  });
  recovery.seed(seed);
  recovery.inherit([{ ...bank, isProven: true, offersSecond: true, answersSecond: true, assumed }]);
  recovery.begin(1_000_000);
  return recovery;
}

/**
 * Asks until bank is proven, or so often.
 * @param backlog What it answers first: one older answer for each question, while there are any.
 */
export function asksOn(recovery: Recovery, backlog: Question[] = [], times = 400): readonly Question[] {
  let now = 1_000_000;
  const asked: Question[] = [];
  for (let turn = 0; recovery.owes && asked.length < times && turn < 10_000; turn++) {
    now = Math.max(now, recovery.dueMs(false));
    const due = recovery.probeDue(now);
    if (due === undefined) continue;
    asked.push(due.question);
    backlog.push(due.question);
    now += 20;
    recovery.heardBytes(now);
    recovery.heard("length", both[backlog.shift() ?? "probe"], now);
  }
  return asked;
}

/** One that hung, and may answer so many questions yet. */
export function hung(services: readonly ContractName[], asked = 5): Proof {
  const proof = new Proof(services).prove();
  for (const service of services) proof.recovery.replied(service);
  proof.fail("bank");
  for (let time = 0; time < asked; time++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
  }
  proof.now += 11 * lateReplyMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  return proof;
}

/** A bank that has answered, while one answer more is known to be possible than a process may leave behind. */
export function withOneTooMany(): Proof {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  for (let unplugs = 0; unplugs <= leftOver; unplugs++) proof.fail("bank").ask();
  proof.fail("bank");
  for (let answers = 0; answers <= leftOver + 1; answers++) proof.exchange("bank");
  assert.deepEqual(proof.recovery.answered, ["bank"]);
  return proof;
}

/** What is neither an answer to a question nor an error. */
export const odd = '{"status":"success"}';

/** A bank that was asked and answered so, this often, at the shortest interval. */
export function answeredSo(proof: Proof, text: string, times: number): Proof {
  for (let time = 0; time < times; time++) {
    assert.ok(proof.askAfter(probeIntervalMs), `probe ${time + 1}`);
    proof.hear("length", text);
  }
  return proof;
}
