import assert from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "../../src/core/fault.ts";
import type { Ending } from "../../src/line/exchange.ts";
import { rowMin, vagueMin } from "../../src/recovery/limits.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { frame } from "../support/fake-device.ts";
import { probeReplies } from "../support/terminal.ts";
import { idOf, requestFor } from "./lines.ts";
import { OddTerminal } from "./odd-terminal.ts";

/**
 * Tests src/line/engine.ts, src/recovery/recovery.ts.
 *
 * Whole lives of lines whose terminal answers posline's probe with something other than its contract says: of another version, or busy. It
 * answers every request, one after the other.
 */

const success = '{"status":"success"}';
const error = '{"status":"error","code":-3}';

for (const service of ["bank", "fiscal", "qr"] as const) {
  test(`Line gives no call of ${service} the answer to a probe, over a terminal that answers those with a success of another shape`, () => {
    for (let seed = 1; seed <= 10; seed++) {
      const terminal = new OddTerminal([service]);
      terminal.odd.set(service, success);
      let state = seed;
      terminal.answerMs = () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return 5 + (state / 2 ** 32) * (seed % 2 === 0 ? 60 : 2_000);
      };
      // A till that sells one after the other for a quarter of an hour.
      let answered = 0;
      const sell = (n: number) => {
        const id = `S-${n}`;
        terminal.line.call(requestFor(id, { service }), (ending: Ending) => {
          if (!(ending instanceof Fault)) {
            answered++;
            assert.equal(idOf(Buffer.concat(ending.payload).toString()), id);
          }
          terminal.time.after(1_000, () => sell(n + 1));
        });
      };
      sell(1);
      terminal.time.advance(900_000);
      assert.ok(answered > 100, `${answered} were answered`);
    }
  });
}

for (const [name, odd, promptS, longestS] of [
  ["a success of another shape", success, 100, 300],
  ["operations that are no texts", '{"status":"success","data":{"operations":null}}', 100, 300],
  ["text", "BUSY", 100, 300],
  // A terminal that waits for a customer's card may be busy, and say so at once.
  ["errors", error, 360, 515],
] as const) {
  test(`Line is clean within half a minute and a few probes at a start over a terminal that answers them with ${name}`, () => {
    const terminal = new OddTerminal(["bank"]);
    terminal.odd.set("bank", odd);
    const seconds = terminal.cleanAfterS();
    assert.ok(seconds > 30 && seconds < 40, `${seconds} s`);
    assert.equal(terminal.probes, vagueMin + rowMin + 1);
  });

  test(`Line holds other services up for ${longestS} s at most where one that was proven answers with ${name}, each in up to 5 s`, () => {
    const took = [5, 1_000, 3_000, 5_000].map((answerMs) => {
      const terminal = new OddTerminal(["bank", "qr"]).loseCall("qr", odd);
      terminal.answerMs = () => answerMs;
      return terminal.cleanAfterS();
    });
    assert.ok(Math.max(...took) <= longestS, took.join(" "));
    assert.ok((took[0] ?? 0) < promptS, took.join(" "));
  });
}

for (const [name, odd] of [
  ["in shape", probeReplies.bankSupported],
  ["with a success of another shape", success],
  ["with text", "BUSY"],
  ["with errors", error],
] as const) {
  for (const [when, begin] of [
    ["", (terminal: OddTerminal) => terminal.cleanAfterS()],
    [
      " that was off once",
      (terminal: OddTerminal) => {
        terminal.cleanAfterS();
        terminal.isOn = false;
        terminal.sell("OFF");
        terminal.time.advance(400_000);
        terminal.isOn = true;
      },
    ],
    [
      " that was switched on after posline",
      (terminal: OddTerminal) => {
        terminal.isOn = false;
        terminal.time.advance(60_000);
        terminal.isOn = true;
      },
    ],
    [
      " that worked off its first probes all at once",
      (terminal: OddTerminal) => {
        terminal.nextMs = 20_000;
        terminal.cleanAfterS();
      },
    ],
  ] as const) {
    test(`Line gives the next sale no late answer of one that waits for its customer, over a terminal${when} that answers probes ${name}`, () => {
      for (const customerMs of [45_000, 80_000, 150_000, 300_000]) {
        const terminal = new OddTerminal(["bank"]);
        terminal.odd.set("bank", odd);
        terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
        begin(terminal);
        terminal.cleanAfterS();
        assert.equal(terminal.sell("FIRST"), '{"status":"success","id":"FIRST"}');
        terminal.nextMs = customerMs;
        assert.equal(terminal.sell("A"), "no-reply");
        terminal.cleanAfterS();
        assert.equal(terminal.sell("B", 400_000), '{"status":"success","id":"B"}', `the customer takes ${customerMs} ms`);
      }
    });
  }
}

for (const [name, odd] of [
  ["in shape", undefined],
  ["with a success of another shape", success],
  ["with errors", error],
] as const) {
  test(`Line sets services aside that hang after lateReplyMs, and ten times that later one that owes a call and answered probes ${name}`, () => {
    const silent = new OddTerminal(["bank"]);
    silent.answerMs = () => Number.MAX_SAFE_INTEGER;
    const asideAfterS = (terminal: OddTerminal) => {
      const beganMs = terminal.time.now;
      assert.ok(terminal.time.until(() => terminal.line.state === "idle"));
      assert.equal(terminal.line.takesCalls, false);
      return Math.round((terminal.time.now - beganMs) / 1_000);
    };
    assert.equal(asideAfterS(silent), 30);
    assert.equal(silent.sell("A", 1), "recovering");
    const owing = new OddTerminal(["bank"]);
    if (odd !== undefined) owing.odd.set("bank", odd);
    owing.cleanAfterS();
    owing.answerMs = () => Number.MAX_SAFE_INTEGER;
    owing.line.call(requestFor("LOST", { replyTimeoutMs: 4_000 }), () => {});
    assert.ok(owing.time.until(() => owing.line.state === "recovering"));
    assert.equal(asideAfterS(owing), 300);
    assert.equal(owing.sell("A", 1), "recovering");
  });
}

test("Line asks no idle probes of a service whose firmware answers them with text, and is not busy recovering for it", () => {
  const terminal = new OddTerminal(["bank", "qr"]).loseCall("qr", "BUSY");
  terminal.cleanAfterS();
  const { probes } = terminal;
  terminal.time.advance(590_000);
  assert.equal(terminal.line.state, "idle");
  assert.ok(terminal.probes - probes <= 10, "those of bank, one a minute");
  // It has the right version again: the next recovery finds out.
  terminal.odd.clear();
  terminal.line.call(requestFor("LOST", { service: "qr", replyTimeoutMs: 4_000 }), () => {});
  assert.ok(terminal.time.until(() => terminal.line.state === "recovering"));
  assert.ok(terminal.cleanAfterS() < 1);
});

test("Line is clean at once, and gives each sale its answer, over a terminal that sends zeros behind each answer", () => {
  const terminal = new OddTerminal(["bank"]);
  // As many as make two empty frames.
  terminal.behind = Buffer.alloc(12);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  assert.ok(terminal.cleanAfterS() < 1);
  for (const id of ["A", "B"]) assert.equal(terminal.sell(id), `{"status":"success","id":"${id}"}`);
});

test("Line sells to two tills at once over a terminal whose zeros come in reads of their own", () => {
  for (const behindMs of [0, 3]) {
    const terminal = new OddTerminal(["bank"]);
    terminal.behind = Buffer.alloc(6);
    terminal.behindMs = behindMs;
    terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
    terminal.cleanAfterS();
    for (let n = 0; n < 20; n++) {
      terminal.sell(`A-${n}`, 0);
      assert.equal(terminal.sell(`B-${n}`, 5_000), `{"status":"success","id":"B-${n}"}`);
      assert.equal(terminal.line.state, "idle");
    }
  }
});

test("Line sends nothing where nothing but zeros comes any more, and says what that may be", () => {
  const terminal = new OddTerminal(["bank"]);
  terminal.cleanAfterS();
  terminal.isOn = false;
  const holdLow = () => {
    terminal.send(Buffer.alloc(6));
    terminal.time.after(100, holdLow);
  };
  holdLow();
  terminal.time.advance(70_000);
  assert.equal(terminal.line.state, "recovering", "the idle line's own question had no answer");
  terminal.time.advance(900_000);
  assert.equal(terminal.line.takesCalls, false);
  assert.match(terminal.line.reason, /wrong speed/);
  assert.equal(terminal.sell("A"), "recovering");
});

test("Line sends no call over a terminal that answers probes with what is no frame: it may hear calls, and never be heard", () => {
  const broken = frame("length", success);
  broken[broken.length - 1] = (broken.at(-1) ?? 0) ^ 0x41;
  for (const [answer, cause] of [
    [broken, /wrong checksum/],
    [Buffer.from([0x15]), /wrong speed/],
    [Buffer.from("ERR\r\n"), /wrong speed/],
  ] as const) {
    const terminal = new OddTerminal(["bank"]);
    terminal.odd.set("bank", answer);
    for (let minutes = 0; minutes < 60; minutes++) {
      terminal.time.advance(60_000);
      assert.equal(terminal.line.takesCalls, false);
      assert.match(terminal.line.reason, cause);
      assert.equal(terminal.sell(`S-${minutes}`, 20_000), "recovering");
    }
  }
});

test("Line that asks nothing waits for late answers that come twice, and gives them to nobody", () => {
  const terminal = new OddTerminal(["bank"], 30_000, true, true);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  terminal.sell("FIRST", 120_000);
  for (const id of ["A", "B", "C"]) {
    terminal.nextMs = 45_000;
    terminal.behind = frame("length", `{"status":"success","id":"${id}"}`);
    assert.equal(terminal.sell(id), "no-reply");
    const seconds = terminal.cleanAfterS();
    // The answer comes after 15 s, and a silence of ten times lateReplyMs begins.
    assert.ok(seconds >= 314 && seconds < 317, `${seconds} s`);
    terminal.behind = Buffer.alloc(0);
    assert.equal(terminal.sell("NEXT"), '{"status":"success","id":"NEXT"}');
  }
});

test("Line sends no call right behind a probe that the kernel accepted late, whose answer has another shape than those before", () => {
  const terminal = new OddTerminal(["bank"]);
  assert.ok(terminal.time.until(() => terminal.line.state === "idle"));
  terminal.onCall = (id) => (id === "LOST" ? undefined : `{"status":"success","id":"${id}"}`);
  assert.match(terminal.sell("FIRST") ?? "", /FIRST/);
  terminal.line.call(requestFor("LOST", { replyTimeoutMs: 4_000 }), () => {});
  // The first probe is answered while the second one is written, and by that the line is proven.
  terminal.answerMs = () => 2_500;
  assert.ok(terminal.time.until(() => terminal.line.state === "recovering"));
  terminal.time.advance(1_000);
  terminal.acceptsMs = 4_000;
  terminal.time.advance(2_000);
  terminal.odd.set("bank", success);
  terminal.answerMs = () => 5;
  assert.equal(terminal.sell("NEXT", 100_000), "recovering");
});

test("Line waits for the late answer of a call that failed while it was written from its last byte on, where nothing may be asked", () => {
  const terminal = new OddTerminal(["bank"], 30_000, true, true);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  terminal.acceptsMs = 4_000;
  terminal.nextMs = 29_000;
  terminal.line.call(requestFor("FIRST", { replyTimeoutMs: 30_000 }), () => {});
  terminal.time.advance(100);
  // A copy of an answer from before: whose is what comes now isn't known.
  terminal.send(frame("length", '{"status":"success","id":"OLD"}'));
  terminal.time.advance(20_000);
  assert.equal(terminal.sell("SECOND", 100_000), "recovering");
});

test("Line is held up half a minute an hour by a service that answers no more, says so, and finds it again by itself", () => {
  const terminal = new OddTerminal(["fiscal", "bank"]);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  terminal.odd.set("bank", undefined);
  const isReady = () => terminal.line.state === "idle";
  // Its silence, once, in which it might wait for a customer.
  terminal.time.advance(60_000 + 310_000);
  let heldUpS = 0;
  for (let second = 0; second < 3 * 3_600; second++) {
    if (!isReady()) heldUpS++;
    terminal.time.advance(1_000);
  }
  // Each time for the five seconds of a probe, and for a silence.
  assert.ok(heldUpS <= 3 * 36, `${heldUpS} s`);
  const stateOf = () => terminal.line.liveness().find(({ service }) => service === "bank")?.state;
  assert.equal(stateOf(), "unheard");
  terminal.odd.delete("bank");
  terminal.time.advance(3_700_000);
  assert.equal(stateOf(), "heard");
  const { probes } = terminal;
  terminal.time.advance(600_000);
  assert.ok(terminal.probes >= probes + 18, "both, once a minute");
});

test("Line whose terminal is off at night finds both of its services again in the morning", () => {
  const terminal = new OddTerminal(["fiscal", "bank"]);
  terminal.cleanAfterS();
  terminal.spendNight();
  assertMapped(terminal.line.liveness(), ["heard", "heard"], ({ state }) => state);
});

test("Line isn't ready while bytes leave no pause for a call, says so, and is once they pause", () => {
  const terminal = new OddTerminal(["bank"]);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  // Noise; zeros that read as empty frames, one byte out of step; and both so far apart that a call goes out between them.
  for (const [bytes, everyMs, isBabble] of [
    [Buffer.from([0xff]), 50, true],
    [Buffer.alloc(6), 1_000, true],
    [Buffer.from([0xff]), 500, false],
  ] as const) {
    if (bytes.length > 1) terminal.send(Buffer.alloc(1));
    for (let ms = 0; ms < 4_000; ms += everyMs) {
      terminal.send(bytes);
      terminal.time.advance(everyMs);
    }
    assert.equal(terminal.line.state, "idle", "it may be a late answer's rest");
    for (let ms = 0; ms < 60_000; ms += everyMs) {
      terminal.send(bytes);
      terminal.time.advance(everyMs);
    }
    assert.equal(terminal.line.state, isBabble ? "recovering" : "idle");
    if (isBabble) assert.match(terminal.line.reason, /^bytes come without a pause/);
    terminal.time.advance(10_000);
    assert.equal(terminal.line.state, "idle");
    assert.equal(terminal.sell("A"), `{"status":"success","id":"A"}`);
  }
});

test("Line whose other service can't be asked finds the one that was off at night by itself", () => {
  const terminal = new OddTerminal(["bank", "fiscal"], 30_000, false);
  terminal.onCall = (id) => `{"status":"success","id":"${id}"}`;
  terminal.cleanAfterS();
  terminal.spendNight();
  assert.equal(terminal.line.liveness()[0]?.state, "heard");
});

test("Line names the service that it waits for as the cause, not one beside it that has been silent for long", () => {
  const terminal = new OddTerminal(["bank", "fiscal"]);
  terminal.cleanAfterS();
  terminal.odd.set("fiscal", undefined);
  terminal.time.advance(1_000_000);
  assert.match(terminal.line.reason, /fiscal does not answer/);
  terminal.onCall = () => undefined;
  terminal.odd.set("bank", undefined);
  assert.equal(terminal.sell("A", 31_000), "no-reply");
  assert.equal(terminal.line.state, "recovering");
  const left = "bank is set aside in 300 s unless it answers";
  assert.equal(terminal.line.reason, `the terminal did not answer within 30 s; ${left}`);
});

/** The seconds that the line says are left, at each second until it is clean. */
function saidLeft(terminal: OddTerminal, words: RegExp): readonly number[] {
  const said: number[] = [];
  while (terminal.line.state === "recovering") {
    const left = words.exec(terminal.line.reason)?.[1];
    if (left !== undefined) said.push(Number(left));
    terminal.time.advance(1_000);
  }
  return said;
}

const from = (first: number) => Array.from({ length: first }, (_, n) => first - n);

for (const [name, terminalOf, words, first] of [
  [
    "never answers the second question",
    () => Object.assign(new OddTerminal(["bank"]), { second: "ignored" }),
    /bank answers posline's second question like the first or not at all, so a late answer of bank is waited for (\d+) s more$/,
    30,
  ],
  [
    "answers both questions with one error",
    () => {
      const terminal = new OddTerminal(["bank"]);
      terminal.odd.set("bank", error);
      return terminal;
    },
    /answers posline's own question with code -3.*; a late answer of bank is waited for (\d+) s more$/,
    30,
  ],
  [
    "is asked nothing",
    () => new OddTerminal(["bank"], 30_000, true, true),
    /a late answer of bank is waited for (\d+) s more$/,
    300,
  ],
] as const) {
  test(`Line says after an unknown how many of ${first} s are left, over a terminal that ${name}`, () => {
    const terminal = terminalOf();
    terminal.cleanAfterS();
    terminal.onCall = () => undefined;
    assert.equal(terminal.sell("A", 30_010), "no-reply");
    const said = saidLeft(terminal, words);
    assert.deepEqual(said, from(first).slice(-said.length));
    assert.ok(said.length >= first - 2, `${said}`);
  });
}

test("Line says how long it may take where a proven terminal begins to answer both questions with one error, and it takes no longer by half", () => {
  const terminal = new OddTerminal(["bank"]).loseCall("bank", probeReplies.bankSupported);
  terminal.time.advance(100);
  terminal.odd.set("bank", error);
  terminal.time.advance(3_000);
  const said = Number(
    /bank answers otherwise than asked, and if it goes on so, calls wait about (\d+) s more/.exec(terminal.line.reason)?.[1],
  );
  const took = terminal.cleanAfterS();
  assert.ok(said > 60 && took < 1.5 * said, `said ${said} s, took ${took} s`);
});
