import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { lineService } from "../../src/line/caller.ts";
import { lostMax, owingPatience, pauseMs, rowMin, vagueMin } from "../../src/recovery/limits.ts";
import { Recovery } from "../../src/recovery/recovery.ts";
import { type Standing, type StandingEvent, standings } from "../../src/recovery/standing.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { bothReplies, probeReplies } from "../support/terminal.ts";

/**
 * Tests src/recovery/recovery.ts, src/recovery/standing.ts.
 *
 * The rules of docs/recovery.md, one by one, over a terminal that answers what it is asked, or what the case says.
 */

const lateReplyMs = 30_000;
const probeIntervalMs = 2_000;
const probeOf = { bank: bothReplies.bankSupported, fiscal: bothReplies.supported, qr: probeReplies.connection };
const secondOf = { bank: bothReplies.terminals, fiscal: bothReplies.shift, qr: bothReplies.noPayment };

/** A recovery with its clock, and what it asked. */
class Proof {
  now = 1_000_000;
  readonly recovery: Recovery;
  /** Each question as it was asked: its service, and which. */
  readonly asked: string[] = [];
  readonly #contracts: readonly ContractName[];

  constructor(names: readonly ContractName[], { seed = 7, quiet = false, owing = [] as readonly string[] } = {}) {
    this.#contracts = names;
    const services = names.map((name) => lineService(contracts[name], { crc16: "arc", quiet, merchantId: "M" }));
    this.recovery = new Recovery(services, { lateReplyMs, probeIntervalMs });
    this.recovery.opened(this.now, seed, owing);
  }

  /** The time of what is next; then the question that is asked, if one is. */
  next(): { readonly service: ContractName; readonly question: "probe" | "second" } | undefined {
    const dueMs = this.recovery.dueMs(true);
    assert.ok(dueMs < Number.POSITIVE_INFINITY, "something is due");
    this.now = Math.max(this.now, dueMs);
    if (this.recovery.believeSilence(this.now).length > 0) return undefined;
    const asked = this.recovery.askDue(this.now);
    if (asked === undefined) return undefined;
    const service = this.#contracts.find((name) => name === asked.lineService.service);
    assert.ok(service !== undefined);
    this.asked.push(`${service} ${asked.question}`);
    return { service, question: asked.question };
  }

  /** A frame of the terminal's, 5 ms later. */
  hears(name: ContractName, text: string): void {
    this.now += 5;
    this.recovery.heardBytes(this.now);
    this.recovery.heard(contracts[name].framing, asJson(text), this.now);
  }

  /** Asks and answers rightly, so many times. */
  answers(times: number): void {
    for (let time = 0; time < times; time++) {
      const asked = this.next();
      assert.ok(asked !== undefined, "a question is due");
      this.hears(asked.service, (asked.question === "probe" ? probeOf : secondOf)[asked.service]);
    }
  }

  /** Until each service is in step or aside; answers rightly but for what `answer` says otherwise. */
  untilClean(answer: (service: ContractName, question: string) => string | undefined = rightly): number {
    const beganMs = this.now;
    for (let turn = 0; !this.recovery.isClean && turn < 1_000; turn++) {
      const asked = this.next();
      const text = asked === undefined ? undefined : answer(asked.service, asked.question);
      if (asked !== undefined && text !== undefined) this.hears(asked.service, text);
    }
    assert.ok(this.recovery.isClean, "clean after 1,000 questions at most");
    return this.now - beganMs;
  }
}

const rightly = (service: ContractName, question: string) => (question === "probe" ? probeOf : secondOf)[service];

function asJson(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const error = '{"status":"error","code":-3}';

test("standings has a cell for each event that may come, and a service that isn't asked is never silent, in a row or aside", () => {
  const events = new Set<string>(Object.values(standings).flatMap((cells) => Object.keys(cells)));
  assert.deepEqual([...events].sort(), ["absent", "answers", "hushed", "out", "out unasked", "proven"]);
  for (const [from, cells] of Object.entries(standings)) {
    for (const [event, to] of Object.entries(cells)) assert.ok(to in standings, `${from}, ${event}`);
  }
  const reached = new Set<Standing>(["waits"]);
  for (const from of reached) {
    for (const event of ["out unasked", "proven"] satisfies StandingEvent[]) {
      const to = standings[from][event];
      if (to !== undefined) reached.add(to);
    }
  }
  assert.deepEqual([...reached].sort(), ["in step", "waits"]);
});

for (const name of ["bank", "fiscal", "qr"] as const) {
  test(`Recovery of ${name} is clean after its probe, ${rowMin} right answers to drawn questions and one more probe`, () => {
    const proof = new Proof([name]);
    proof.answers(1 + rowMin);
    assert.equal(proof.recovery.isClean, false);
    proof.answers(1);
    assert.equal(proof.recovery.isClean, true);
    assert.equal(proof.asked[0], `${name} probe`);
    assert.equal(proof.asked.at(-1), `${name} probe`);
    const drawn = proof.asked.slice(1, -1);
    assert.ok(drawn.includes(`${name} probe`) && drawn.includes(`${name} second`), drawn.join());
  });
}

test("Recovery draws other questions with another seed, and the same ones with the same", () => {
  const drawn = (seed: number) => {
    const proof = new Proof(["bank"], { seed });
    proof.untilClean();
    return proof.asked.join();
  };
  assert.equal(drawn(1), drawn(1));
  assert.equal(new Set([1, 2, 3, 4, 5].map(drawn)).size, 5);
});

test("Recovery asks one question at a time", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  proof.next();
  assert.equal(proof.recovery.askDue(proof.now + probeIntervalMs - 1), undefined);
  proof.hears("bank", probeOf.bank);
  assert.ok(proof.next());
});

test("Recovery begins a row after a short silence, in which answers to earlier probes come", () => {
  const proof = new Proof(["bank"]);
  for (let n = 0; n < 3; n++) proof.next();
  for (let n = 0; n < 3; n++) {
    proof.hears("bank", probeOf.bank);
    assert.equal(proof.recovery.dueMs(true), proof.now + pauseMs);
  }
  assert.ok(proof.untilClean() < 2 * pauseMs);
  assert.equal(proof.asked.length, 3 + rowMin + 1);
});

test("Recovery starts a row anew behind a wrong answer, after a silence that doubles each time", () => {
  const proof = new Proof(["bank"]);
  proof.answers(1 + rowMin);
  for (const waitMs of [2 * pauseMs, 4 * pauseMs, 8 * pauseMs]) {
    const asked = proof.next();
    proof.hears("bank", asked?.question === "probe" ? error : probeOf.bank);
    // A frame in the pause says nothing, and the silence begins anew.
    proof.now += 10;
    proof.hears("bank", error);
    assert.equal(proof.recovery.dueMs(true), proof.now + waitMs);
    proof.answers(1);
  }
  proof.answers(rowMin - 1);
  assert.equal(proof.recovery.isClean, false);
  proof.answers(1);
  assert.equal(proof.recovery.isClean, true);
});

test("Recovery takes an answer that stays out for no contradiction, and ends a row with a probe for each and one more", () => {
  for (let lost = 0; lost <= lostMax; lost++) {
    const proof = new Proof(["bank"]);
    proof.answers(1);
    for (let n = 0; n < lost; n++) {
      while (proof.next()?.question !== "probe") proof.hears("bank", secondOf.bank);
    }
    // What is out has its time, and the row goes on.
    proof.untilClean();
    assert.deepEqual(new Set(proof.asked.slice(-lost - 1)), new Set(["bank probe"]));
    assert.equal(proof.asked.length, 1 + lost + rowMin + lost + 1);
  }
});

test("Recovery begins a row anew that a frame breaks in the silence behind it", () => {
  const proof = new Proof(["bank"]);
  proof.answers(1);
  proof.next();
  while (proof.asked.length < 1 + 1 + rowMin + 2) proof.answers(1);
  assert.ok(!proof.recovery.isClean);
  proof.hears("bank", probeOf.bank);
  const before = proof.asked.length;
  proof.untilClean();
  assert.ok(proof.asked.length >= before + rowMin, `${proof.asked.length - before} questions more`);
});

test("Recovery asks by the probe alone again where more answers of a row stay out than may", () => {
  const proof = new Proof(["bank"]);
  proof.answers(10);
  while (proof.asked.filter((each) => each === "bank probe").length < 100 && proof.recovery.answering.length > 0) {
    if (proof.next()?.question === "second") proof.hears("bank", secondOf.bank);
  }
  assert.deepEqual([proof.recovery.answering, proof.recovery.out], [[], ["bank"]]);
  const more = proof.asked.length;
  for (let n = 0; n < 4; n++) proof.next();
  assert.deepEqual(new Set(proof.asked.slice(more)), new Set(["bank probe"]));
});

test("Recovery asks a silent service after 2 s, then after half as long as it has been silent, lateReplyMs at most", () => {
  const proof = new Proof(["bank"], { owing: ["bank"] });
  const moments: number[] = [];
  const beganMs = proof.now;
  for (let n = 0; n < 12; n++) {
    proof.next();
    moments.push(Math.round((proof.now - beganMs) / 1_000));
  }
  assert.deepEqual(moments, [0, 2, 4, 6, 9, 14, 20, 30, 46, 68, 98, 128]);
});

test("Recovery takes a call's late answer for nothing, and begins a row with the probe's answer behind it", () => {
  const proof = new Proof(["bank"]);
  proof.next();
  proof.hears("bank", '{"status":"success","data":{"status":"APPROVED"}}');
  assert.deepEqual(proof.recovery.answering, []);
  proof.hears("bank", probeOf.bank);
  assert.deepEqual(proof.recovery.answering, ["bank"]);
});

test("Recovery is not clean by answers to older questions, whatever they are", () => {
  let clean = 0;
  for (let seed = 1; seed <= 300; seed++) {
    const proof = new Proof(["bank"], { seed });
    proof.next();
    proof.hears("bank", probeOf.bank);
    // A terminal that works off what it was asked before: it can't know what is drawn.
    for (let n = 0; n < 200 && !proof.recovery.isClean; n++) {
      proof.next();
      proof.hears("bank", (n * seed) % 3 === 0 ? secondOf.bank : probeOf.bank);
    }
    if (proof.recovery.isClean && proof.now < 1_000_000 + lateReplyMs) clean++;
  }
  assert.equal(clean, 0);
});

for (const [what, answer] of [
  ["answers its probe with an error", () => error],
  ["answers its probe with a success of another shape", () => '{"status":"success"}'],
  ["answers its probe with text", () => "BUSY"],
  [
    "leaves out the second question",
    (service: ContractName, question: string) => (question === "probe" ? probeOf[service] : undefined),
  ],
  ["answers the second question as the probe", (service: ContractName) => probeOf[service]],
] as const) {
  test(`Recovery is clean after ${vagueMin} times and a silence of lateReplyMs where a terminal ${what}`, () => {
    const proof = new Proof(["bank"]);
    let lastMs = 0;
    const tookMs = proof.untilClean((service, question) => {
      const text = answer(service, question);
      if (text !== undefined) lastMs = proof.now;
      return text;
    });
    assert.deepEqual(proof.recovery.aside, []);
    assert.ok(proof.now >= lastMs + lateReplyMs, `${proof.now - lastMs} ms`);
    assert.ok(tookMs < 2 * lateReplyMs, `${tookMs} ms`);
    // And waits for a whole answer once more behind a lost call.
    proof.recovery.lost("bank", proof.now);
    proof.next();
    proof.now += lateReplyMs;
    assert.equal(proof.recovery.believeSilence(proof.now).length, 0);
  });
}

test("Recovery takes a silence for one only behind the last question to whomever: a silence forgets only what is older", () => {
  const proof = new Proof(["bank", "qr"]);
  let lastMs = 0;
  while (proof.recovery.out.includes("bank")) {
    const asked = proof.next();
    if (asked !== undefined) lastMs = proof.now;
    if (asked?.service === "bank") proof.hears("bank", error);
  }
  assert.deepEqual(proof.recovery.aside, ["qr"]);
  assert.ok(proof.now >= lastMs + lateReplyMs, `${proof.now - lastMs} ms`);
});

test("Recovery of a service that isn't asked is clean after lateReplyMs without a byte, and ten times that where it owes a call", () => {
  const proof = new Proof(["bank"], { quiet: true });
  proof.now += 1_000;
  proof.recovery.heardBytes(proof.now);
  assert.equal(proof.recovery.dueMs(true), proof.now + lateReplyMs);
  assert.equal(proof.untilClean(), lateReplyMs);
  proof.recovery.lost("bank", proof.now);
  assert.deepEqual(proof.recovery.owing, ["bank"]);
  assert.equal(proof.untilClean(), owingPatience * lateReplyMs);
  assert.deepEqual(proof.recovery.owing, []);
  assert.equal(new Proof(["bank"], { quiet: true, owing: ["bank"] }).untilClean(), owingPatience * lateReplyMs);
});

test("Recovery sets a service aside that answers nothing for lateReplyMs, and holds up no other", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  const tookMs = proof.untilClean((service, question) => (service === "qr" ? undefined : rightly(service, question)));
  // The others have to prove themselves anew, since the terminal may be off.
  assert.ok(tookMs > lateReplyMs && tookMs < lateReplyMs + 1_000, `${tookMs} ms`);
  const hindering = (["bank", "qr", "fiscal"] as const).map((name) => proof.recovery.hindering(name));
  assert.deepEqual(hindering, [undefined, "qr", undefined]);
  assert.deepEqual(proof.recovery.aside, ["qr"]);
});

test("Recovery sets a service that owes a call aside after ten times as long, and its framing's services with it", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  proof.untilClean();
  proof.recovery.lost("bank", proof.now);
  const tookMs = proof.untilClean((service, question) => (service === "bank" ? undefined : rightly(service, question)));
  assert.ok(tookMs > owingPatience * lateReplyMs && tookMs < owingPatience * lateReplyMs + 1_000, `${tookMs} ms`);
  const hindering = (["bank", "qr", "fiscal"] as const).map((name) => proof.recovery.hindering(name));
  assert.deepEqual(hindering, ["bank", "bank", undefined]);
  // It hung: the call's late answer, and those to all that it was asked.
  proof.recovery.unasked("length", asJson('{"status":"success","data":{"status":"APPROVED"}}'), proof.now);
  assert.deepEqual(proof.recovery.out, ["bank", "qr"]);
  proof.untilClean();
  assert.deepEqual([proof.recovery.aside, proof.recovery.owing], [[], []]);
});

/** What an idle line asks, in vain: of whom, and how many seconds after the question before. */
function asksInVain(proof: Proof, times: number): readonly (readonly [string, number])[] {
  const askedMs = () => Math.max(...proof.recovery.state.services.map((service) => service.askedMs));
  return Array.from({ length: times }, () => {
    const { lineService, dueMs } = proof.recovery.idleDue(0, proof.now);
    assert.ok(lineService !== undefined);
    const asked = [lineService.service, Math.round((dueMs - askedMs()) / 1_000)] as const;
    proof.now = Math.max(proof.now, dueMs);
    proof.recovery.askedIdle(lineService.service, proof.now);
    proof.recovery.lostIdle(lineService.service, proof.now);
    return asked;
  });
}

test("Recovery of a line with no service in step asks one that was set aside after the other, each 20 s", () => {
  const proof = new Proof(["bank", "fiscal"]);
  proof.untilClean(() => undefined);
  const asked = asksInVain(proof, 4);
  assertMapped(asked, [20, 20, 20, 20], ([, seconds]) => seconds);
  assert.equal(new Set(asked.slice(0, 2).map(([service]) => service)).size, 2, "each in its turn");
  assert.deepEqual(asked.slice(0, 2), asked.slice(2));
});

test("Recovery asks a service that was set aside beside others after as long as it was silent, 20 s to ten minutes", () => {
  const proof = new Proof(["bank", "fiscal"]);
  proof.untilClean((service, question) => (service === "bank" ? undefined : rightly(service, question)));
  const asked = asksInVain(proof, 8).slice(1);
  assert.deepEqual(new Set(asked.map(([service]) => service)), new Set(["bank"]));
  const seconds = asked.map(([, each]) => each);
  assert.ok((seconds[0] ?? 0) >= 20 && (seconds[0] ?? 0) <= 60, seconds.join());
  for (const [index, each] of seconds.entries()) {
    const before = seconds[index - 1];
    if (before !== undefined) assert.ok(Math.abs(each - Math.min(2 * before, 600)) <= 2, seconds.join());
  }
  assert.deepEqual(seconds.slice(-2), [600, 600]);
  assert.equal(proof.recovery.answeredIdle("bank", asJson(probeOf.bank) ?? {}, proof.now + 1), true);
  assert.deepEqual(proof.recovery.out, ["bank"], "its answer begins a row");
});

test("Recovery puts the others of its framing out of step behind a question that one set aside left out: it may answer late", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  proof.untilClean((service, question) => (service === "qr" ? undefined : rightly(service, question)));
  proof.recovery.askedIdle("qr", proof.now);
  proof.recovery.lostIdle("qr", proof.now);
  assert.deepEqual([proof.recovery.out, proof.recovery.aside], [["bank"], ["qr"]]);
});

test("Recovery sets all services aside where the terminal is off, and asks each at once where one answers again", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  proof.untilClean();
  proof.recovery.lostIdle("bank", proof.now);
  const tookMs = proof.untilClean(() => undefined);
  assert.ok(tookMs <= 2 * lateReplyMs, `${tookMs} ms`);
  assert.deepEqual(proof.recovery.aside, ["bank", "qr", "fiscal"]);
  asksInVain(proof, 5);
  proof.now += 3_600_000;
  proof.recovery.answeredIdle("qr", asJson(probeOf.qr) ?? {}, proof.now);
  assert.deepEqual(proof.recovery.out, ["bank", "qr", "fiscal"]);
  assert.ok(proof.untilClean() < 1_000);
  assert.deepEqual(proof.recovery.aside, []);
});

test("Recovery puts each service of a framing out of step behind a frame that nobody asked for, but no other one's", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  proof.untilClean();
  proof.recovery.unasked("stx", undefined, proof.now);
  assert.deepEqual(proof.recovery.out, ["fiscal"]);
  proof.untilClean();
  proof.recovery.unasked("length", asJson(probeOf.bank), proof.now);
  assert.deepEqual(proof.recovery.out, ["bank", "qr"]);
});

test("Recovery asks a service that was set aside, and its framing's others, behind an answer of it that nobody asked for", () => {
  const proof = new Proof(["bank", "qr"]);
  proof.untilClean((service, question) => (service === "qr" ? undefined : rightly(service, question)));
  proof.recovery.unasked("length", asJson(error), proof.now);
  assert.deepEqual([proof.recovery.out, proof.recovery.aside], [["bank"], ["qr"]], "what may be anybody's tells nothing of it");
  proof.untilClean();
  proof.recovery.unasked("length", asJson(probeOf.qr), proof.now);
  assert.deepEqual(proof.recovery.out, ["bank", "qr"]);
  assert.deepEqual(proof.recovery.aside, []);
});

test("Recovery.state goes on with the same questions and decisions", () => {
  const proof = new Proof(["bank", "fiscal"]);
  proof.answers(9);
  const other = new Proof(["bank", "fiscal"], { seed: 99 });
  other.recovery.state = JSON.parse(JSON.stringify(proof.recovery.state));
  other.now = proof.now;
  const before = proof.asked.length;
  proof.untilClean();
  other.untilClean();
  assert.deepEqual(other.asked, proof.asked.slice(before));
});
