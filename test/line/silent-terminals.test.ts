import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ContractName } from "../../src/core/call.ts";
import { rowMin } from "../../src/recovery/limits.ts";
import { frame } from "../support/fake-device.ts";
import { probeReplies, secondKinds } from "../support/terminal.ts";
import { requestFor } from "./lines.ts";
import { OddTerminal } from "./odd-terminal.ts";

/**
 * Tests src/line/engine.ts, src/recovery/recovery.ts, src/recovery/standing.ts.
 *
 * Whole lives of lines whose terminal is silent for long: it hangs and answers everything later, or it was off and heard nothing. Nobody can
 * tell one from the other while it lasts.
 */

const minuteMs = 60_000;

/**
 * Seconds that a row takes at most: the first question, twenty and one, and as long again where answers are so slow that posline asks on
 * meanwhile.
 */
const rowsS = (answerMs: number) => (rowMin + 2) * (answerMs / 1_000) * (answerMs > 500 ? 2 : 1);

/** A terminal that has proven itself. */
function proven(...services: readonly ContractName[]): OddTerminal {
  const terminal = new OddTerminal(services);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  terminal.time.advance(10_000);
  return terminal;
}

/** Sells until the backlog is worked off: no sale gets another's answer. */
function sellsOn(terminal: OddTerminal, sales: number): void {
  for (let n = 0; n < sales; n++) {
    const told = terminal.sell(`S-${n}`, 31_000);
    if (told?.includes('"id"')) assert.ok(told.includes(`"S-${n}"`), `S-${n} was answered ${told}`);
  }
}

/** Pays by QR, with so long for it. @returns what the till is answered; undefined where it is nothing. */
function paysByQr(terminal: OddTerminal, id: string, ms: number): string | undefined {
  let told: string | undefined;
  terminal.line.call(requestFor(id, { service: "qr", replyTimeoutMs: 10_000 }), (ending) => {
    if ("payload" in ending) told = Buffer.concat(ending.payload).toString();
  });
  terminal.time.advance(ms);
  return told;
}

for (const hangMinutes of [15, 25, 60]) {
  test(`Line gives no call another's answer, over a terminal that hung for ${hangMinutes} minutes and answers all it was asked`, () => {
    for (const answerMs of [300, 700]) {
      for (const beforeMs of [1_000, 10_000, 29_000]) {
        const terminal = proven("bank");
        terminal.answerMs = () => answerMs;
        terminal.hang(hangMinutes * minuteMs);
        terminal.time.advance(hangMinutes * minuteMs - beforeMs);
        sellsOn(terminal, 12);
      }
    }
  });
}

test("Line gives no call another's answer that comes behind one to a question of its own, over a terminal that hung since the start", () => {
  let told = 0;
  for (let hangS = 40; hangS < 200; hangS += 3) {
    for (const second of ["answered", "not offered"] as const) {
      const terminal = new OddTerminal(["bank", "qr"]);
      terminal.second = second;
      terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
      terminal.hang(hangS * 1_000);
      terminal.cleanAfterS();
      for (let n = 0; n < 6; n++) {
        const answer = terminal.sell(`S-${n}`, 31_000);
        if (answer?.includes('"id"') !== true) continue;
        assert.equal(answer, `{"status":"success","id":"S-${n}"}`, `hung for ${hangS} s`);
        told++;
      }
    }
  }
  assert.ok(told > 200, `${told}`);
});

test("Line gives no call another's answer, over a QR terminal that hung since the start, and was asked in vain more often than a start leaves over", () => {
  let told = 0;
  for (let hangS = 120; hangS <= 600; hangS += 60) {
    for (const paceMs of [300, 1_000]) {
      const terminal = new OddTerminal(["qr"]);
      terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
      terminal.answerMs = () => paceMs;
      terminal.hang(hangS * 1_000);
      for (let n = 0; n < hangS / 31 + 12; n++) {
        const answer = paysByQr(terminal, `S-${n}`, 31_000);
        if (answer === undefined) continue;
        assert.equal(answer, `{"status":"success","id":"S-${n}"}`, `hung for ${hangS} s, ${paceMs} ms`);
        told++;
      }
    }
  }
  assert.ok(told > 50, `${told}`);
});

for (const services of [["bank"], ["bank", "qr"]] as const) {
  test(`Line of ${services.join(" and ")} gives no call the answer to one that was in vain, and is ready within six minutes of any hang`, () => {
    for (const second of secondKinds) {
      for (const hangS of [45, 100, 290, 310, 335, 400, 900, 3_600, 36_000]) {
        for (const paceMs of [20, 150]) {
          const terminal = new OddTerminal(services);
          terminal.second = second;
          terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
          terminal.cleanAfterS();
          terminal.time.advance(10_000);
          terminal.answerMs = () => paceMs;
          const wakesMs = terminal.time.now + hangS * 1_000;
          terminal.hang(hangS * 1_000);
          assert.equal(terminal.sell("LOST"), "no-reply");
          for (let n = 0; terminal.time.now < wakesMs; n++) {
            const told = terminal.sell(`S-${n}`, Math.min(31_000, wakesMs - terminal.time.now));
            assert.ok(told === undefined || told === "recovering", `${second}, ${hangS} s, ${paceMs} ms: ${told}`);
          }
          const seconds = terminal.cleanAfterS();
          assert.ok(seconds < 360, `${second}, ${hangS} s, ${paceMs} ms: ready after ${seconds} s`);
          assert.equal(terminal.sell("NEXT"), '{"status":"success","id":"NEXT"}', `${second}, ${hangS} s, ${paceMs} ms`);
        }
      }
    }
  });
}

test("Line doesn't take the answer to its own older question for a shift that was opened, over a terminal that hung", () => {
  for (const beforeS of [0.5, 5, 20, 50]) {
    for (const paceMs of [5, 2_000]) {
      const terminal = proven("fiscal");
      terminal.answerMs = () => paceMs;
      terminal.hang(30 * minuteMs);
      terminal.time.advance(30 * minuteMs - beforeS * 1_000);
      const told = terminal.sell("OPEN", 400_000, { service: "fiscal", shapedAs: "second", replyTimeoutMs: 60_000 });
      assert.ok(told !== undefined && !told.includes("isShiftOpen"), `${beforeS} s before, ${paceMs} ms: ${told}`);
    }
  }
});

test("Line gives no sale the answer to a report that prints for longer than is waited for, over a terminal that was off before", () => {
  for (const printS of [200, 230, 260]) {
    const terminal = proven("fiscal");
    terminal.isOffFor(400_000);
    terminal.cleanAfterS();
    terminal.nextMs = printS * 1_000;
    terminal.sell("REPORT", 180_100, { service: "fiscal", shapedAs: "second", replyTimeoutMs: 180_000 });
    terminal.cleanAfterS();
    const told = terminal.sell("SALE", 400_000, { service: "fiscal", replyTimeoutMs: 180_000 });
    assert.equal(told, '{"status":"success","id":"SALE"}', `${printS} s`);
  }
});

test("Line gives no call another's answer, over a slow terminal whose answers to posline's questions come twice, all or some", () => {
  for (const share of [1, 0.3, 0.1]) {
    for (let seed = 1; seed <= 40; seed++) {
      let drawn = seed;
      const draw = () => {
        drawn = (Math.imul(drawn, 1_664_525) + 1_013_904_223) >>> 0;
        return drawn / 2 ** 32;
      };
      const terminal = proven("bank");
      terminal.answerMs = () => 2_000 + (seed % 4) * 1_000;
      terminal.isTwice = () => draw() < share;
      terminal.nextMs = 10_000 + draw() * 20_000;
      for (let n = 0; n < 8; n++) {
        terminal.line.call(requestFor(`S-${n}`, { replyTimeoutMs: 10_000 }), (ending) => {
          const told = "payload" in ending ? Buffer.concat(ending.payload).toString() : undefined;
          if (told !== undefined) assert.equal(told, `{"status":"success","id":"S-${n}"}`, `${share} ${seed}`);
        });
        terminal.time.advance(4_000 + draw() * 8_000);
      }
      terminal.time.advance(120_000);
    }
  }
});

test("Line is ready with the first row behind a call's late answer, and starts within a minute where one question in seven is refused", () => {
  for (const paceMs of [20, 1_000, 2_500]) {
    const terminal = proven("bank");
    terminal.answerMs = () => paceMs;
    terminal.nextMs = 14_000;
    terminal.sell("LATE", 9_100, { replyTimeoutMs: 9_000 });
    // It comes 4.9 s later.
    const seconds = terminal.cleanAfterS() - 4.9;
    assert.ok(seconds <= 1 + rowsS(paceMs), `${paceMs} ms: ${seconds} s`);
  }
  const terminal = new OddTerminal(["bank"]);
  let asked = 0;
  const answer = terminal.odd;
  terminal.onQuestion = () => (++asked % 7 === 0 ? answer.set("bank", '{"status":"error","code":-3}') : answer.delete("bank"));
  assert.ok(terminal.cleanAfterS() < 60);
});

test("Line gives no call the answer to an older question, nor another's, over a terminal that hung and refuses one service's questions", () => {
  for (const paceMs of [5, 400, 2_000]) {
    for (let beforeS = 1; beforeS < 40; beforeS += 2) {
      const terminal = new OddTerminal(["bank", "qr"]);
      terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
      terminal.odd.set("bank", '{"status":"error","code":-3}');
      terminal.cleanAfterS();
      terminal.time.advance(10_000);
      terminal.answerMs = () => paceMs;
      terminal.hang(12 * minuteMs);
      // Then both are asked.
      terminal.send(frame("length", '{"event":"paper low"}'));
      terminal.time.advance(12 * minuteMs - beforeS * 1_000);
      for (let n = 0; n < 12; n++) {
        const told = paysByQr(terminal, `S-${n}`, 11_000);
        if (told !== undefined) assert.equal(told, `{"status":"success","id":"S-${n}"}`, `${paceMs} ms, ${beforeS} s before`);
      }
    }
  }
});

test("Line gives no call another's answer, over a terminal that hung while one service's questions were refused, and refuses the rest when it wakes", () => {
  for (const hangS of [200, 330, 500, 1_000]) {
    for (const paceMs of [300, 900, 2_000]) {
      for (const beforeS of [10, 60, 200]) {
        const terminal = new OddTerminal(["bank", "qr"]);
        terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
        terminal.odd.set("bank", '{"status":"error","code":-3}');
        terminal.cleanAfterS();
        // Each has replied to a call, so nothing of before is expected any more.
        terminal.sell("A");
        paysByQr(terminal, "B", 20_000);
        terminal.send(frame("length", '{"event":"paper low"}'));
        terminal.time.advance(2_500);
        terminal.answerMs = () => paceMs;
        terminal.hang(hangS * 1_000);
        terminal.time.advance(Math.max(0, hangS - beforeS) * 1_000);
        for (let n = 0; n < 8; n++) {
          const told = paysByQr(terminal, `S-${n}`, 10_500);
          if (told?.includes('"id"')) assert.equal(told, `{"status":"success","id":"S-${n}"}`, `${hangS} s, ${paceMs} ms`);
        }
      }
    }
  }
});

for (const [fromMs, toMs] of [
  [2_000, 8_000],
  [3_000, 10_000],
  [4_000, 9_000],
  [5_000, 10_000],
] as const) {
  test(`Line gives no call another's answer, over a terminal that hung and then takes ${fromMs} to ${toMs} ms for each question`, () => {
    const life = fc.record({
      paces: fc.array(fc.integer({ min: fromMs, max: toMs }), { minLength: 50, maxLength: 300 }),
      hangMinutes: fc.constantFrom(20, 30, 60),
      beforeMs: fc.integer({ min: 1_000, max: 60_000 }),
    });
    const property = fc.property(life, ({ paces, hangMinutes, beforeMs }) => {
      const terminal = proven("bank");
      let n = 0;
      terminal.answerMs = () => paces[n++ % paces.length] ?? 0;
      terminal.hang(hangMinutes * minuteMs);
      terminal.time.advance(hangMinutes * minuteMs - beforeMs);
      sellsOn(terminal, 60);
    });
    fc.assert(property, { numRuns: 60 });
  });
}

for (const [shareLost, paceMs] of [
  [0.1, 4_800],
  [0.3, 4_000],
  [0.3, 4_800],
] as const) {
  test(`Line gives no call another's answer, over a terminal that hung, takes ${paceMs} ms for each question, and loses ${shareLost} of its answers`, () => {
    const isLost = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 100, maxLength: 300 });
    const property = fc.property(isLost, fc.integer({ min: 1_000, max: 60_000 }), (draws, beforeMs) => {
      const terminal = proven("bank");
      let n = 0;
      // An answer that is lost leaves a gap of twice its time.
      terminal.answerMs = () => ((draws[n++ % draws.length] ?? 1) < shareLost ? 2 * paceMs : paceMs);
      terminal.hang(30 * minuteMs);
      terminal.time.advance(30 * minuteMs - beforeMs);
      sellsOn(terminal, 60);
    });
    fc.assert(property, { numRuns: 60 });
  });
}

for (const answerMs of [2_900, 3_100, 3_400, 3_600]) {
  test(`Line is clean within eight minutes of its terminal being switched on during a sale, after a weekend, where a probe takes ${answerMs} ms`, () => {
    const terminal = proven("bank");
    terminal.answerMs = () => answerMs;
    terminal.sell("FIRST");
    terminal.isOn = false;
    terminal.time.advance(60 * 60 * minuteMs);
    terminal.sell("IN-VAIN", 20_000);
    terminal.isOn = true;
    terminal.time.advance(11_000);
    const seconds = terminal.cleanAfterS();
    assert.ok(seconds <= 480, `${seconds} s`);
  });
}

test("Line of three services is ready within 40 s of its terminal's being on, however long that was off while idle", () => {
  for (const answerMs of [5, 150]) {
    for (const offS of [10, 40, 64, 70, 80, 90, 100, 115, 130, 160, 200, 300, 900, 3_607, 36_013]) {
      const terminal = proven("bank", "qr", "fiscal");
      terminal.answerMs = () => answerMs;
      terminal.isOffFor(offS * 1_000);
      const seconds = terminal.cleanAfterS();
      assert.ok(seconds <= 40, `${answerMs} ms, off for ${offS} s: ${seconds} s`);
      for (const service of ["bank", "qr", "fiscal"] as const)
        assert.equal(terminal.sell(`S-${service}`, 1_000, { service }), `{"status":"success","id":"S-${service}"}`);
    }
  }
});

test("Line gives no call of one service what another one, set aside, answers late to posline's own question", () => {
  let told = 0;
  for (const odd of ['{"status":"error","code":-3}', '{"status":"success"}', "BUSY", probeReplies.connection]) {
    for (let slowMs = 5_050; slowMs < 9_000; slowMs += 250) {
      const terminal = proven("bank", "qr");
      terminal.isOffFor(600_000);
      terminal.odd.set("qr", odd);
      terminal.onQuestion = (service) => {
        if (service === "qr") terminal.nextMs = slowMs;
      };
      for (let n = 0; n < 300; n++) {
        const answer = terminal.sell(`S-${n}`, 1_000, { replyTimeoutMs: 10_000 });
        if (answer?.includes("{") !== true) continue;
        assert.equal(answer, `{"status":"success","id":"S-${n}"}`, `${odd} after ${slowMs} ms`);
        told++;
      }
    }
  }
  assert.ok(told > 1_000, `${told}`);
});

for (const second of secondKinds) {
  test(`Line forgets no answer that stays out while a row is made: none is given to a call, where the second question is ${second}`, () => {
    for (const lateMs of [2_050, 2_600, 4_000, 6_500, 9_000]) {
      for (let nth = 1; nth <= rowMin + 2; nth++) {
        const terminal = new OddTerminal(["bank"]);
        terminal.second = second;
        terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
        let asked = 0;
        // One answer comes late, and all behind it.
        terminal.onQuestion = () => {
          if (++asked === nth) terminal.nextMs = lateMs;
        };
        for (let n = 0; n < 8; n++) {
          const told = terminal.sell(`S-${n}`, 16_000, { replyTimeoutMs: 5_000 });
          if (told?.includes("{")) assert.equal(told, `{"status":"success","id":"S-${n}"}`, `${lateMs} ms at ${nth}`);
        }
        assert.equal(terminal.sell("NEXT"), '{"status":"success","id":"NEXT"}');
      }
    }
  });
}

for (const [name, behind, mostS] of [
  ["CR LF", Buffer.from("\r\n"), 75],
  ["an ACK", Buffer.from([6]), 75],
  // They read as the beginning of a frame, in which the next answer is lost where it comes within 3 s; four and more as that of a longer one.
  ["three zeros", Buffer.alloc(3), 480],
  ["four zeros", Buffer.alloc(4), 480],
  ["nine zeros", Buffer.alloc(9), 480],
] as const) {
  test(`Line is clean within ${mostS} s of its terminal's being on, which sends ${name} behind each answer`, () => {
    for (const answerMs of name.endsWith("zeros") ? [5, 150, 1_000] : [150, 1_000]) {
      for (const offHours of [1, 10]) {
        const terminal = proven("bank");
        terminal.answerMs = () => answerMs;
        terminal.behind = behind;
        terminal.sell("FIRST");
        terminal.isOn = false;
        terminal.time.advance(offHours * 60 * minuteMs);
        assert.equal(terminal.sell("IN-VAIN", 30_100), "recovering");
        terminal.isOn = true;
        const seconds = terminal.cleanAfterS();
        assert.ok(seconds <= mostS, `${answerMs} ms, ${offHours} h: ${seconds} s`);
      }
    }
  });
}

for (const [name, behind] of [
  ["CR LF", Buffer.from("\r\n")],
  ["an ACK", Buffer.from([6])],
] as const) {
  test(`Line is clean within 15 s of its opening, and within 5 s of a call without an answer, where a terminal answers at once and sends ${name} behind`, () => {
    for (const services of [["bank"], ["bank", "qr", "fiscal"]] as const) {
      for (const answerMs of [5, 50, 90]) {
        const terminal = new OddTerminal(services);
        terminal.answerMs = () => answerMs;
        terminal.behind = behind;
        terminal.onCall = () => undefined;
        assert.ok(terminal.cleanAfterS() <= 15);
        for (let n = 0; n < 5; n++) {
          assert.equal(terminal.sell(`LOST-${n}`, 30_010), "no-reply");
          const seconds = terminal.cleanAfterS();
          assert.ok(seconds <= 5, `${services}, ${answerMs} ms: ${seconds} s`);
        }
      }
    }
  });
}

test("Line is held up by errors in place of probes' answers for little over seven minutes, however long it was silent before", () => {
  for (let offS = 60; offS < 300; offS += 10) {
    const terminal = proven("bank", "fiscal");
    terminal.sell("A");
    terminal.onCall = (id) => (id === "LOST" ? undefined : `{"status":"success","id":"${id}"}`);
    terminal.sell("LOST");
    terminal.isOffFor(offS * 1_000);
    terminal.odd.set("bank", '{"status":"error","code":-3}');
    const seconds = terminal.cleanAfterS();
    assert.ok(seconds < 435, `off for ${offS} s: ${seconds} s`);
  }
});

for (const offS of [1, 5, 25]) {
  test(`Line gives a till that asks each second its errors soon, where its terminal was on ${offS} s later than posline`, () => {
    const terminal = new OddTerminal(["bank", "qr"]);
    terminal.onCall = (id) => `{"status":"error","code":-15,"id":"${id}"}`;
    terminal.isOffFor(offS * 1_000);
    terminal.cleanAfterS();
    const told: string[] = [];
    for (let n = 0; n < 60; n++) {
      const request = { ...requestFor(`C-${n}`, { service: "bank" }), repeatable: true };
      terminal.line.call(request, (ending) => told.push("payload" in ending ? "answered" : String(ending.reason)));
      terminal.time.advance(1_000);
    }
    assert.equal(told.length, 60);
    const ambiguous = told.filter((each) => each === "reply-ambiguous").length;
    const answered = told.filter((each) => each === "answered").length;
    assert.ok(ambiguous <= 3 && answered >= 25, told.join(" "));
  });
}

for (const services of [["bank"], ["fiscal"], ["qr"], ["bank", "qr"]] as const) {
  test(`Line of ${services.join(" and ")} gives no call another's answer, over a terminal that answers only when it is asked more`, () => {
    for (const lag of [1, 2, 3]) {
      for (const second of secondKinds) {
        const terminal = new OddTerminal(services);
        terminal.second = second;
        terminal.lag = lag;
        terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
        for (let n = 0; n < 25; n++) {
          const told = terminal.sell(`S-${n}`, 31_000 + n * 11_000, { service: services[n % services.length] ?? "bank" });
          if (told?.startsWith("{")) assert.ok(told.includes(`"S-${n}"`), `${lag}, ${second}: S-${n} was answered ${told}`);
        }
      }
    }
  });
}
