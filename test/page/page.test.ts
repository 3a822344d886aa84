import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { endAll, posline, post, saleOf } from "../e2e/emulating.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { closeBrowser, noChromium, open, textOf, untilText } from "./browser.ts";
import { StreamDouble, wellStatus } from "./stream-double.ts";

/**
 * The status page in a real browser without a window: before real poslines, and before a stand-in where a test decides what happens.
 *
 * Tests src/page/page.ts, src/page/admin-port.ts, src/page/exchanges.ts, src/page/terminals.ts, src/page/doubts.ts, src/page/emulator-controls.ts.
 */

after(async () => {
  await closeBrowser();
  await endAll();
});

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds, by its rule and the first place. */
async function findingsOf(page: Page): Promise<readonly string[]> {
  // By the debugger's protocol, which the page's policy doesn't bind.
  await page.evaluate(axe);
  return page.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))");
}

const looks: Readonly<Record<string, BrowserContextOptions>> = {
  light: {},
  dark: { colorScheme: "dark" },
  "phone of 360 px": { viewport: { width: 360, height: 740 }, locale: "de-DE", reducedMotion: "reduce" },
};

/** A double whose bank is in doubt, its second line down. */
function troubled(double: StreamDouble): void {
  const down = { ...wellStatus.lines.till, state: "down", reason: "there is no device /dev/ttyUSB7" };
  double.status = {
    ...wellStatus,
    reasons: [
      {
        what: "line",
        line: "kiosk",
        state: "down",
        reason: "there is no device /dev/ttyUSB7",
        cure: "posline doctor --line kiosk",
      },
    ],
    notes: ["posline sends no probe to fiscal on line till: only a call shows whether it is there"],
    lines: { ...wellStatus.lines, kiosk: down },
    services: {
      ...wellStatus.services,
      qr: { ...wellStatus.services.bank, contract: "qr", line: "kiosk", heard: { state: "unheard" } },
      fiscal: { ...wellStatus.services.bank, contract: "fiscal", heard: { state: "unproven" } },
    },
    journal: {
      state: "ok",
      unknown: {
        total: 3,
        newest: [
          {
            time: "2026-11-20T09:12:44.120Z",
            requestId: "r-1",
            service: "bank",
            route: "/sale",
            key: "A-77",
            amount: "1500",
            cause: "reported as unknown",
          },
        ],
      },
    },
  };
}

for (const [look, options] of Object.entries(looks)) {
  test(`page (${look}): axe-core finds nothing, nothing is wider than the screen, and the console stays empty`, {
    skip: noChromium,
  }, async () => {
    const double = new StreamDouble();
    troubled(double);
    const { page, complaints, close } = await open(await double.start(), options);
    try {
      await untilText(page, ".doubt", /A-77/);
      double.exchange("1");
      double.exchange("2", {
        outcome: "unknown",
        reason: "no-reply",
        lineMs: 30_000,
        message: "No valid reply from line till",
      });
      double.exchange("3", {
        outcome: "not-sent",
        reason: "line-down",
        queueMs: 0,
        lineMs: 0,
        message: "Cannot send to line till",
      });
      double.send("exchange", { requestId: "4", callId: "4", service: "bank", line: "till", route: "/sale", phase: "written" });
      await page.locator('.exchange[data-level="now"]').waitFor();
      assert.deepEqual(await findingsOf(page), []);
      assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
      if (options.reducedMotion === "reduce") assert.equal(await page.evaluate("document.getAnimations().length"), 0);
      assert.deepEqual(complaints, []);
      await double.stop();
      await untilText(page, "#verdict-words", /can't be reached|nicht erreichbar/);
      assert.deepEqual(await findingsOf(page), []);
    } finally {
      await close();
      await double.stop();
    }
  });
}

test("page shows each terminal's state with what to do, what is in doubt by its contract, and the findings", {
  skip: noChromium,
}, async () => {
  const double = new StreamDouble();
  troubled(double);
  const { page, close } = await open(await double.start());
  try {
    await untilText(page, "#verdict-words", /^1 of 3 terminals not ready. 3 operations are in doubt.$/);
    const cards = (await page.locator(".terminal").allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
    assert.match(cards[0] ?? "", /bank Ready Last reply/);
    assert.match(cards[1] ?? "", /qr Not connected .*Check the cable.*no device \/dev\/ttyUSB7 posline doctor --line kiosk/);
    assert.match(cards[2] ?? "", /fiscal Probably ready/);
    const doubt = await textOf(page, ".doubt");
    assert.match(doubt, /bank \/sale .*Amount 1500 Key A-77 .*call \/check with the same pay_id/);
    assert.match(await textOf(page, "#doubts li:last-child"), /2 more .*posline journal --unknown/);
    assert.match(await textOf(page, "#findings"), /Line kiosk .*posline doctor --line kiosk .*only a call shows/);
  } finally {
    await close();
    await double.stop();
  }
});

test("page says first that the journal can't be written, and that what is in doubt is not known where it was never read", {
  skip: noChromium,
}, async () => {
  const state = "the disk is full: free some space (df -h /var/lib/posline)";
  const note = `the journal can't be written: requests are sent without a record: ${state}`;
  const unknown = { total: 0, newest: [] };
  const relaying = { ...wellStatus, notes: [note], journal: { state, onFailure: "relay", readable: true, unknown } };
  const double = new StreamDouble();
  double.status = relaying;
  const { page, close } = await open(await double.start());
  const levelOf = () => page.getAttribute("#verdict", "data-level");
  try {
    await untilText(page, "#verdict-words", /^The terminal is ready. The journal can't be written.$/);
    assert.equal(await levelOf(), "wait");
    assert.equal(await textOf(page, "#verdict-sign"), "!");
    assert.equal(await textOf(page, "#findings"), note, "once");
    assert.equal(await textOf(page, "#doubts"), "Nothing is in doubt.");
    assert.deepEqual(await findingsOf(page), []);

    double.status = { ...relaying, journal: { ...relaying.journal, readable: false } };
    await page.reload();
    await untilText(page, "#doubts", /^Not known: the journal has not been read since the start.$/);
    assert.equal(await page.locator("#doubts .fine").count(), 0);

    const reason = { what: "journal", state: "failing", reason: state, cure: "fix the disk" };
    double.status = { ...relaying, ready: false, reasons: [reason], notes: [] };
    await page.reload();
    await untilText(page, "#verdict-words", /^The terminal is ready. The journal can't be written. Payments are refused.$/);
    assert.equal(await levelOf(), "bad");
    assert.match(await textOf(page, "#findings"), /^Journal the disk is full.* fix the disk$/);

    const full = { what: "line", line: "till", state: "queue-full", reason: "64 calls are waiting", cure: "wait" };
    double.status = { ...wellStatus, ready: false, reasons: [full] };
    await page.reload();
    await untilText(page, "#verdict-words", /^The terminal is ready. Payments are refused.$/);
    assert.equal(await levelOf(), "bad");
  } finally {
    await close();
    await double.stop();
  }
});

test("page shows an exchange within 200 ms of its end, with where its time went", { skip: noChromium }, async (t) => {
  const emulated = posline(["serve", "--emulated"]);
  const [admin, bank] = [await emulated.port("admin"), await emulated.port("bank")];
  const { page, complaints, close } = await open(`http://127.0.0.1:${admin}/`);
  try {
    await untilText(page, "#verdict-words", /All terminals are ready/);
    // When the list first had this many that were answered, on the clock that this process has too.
    await page.evaluate(`
      globalThis.times = [];
      const list = document.querySelector("#exchanges");
      new MutationObserver(() => {
        const count = list.querySelectorAll('.exchange[data-level="good"]').length;
        times[count] ??= performance.timeOrigin + performance.now();
      }).observe(list, { subtree: true, childList: true, attributes: true, characterData: true });
    `);
    const took: number[] = [];
    for (let i = 1; i <= 15; i++) {
      assert.equal((await post(bank, "/sale", saleOf(`shown-${i}`))).status, 200);
      const answered = performance.timeOrigin + performance.now();
      await page
        .locator('.exchange[data-level="good"]')
        .nth(i - 1)
        .waitFor();
      took.push((await page.evaluate<number>(`times[${i}]`)) - answered);
    }
    took.sort((a, b) => a - b);
    const [median = Number.NaN, largest = Number.NaN] = [took[7], took.at(-1)];
    t.diagnostic(`from the till's answer to the screen: median ${median.toFixed(1)} ms, largest ${largest.toFixed(1)} ms`);
    assert.ok(median <= 200, `${median} ms`);
    assert.match(await textOf(page, ".exchange"), /bank \/sale answered .* ms/);
    assert.match((await page.locator(".exchange").first().getAttribute("title")) ?? "", /queue .*request .*terminal .*reply/);
    await untilText(page, "#counters div:first-child dd", /^15$/);
    assert.match(await textOf(page, "#curve-words"), /last 15 exchanges: usually [\d.]+ ms/);
    assert.deepEqual(complaints, []);
  } finally {
    await close();
    await emulated.ended("SIGTERM");
  }
});

test("page keeps 100 rows and takes no more memory after 10,000 exchanges", { skip: noChromium }, async (t) => {
  const double = new StreamDouble();
  const { page, complaints, close } = await open(await double.start());
  try {
    await untilText(page, "#verdict-words", /The terminal is ready/);
    const devtools = await page.context().newCDPSession(page);
    let sent = 0;
    const send = async (count: number) => {
      const due = sent + count;
      while (sent < due) {
        for (let i = 0; i < 50; i++)
          double.exchange(String(++sent), { outcome: "answered", queueMs: 0, lineMs: 5 + (sent % 7) });
        await new Promise((resolve) => setTimeout(resolve, 12));
      }
      double.exchange(`last-${sent}`, { outcome: "answered", code: -sent, lineMs: 5 });
      await untilText(page, ".exchange:first-child .outcome", new RegExp(`−${sent}$`), 30_000);
    };
    const used = async () => {
      for (let i = 0; i < 3; i++) await devtools.send("HeapProfiler.collectGarbage");
      const { usedSize } = await devtools.send("Runtime.getHeapUsage");
      const { nodes } = await devtools.send("Memory.getDOMCounters");
      return { usedSize, nodes };
    };
    await send(1_000);
    const before = await used();
    await send(10_000);
    let later = await used();
    const grownKib = () => (later.usedSize - before.usedSize) / 1024;
    // A busy machine's browser is behind with what it lets go of; what is kept stays.
    for (let look = 0; look < 20 && grownKib() >= 256; look++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      later = await used();
    }
    const kib = grownKib();
    t.diagnostic(
      `JS heap ${Math.round(before.usedSize / 1024)} KiB, ${kib.toFixed(0)} KiB more after 10,000; nodes ${before.nodes}, ${later.nodes}`,
    );
    assert.equal(await page.locator(".exchange").count(), 100);
    assert.ok(kib < 256, `${kib} KiB`);
    assert.ok(later.nodes <= before.nodes + 50, `${later.nodes} nodes after ${before.nodes}`);
    assert.deepEqual(complaints, []);
  } finally {
    await close();
    await double.stop();
  }
});

test("page says at once that posline is gone and since when, shows nothing as current, and goes on when it is back", {
  skip: noChromium,
}, async () => {
  const double = new StreamDouble();
  const { page, close } = await open(await double.start());
  try {
    await untilText(page, "#verdict-words", /The terminal is ready/);
    double.send("exchange", { requestId: "1", callId: "1", service: "bank", line: "till", route: "/sale", phase: "written" });
    await untilText(page, ".exchange", /the terminal works/);
    await untilText(page, ".terminal", /Working/);
    const began = performance.now();
    await double.stop();
    assert.match(await untilText(page, "#verdict-words", /can't be reached/), /Last news: \d+:\d+:\d+/);
    assert.ok(performance.now() - began < 2_000);
    assert.match(await textOf(page, ".terminal"), /Not known at \d+:\d+:\d+: Working/);
    assert.match(await textOf(page, ".exchange"), /end not seen/);
    assert.equal(await textOf(page, "#now-title"), "What happened last");
    // Another process: what was under way there has no end here.
    double.process = "b2";
    await double.start();
    await untilText(page, "#verdict-words", /The terminal is ready/);
    assert.match(await textOf(page, ".exchange"), /end not seen/);
    double.exchange("2");
    await untilText(page, ".exchange:first-child", /answered/);
  } finally {
    await close();
    await double.stop();
  }
});

test("page shows the status to the ninth who watches, and says that it can't show exchanges until another one leaves", {
  skip: noChromium,
}, async () => {
  const double = new StreamDouble();
  const url = await double.start();
  const leave = new AbortController();
  const watchers = Array.from({ length: 8 }, () => fetch(`${url}events`, { signal: leave.signal }));
  assert.ok((await Promise.all(watchers)).every(({ status }) => status === 200));
  const { page, close } = await open(url);
  try {
    await untilText(
      page,
      "#verdict-words",
      /^The terminal is ready. Exchanges are not shown: too many pages or programs watch/,
    );
    assert.equal(await page.getAttribute("#verdict", "data-level"), "wait");
    assert.match(await textOf(page, ".terminal"), /bank Ready/);
    assert.equal(await textOf(page, "#now-title"), "What happened last");
    assert.deepEqual(await findingsOf(page), []);
    double.status = { ...wellStatus, lines: { till: { ...wellStatus.lines.till, state: "down" } } };
    await untilText(page, "#verdict-words", /^The terminal is not ready. Exchanges are not shown/);
    double.status = wellStatus;
    leave.abort();
    await untilText(page, "#verdict-words", /^The terminal is ready.$/);
    double.exchange("1");
    await untilText(page, ".exchange", /answered/);
  } finally {
    leave.abort();
    await close();
    await double.stop();
  }
});

test("page keeps a sale of unknown outcome when another call has its request id, as calls of one trace do, and tills that count", {
  skip: noChromium,
}, async () => {
  const double = new StreamDouble();
  const { page, close } = await open(await double.start());
  try {
    await untilText(page, "#verdict-words", /The terminal is ready/);
    const requestId = "4bf92f3577b34da6a3ce929d0e0e4736";
    double.exchange("6fcc1715-1", { outcome: "unknown", reason: "no-reply", lineMs: 30_000 }, { requestId });
    const working = { requestId, callId: "6fcc1715-2", service: "bank", line: "till", route: "/sale", phase: "written" };
    double.send("exchange", working);
    double.exchange("6fcc1715-3", undefined, { requestId, route: "/check" });
    await untilText(page, ".exchange:first-child", /bank \/check\s*answered/);
    assert.match(await textOf(page, ".exchange:nth-child(2)"), /bank \/sale the terminal works/);
    assert.match(await textOf(page, ".exchange:nth-child(3)"), /bank \/sale in doubt/);
    assert.match(await textOf(page, ".terminal"), /Working/);
  } finally {
    await close();
    await double.stop();
  }
});

test("page asks once for a token, keeps it for the tab alone, and asks again when it is wrong", {
  skip: noChromium,
}, async () => {
  const double = new StreamDouble();
  double.token = "the-right-one";
  const { page, close } = await open(await double.start());
  try {
    await untilText(page, "#token-words", /^Enter the token/);
    await page.fill("#token", "the-wrong-one");
    await page.keyboard.press("Enter");
    await untilText(page, "#token-words", /not the right one/);
    assert.deepEqual(await findingsOf(page), []);
    // A dash that a word processor made of a hyphen: no header may have it.
    await page.fill("#token", "the\u2013right\u2013one");
    await page.keyboard.press("Enter");
    await page.locator("#token:focus:invalid").waitFor();
    await untilText(page, "#token-words", /not the right one/);
    await page.fill("#token", " the-right-one ");
    await page.keyboard.press("Enter");
    await untilText(page, "#verdict-words", /The terminal is ready/);
    double.exchange("1");
    await untilText(page, ".exchange", /answered/);
    assert.equal(await page.evaluate("sessionStorage.getItem('posline-token')"), "the-right-one");
    assert.equal(
      await page
        .evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
        .then((all) => /right/.test(String(all))),
      false,
    );
    await page.reload();
    await untilText(page, "#verdict-words", /The terminal is ready/);
  } finally {
    await close();
    await double.stop();
  }
});

test("page shows what others wrote as text, whatever it holds", { skip: noChromium }, async () => {
  const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  const double = new StreamDouble();
  double.status = {
    ...wellStatus,
    notes: [evil],
    journal: {
      state: evil,
      unknown: {
        total: 1,
        newest: [{ time: "x", requestId: "r", service: evil, route: evil, key: evil, amount: evil, cause: evil }],
      },
    },
  };
  const { page, complaints, close } = await open(await double.start());
  try {
    await untilText(page, ".doubt", /onerror/);
    double.send("exchange", {
      requestId: "1",
      callId: "1",
      service: evil,
      route: evil,
      phase: "ended",
      outcome: "unknown",
      reason: evil,
      message: evil,
    });
    await untilText(page, ".exchange", /onerror/);
    assert.equal(await page.title(), "posline");
    assert.equal(await page.locator("img, main script").count(), 0);
    assert.deepEqual(complaints, []);
  } finally {
    await close();
    await double.stop();
  }
});

test("page changes its language by the keyboard and remembers it", { skip: noChromium }, async () => {
  const double = new StreamDouble();
  const { page, close } = await open(await double.start(), { locale: "de-AT" });
  try {
    await untilText(page, "#verdict-words", /Das Terminal ist bereit/);
    double.exchange("1");
    await untilText(page, ".exchange", /beantwortet/);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.id"), "language");
    await page.selectOption("#language", "en");
    await untilText(page, "#verdict-words", /The terminal is ready/);
    assert.match(await textOf(page, ".exchange"), /answered/);
    assert.equal(await page.getAttribute("html", "lang"), "en");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.id"), "exchanges", "the list can be scrolled by the keyboard");
    await page.reload();
    await untilText(page, "#verdict-words", /The terminal is ready/);
  } finally {
    await close();
    await double.stop();
  }
});

test("page before a real bridge: a line without its device, and a sale that is lost, each shown when it happens", {
  skip: noChromium,
}, async () => {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => (text.includes("LOST") ? undefined : '{"status":"success"}')),
  );
  const [port = 0] = await freePorts(1);
  const bridge = new BridgeProcess(
    {
      lines: { till: { path: terminal.link } },
      services: { "bank-2": { contract: "bank", line: "till", port, replyTimeoutMs: { "/sale": 3_001 } } },
      journal: { folder: folder.path },
    },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  try {
    await bridge.state("till", "idle");
    const { page, complaints, close } = await open(`http://127.0.0.1:${await bridge.port("admin")}/`);
    await untilText(page, "#verdict-words", /The terminal is ready/);
    await untilText(page, "#doubts", /Nothing is in doubt/);
    await bridge.post("bank-2", "/sale", saleOf("LOST-1", 12_500));
    await untilText(page, ".doubt", /LOST-1/);
    assert.match(await textOf(page, ".doubt"), /bank-2 \/sale .*12500.*call \/check with the same pay_id/);
    await untilText(page, ".exchange", /in doubt: no reply came/);
    terminal.unplug();
    await untilText(page, ".terminal", /Not connected/);
    await untilText(page, "#findings", /posline doctor --line till/);
    assert.deepEqual(complaints, []);
    await close();
  } finally {
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
});

test("page shows a terminal as ready again once posline has asked it by itself how a sale ended", {
  skip: noChromium,
}, async () => {
  const folder = scratchFolder();
  const approved = '{"status":"success","data":{"status":"APPROVED","txn_id":"T-1"}}';
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => (text.startsWith("/check") ? approved : undefined)),
  );
  const [port = 0] = await freePorts(1);
  const bridge = new BridgeProcess(
    {
      lines: { till: { path: terminal.link } },
      services: { bank: { line: "till", port, replyTimeoutMs: { "/sale": 3_001 } } },
      journal: { folder: folder.path },
    },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  try {
    await bridge.state("till", "idle");
    const { page, close } = await open(`http://127.0.0.1:${await bridge.port("admin")}/`);
    await untilText(page, "#verdict-words", /The terminal is ready/);
    await bridge.post("bank", "/sale", saleOf("LOST-1"));
    await untilText(page, "#verdict-words", /in doubt/);
    await untilText(page, "#verdict-words", /^The terminal is ready.$/);
    assert.match(await untilText(page, ".exchange:first-child", /answered/), /bank \/check answered/);
    assert.equal(await page.locator('.exchange[data-level="now"]').count(), 0);
    assert.match(await textOf(page, ".terminal"), /bank Ready/);
    await close();
  } finally {
    await bridge.stop();
    terminal.unplug();
    folder.remove();
  }
});
