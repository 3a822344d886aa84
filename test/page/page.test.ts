import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import type { BrowserContextOptions } from "playwright-core";
import { endAll, post, resultOf, saleOf } from "../e2e/emulating.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { closeBrowser, findingsOf, proxyBelow, test, textOf, untilText } from "./browser.ts";
import { type StreamDouble, wellStatus } from "./stream-double.ts";

/**
 * The status page in a real browser without a window: before real poslines, and before a stand-in where a test decides what happens.
 *
 * Tests src/page/page.ts, src/page/admin-port.ts, src/page/exchanges.ts, src/page/terminals.ts, src/page/doubts.ts, src/page/emulator-controls.ts.
 */

after(async () => {
  await closeBrowser();
  await endAll();
});

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
  test(`page (${look}): axe-core finds nothing, nothing is wider than the screen, and the console stays empty`, async ({
    double,
    open,
  }) => {
    troubled(double);
    const { page, complaints } = await open(await double.start(), options);
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
  });
}

test("page shows each terminal's state with what to do, what is in doubt by its contract, and the findings", async ({
  double,
  open,
}) => {
  troubled(double);
  const { page } = await open(await double.start());
  await untilText(page, "#verdict-words", /^1 of 3 terminals not ready. 3 operations are in doubt.$/);
  const cards = (await page.locator(".terminal").allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
  assert.match(cards[0] ?? "", /bank Ready Last reply/);
  assert.match(cards[1] ?? "", /qr Not connected .*Check the cable.*no device \/dev\/ttyUSB7 posline doctor --line kiosk/);
  assert.match(cards[2] ?? "", /fiscal Probably ready/);
  const doubt = await textOf(page, ".doubt");
  assert.match(doubt, /bank \/sale .*Amount 1500 minor units Key A-77 .*call \/check with the same pay_id/);
  assert.match(await textOf(page, "#doubts li:last-child"), /2 more .*posline journal --unknown/);
  assert.match(await textOf(page, "#findings"), /Line kiosk .*posline doctor --line kiosk .*only a call shows/);
});

test("page says first that the journal can't be written, and that what is in doubt is not known where it was never read", async ({
  double,
  open,
}) => {
  const state = "the disk is full: free some space (df -h /var/lib/posline)";
  const note = `the journal can't be written: requests are sent without a record: ${state}`;
  const unknown = { total: 0, newest: [] };
  const relaying = { ...wellStatus, notes: [note], journal: { state, onFailure: "relay", readable: true, unknown } };
  double.status = relaying;
  const { page } = await open(await double.start());
  const levelOf = () => page.getAttribute("#verdict", "data-level");
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
});

test("page shows an exchange within 200 ms of its end, with where its time went", async ({ open, posline }, t) => {
  const emulated = posline(["serve", "--emulated"]);
  const [admin, bank] = [await emulated.port("admin"), await emulated.port("bank")];
  const { page, complaints } = await open(`http://127.0.0.1:${admin}/`);
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
});

test("page takes what it is told of the time before it came for as old as it is", async ({ double, open }) => {
  const named = (callId: string) => ({ requestId: callId, callId, service: "bank", line: "till", route: "/sale" });
  double.kept = [
    { agoMs: 3_600_000, data: { ...named("1"), phase: "ended", outcome: "answered", queueMs: 0, lineMs: 5 } },
    { agoMs: 50_000, data: { ...named("2"), phase: "sent" } },
    { agoMs: 49_990, data: { ...named("2"), phase: "written" } },
  ];
  const bank = { ...wellStatus.services.bank, heard: { state: "heard", agoMs: 3_600_000 } };
  double.status = { ...wellStatus, services: { bank } };
  const { page } = await open(await double.start());
  await untilText(page, ".terminal", /Working\s*Last reply 60 min ago/);
  assert.match(await textOf(page, ".exchange:first-child"), /bank \/sale the terminal works 5\d s/);
  double.exchange("3");
  await untilText(page, ".terminal", /Last reply just now/);
});

test("page keeps 10,000 exchanges and no more, and finds a key among them within 100 ms", async ({ double, open }, t) => {
  const { page, complaints } = await open(await double.start());
  await untilText(page, "#verdict-words", /The terminal is ready/);
  const devtools = await page.context().newCDPSession(page);
  let sent = 0;
  const send = async (count: number) => {
    const due = sent + count;
    while (sent < due) {
      for (let i = 0; i < 50; i++) double.exchange(String(++sent), { outcome: "answered", queueMs: 0, lineMs: 5 + (sent % 7) });
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
  await send(10_000);
  const before = await used();
  await send(5_000);
  let later = await used();
  const grownKib = () => (later.usedSize - before.usedSize) / 1024;
  // A busy machine's browser is behind with what it lets go of; what is kept stays.
  for (let look = 0; look < 20 && grownKib() >= 256; look++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    later = await used();
  }
  const kib = grownKib();
  t.diagnostic(
    `JS heap ${Math.round(before.usedSize / 1024)} KiB, ${kib.toFixed(0)} KiB more after 5,000 more; nodes ${before.nodes}, ${later.nodes}`,
  );
  assert.equal(await page.locator(".exchange").count(), 100);
  assert.ok(kib < 256, `${kib} KiB`);
  assert.ok(later.nodes <= before.nodes + 50, `${later.nodes} nodes after ${before.nodes}`);
  const took: number[] = [];
  // 15,002 came, so these are the newest, one in the middle, and the oldest that is kept.
  for (const key of ["pay-15000", "PAY-9999", "pay-5003"]) {
    took.push(await page.evaluate<number>(finding(key)));
    assert.deepEqual(await page.locator(".exchange .key").allInnerTexts(), [key.toLowerCase()]);
  }
  t.diagnostic(`a key was found in ${took.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  const [, median = Number.NaN] = took.toSorted((a, b) => a - b);
  assert.ok(median <= 100, `${took}`);
  await page.evaluate(finding("pay-5002"));
  assert.equal(await textOf(page, "#exchanges-none"), "No key among the last 10,000 exchanges has this in it.");
  await page.evaluate(finding(""));
  assert.equal(await page.locator(".exchange").count(), 100);
  assert.deepEqual(complaints, []);
});

/** Types a key, and says how long it takes until the list is laid out. */
const finding = (key: string) => `(() => {
  const field = document.querySelector("#find");
  const began = performance.now();
  field.value = "${key}";
  field.dispatchEvent(new Event("input"));
  document.body.offsetHeight;
  return performance.now() - began;
})()`;

test("page says of each exchange its key, its money by the currency's decimals, and its result's word, once that is known", async ({
  double,
  open,
}) => {
  const { page } = await open(await double.start());
  let rows = 0;
  const moneyOf = async (amount: string | undefined, currency?: string) => {
    double.exchange(`${amount} ${currency}`, undefined, { key: "A", amount, currency });
    await page.locator(".exchange").nth(rows++).waitFor();
    return textOf(page, ".exchange:first-child .amount");
  };
  await untilText(page, "#verdict-words", /The terminal is ready/);
  assert.equal(await moneyOf("123456", "EUR"), "1,234.56 EUR");
  assert.equal(await moneyOf("1500", "JPY"), "1,500 JPY");
  assert.equal(await moneyOf("1500", "KWD"), "1.500 KWD");
  assert.equal(await moneyOf("1500", "ZZZ"), "1500 minor units ZZZ");
  assert.equal(await moneyOf("7"), "7 minor units");
  assert.equal(await moneyOf("411111******1111", "EUR"), "411111******1111 minor units EUR");
  assert.equal(await moneyOf(undefined), "");
  await page.selectOption("#language", "de");
  await untilText(page, ".exchange:last-child .amount", /^1.234,56 EUR$/);
  await page.selectOption("#language", "en");

  const answered = { outcome: "answered", status: "success", lineMs: 8 };
  double.exchange("1", { ...answered, result: "approved" }, { key: "A-1" });
  await untilText(page, ".exchange:first-child", /^✓.*bank \/sale\s*approved\s*pay-1/s);
  double.exchange("2", { ...answered, status: "error", code: -20, result: "declined" });
  await untilText(page, ".exchange:first-child", /^–.*declined: error −20/s);
  double.exchange("3", { outcome: "unknown", reason: "no-reply", lineMs: 8 });
  await untilText(page, ".exchange:first-child", /^!.*in doubt: no reply came/s);
  double.send("operation", { callId: "3", service: "bank", route: "/sale", state: "settled", result: "failed" });
  await untilText(page, ".exchange:first-child", /^–.*failed/s);
  // Its failure is taken back: the terminal has it after all.
  double.send("operation", { callId: "3", service: "bank", route: "/sale", state: "unknown", cause: "reported as unknown" });
  await untilText(page, ".exchange:first-child", /^!.*in doubt/s);
  double.send("operation", { callId: "3", service: "bank", route: "/sale", state: "settled", result: "approved" });
  await untilText(page, ".exchange:first-child", /^✓.*approved/s);
  double.exchange("4", { ...answered, result: "unheard of" });
  await untilText(page, ".exchange:first-child", /^✓.*answered/s);
  double.exchange("5", { outcome: "not-sent", reason: "queue-full", result: "unknown" });
  await untilText(page, ".exchange:first-child", /^!.*in doubt/s);
  double.exchange("6", { outcome: "not-sent", reason: "queue-full", result: "failed" });
  await untilText(page, ".exchange:first-child", /^–.*not sent: too many requests waited/s);
});

test("page's row opens by the keyboard with what is known of its exchange, and stays open and focused while others come", async ({
  double,
  open,
}) => {
  const { page } = await open(await double.start());
  await untilText(page, "#verdict-words", /The terminal is ready/);
  const unknown = { outcome: "unknown", reason: "no-reply", lineMs: 30_000, httpStatus: 504, queueMs: 0.1 };
  double.exchange("1", unknown, { requestId: "r-1" });
  await page.locator(".exchange .what").focus();
  await page.keyboard.press("Enter");
  const facts = await textOf(page, ".exchange .facts");
  assert.match(
    facts,
    /Request id r-1 Came .* Ended .* Times queue 0.1 ms.* Outcome in doubt, HTTP 504 posline asked .* not yet$/,
  );
  const asking = { background: true, about: "1", route: "/check", key: undefined };
  double.exchange("r-1.1", { outcome: "answered", status: "error", code: -3, key: undefined }, asking);
  double.exchange("r-1.2", { outcome: "answered", status: "success", key: undefined }, asking);
  double.exchange("2");
  await untilText(
    page,
    ".exchange:nth-child(4) .facts",
    /asked the terminal.*\/check answered: error −3\n.*\/check answered$/s,
  );
  assert.equal(await page.locator(".facts:visible").count(), 1);
  assert.equal(
    await page.evaluate("document.activeElement.closest('.exchange') === document.querySelector('.exchange:nth-child(4)')"),
    true,
  );
  assert.deepEqual(await findingsOf(page), []);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".facts:visible").count(), 0);
  assert.equal(await page.getAttribute(".exchange:nth-child(4) .what", "aria-expanded"), "false");
});

test("page's Test button asks each terminal, and says how fast it answered and what it offers", async ({ open, posline }) => {
  const emulated = posline(["serve", "--emulated"]);
  const { page, complaints } = await open(`http://127.0.0.1:${await emulated.port("admin")}/`);
  await untilText(page, "#verdict-words", /All terminals are ready/);
  for (const [service, offered] of [
    ["fiscal", /^Answered in [\d.]+ m?s. It offers: .*check_status/],
    ["bank", /^Answered in [\d.]+ m?s. It offers: .*\bsale\b/],
    ["qr", /^Answered in [\d.]+ m?s. It offers: .*showqrcode/],
  ] as const) {
    const card = `.terminal:has(h3:text-is("${service}"))`;
    await page.locator(`${card} button`).first().click();
    await untilText(page, `${card} .words`, offered);
    assert.equal(await page.locator(`${card} button:visible`).count(), service === "bank" ? 2 : 1);
  }
  assert.deepEqual(await findingsOf(page), []);
  await page.selectOption("#language", "de");
  await untilText(page, ".terminal .words", /^Antwort nach/);
  assert.deepEqual(complaints, []);
});

test("page sells for a test only once the amount is confirmed, and shows each step until it is given back, or in doubt", async ({
  open,
  posline,
}) => {
  const emulated = posline(["serve", "--emulated"]);
  const admin = await emulated.port("admin");
  const { page, complaints } = await open(`http://127.0.0.1:${admin}/`);
  const card = '.terminal:has(h3:text-is("bank"))';
  await untilText(page, "#verdict-words", /All terminals are ready/);
  await page.locator(`${card} button`).nth(1).click();
  await page.fill("#sale-currency", "eur");
  assert.equal(await textOf(page, "#sale-yes"), "Charge 0.01 EUR");
  assert.match(await textOf(page, "#sale-words"), /^The card at bank is charged once/);
  assert.deepEqual(await findingsOf(page), []);
  await page.locator("#sale-no").click();
  await page.locator(`${card} button`).nth(1).click();
  await page.fill("#sale-currency", "eu");
  await page.locator("#sale-yes").click();
  await page.locator("#sale-currency:focus:invalid").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".exchange").count(), 0, "nothing was sold");

  await page.locator(`${card} button`).nth(1).click();
  await page.fill("#sale-amount", "250");
  await page.fill("#sale-currency", "EUR");
  assert.equal(await textOf(page, "#sale-yes"), "Charge 2.50 EUR");
  await page.keyboard.press("Enter");
  await untilText(page, `${card} .words`, /^2.50 EUR: approved, and given back/, 30_000);
  assert.match(
    await textOf(page, `${card} ol`),
    /\/sale is sent [0-9A-Z]{26}.*\/sale has ended.*\/cancel is sent [0-9A-Z]{26}.*\/cancel has ended/,
  );
  assert.equal(await page.locator('.exchange:has-text("/sale")').count(), 1);
  assert.equal(await page.locator('.exchange:has-text("/cancel")').count(), 1);
  assert.match(await textOf(page, '.exchange:has-text("/sale")'), /approved\s*[0-9A-Z]{26}\s*2.50 EUR/);
  assert.deepEqual(await findingsOf(page), []);
  await page.reload();
  await untilText(page, `${card} .words`, /^2.50 EUR: approved, and given back/);
  await page.locator(`${card} button`).first().click();
  await untilText(page, `${card} .words`, /^Answered/);
  assert.deepEqual(complaints, []);
});

test("page says of a test that it failed and why, of a test sale in doubt that nothing was given back, and has no tests without /test", async ({
  double,
  open,
}) => {
  const { page } = await open(await double.start());
  await untilText(page, "#verdict-words", /The terminal is ready/);
  assert.equal(await page.locator(".test:visible").count(), 0);
  await double.stop();
  const step = { time: new Date().toISOString(), route: "/sale", key: "K-1", type: "sent" };
  const message = "No answer. Look at the terminal and its report before anything else";
  double.tests = { sales: { bank: { amount: 1, currency: "EUR", steps: [step], end: "in-doubt", message } } };
  double.tested = { service: "bank", outcome: "not-sent", error: "the line is down: plug it in" };
  await double.start();
  await untilText(page, ".test .words", /^0.01 EUR: in doubt, and nothing was given back. No answer. Look at the terminal/);
  assert.equal(await page.getAttribute(".test .words", "data-level"), "bad");
  await page.locator(".test button").first().click();
  await untilText(page, ".test .words", /^the line is down: plug it in$/);
  assert.equal(await page.getAttribute(".test .words", "data-level"), "bad");
});

test("page works below a path of a proxy, with and without the slash, and controls the emulator from there", async ({
  open,
  posline,
}) => {
  const emulated = posline(["serve", "--emulated"]);
  const [admin, bank] = [await emulated.port("admin"), await emulated.port("bank")];
  const proxy = await proxyBelow("/shop/posline", admin);
  for (const address of [proxy.url, `${proxy.url}/`]) {
    const { page, complaints } = await open(address);
    await untilText(page, "#verdict-words", /All terminals are ready/);
    await page.selectOption("#emulator-effect", "outcome declined");
    await page.selectOption("#emulator-service", "bank");
    await page.locator("#emulator-form button").press("Enter");
    await untilText(page, "#emulator-pending", /bank : ?is declined|bank: is declined/);
    await post(bank, "/sale", saleOf(`below-${address.length}`));
    await untilText(page, ".exchange", /bank \/sale/);
    assert.deepEqual(complaints, []);
  }
  await proxy.close();
});

test("page has the emulator's next operation go wrong at a service of a name of its own", async ({ open, posline }) => {
  const folder = scratchFolder();
  const [port = 0, barPort = 0, admin = 0] = await freePorts(3);
  const file = join(folder.path, "posline.json");
  const lines = { desk: { path: "/dev/ttyDESK", baudRate: 115_200 }, bar: { path: "/dev/ttyBAR", baudRate: 115_200 } };
  const services = { "bank-desk": { line: "desk", port }, "bank-bar": { line: "bar", port: barPort } };
  const named = Object.entries(services).map(([name, service]) => [name, { contract: "bank", ...service }]);
  writeFileSync(file, JSON.stringify({ lines, services: Object.fromEntries(named), admin: { port: admin } }));
  const asConfigured = Object.fromEntries(["FISCAL", "BANK", "QR", "ADMIN"].map((each) => [`POSLINE_${each}_PORT`, undefined]));
  const emulated = posline(["serve", "--emulated", "--config", file], asConfigured);
  await emulated.port("admin");
  const { page, complaints } = await open(`http://127.0.0.1:${admin}/`);
  await untilText(page, "#verdict-words", /All terminals are ready/);
  const offered = await page.locator("#emulator-service option").evaluateAll((all) => all.map((each) => each.textContent));
  assert.deepEqual(offered, ["bank-desk", "bank-bar"]);
  await page.selectOption("#emulator-service", "bank-bar");
  await page.selectOption("#emulator-effect", "outcome declined");
  await page.locator("#emulator-form button").press("Enter");
  await untilText(page, "#emulator-answer", /^Set\.$/);
  await post(barPort, "/sale", saleOf("BAR-1"));
  assert.match(await resultOf(barPort, "BAR-1"), /"code":-20/);
  assert.deepEqual(complaints, []);
});

test("page offers only what the emulator's control takes, a day later and a fresh start", async ({ open, posline }) => {
  const emulated = posline(["emulate", "--admin-port", "0"]);
  const { page, complaints } = await open(`http://127.0.0.1:${await emulated.port("admin")}/`);
  await untilText(page, "#verdict-words", /The emulator runs/);
  assert.equal(await page.locator("#terminals-section").isVisible(), false);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
  assert.deepEqual(await findingsOf(page), []);
  const effects = await page
    .locator("#emulator-effect option")
    .evaluateAll((all) => all.map((each) => each.getAttribute("value") ?? ""));
  assert.ok(effects.length >= 10);
  for (const [index, effect] of effects.entries()) {
    await page.selectOption("#emulator-effect", effect);
    await page.locator("#emulator-form button").click();
    await page.locator("#emulator-pending li").nth(index).waitFor();
    // The list comes over the stream, the answer to the click by itself.
    await untilText(page, "#emulator-answer", /^Set\.$/);
  }
  assert.doesNotMatch(await textOf(page, "#emulator-pending"), /[a-z]-[a-z]|:\d/, "each effect has words of its own");
  const clock = await textOf(page, "#emulator-clock");
  await page.locator("#emulator-day").click();
  await untilText(page, "#emulator-answer", /a day ahead/);
  assert.notEqual(await textOf(page, "#emulator-clock"), clock);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.locator("#emulator-reset").click();
  await untilText(page, "#emulator-pending", /^\s*Nothing\s*$/);
  assert.deepEqual(complaints, []);
});

test("page says at once that posline is gone and since when, shows nothing as current, and goes on when it is back", async ({
  double,
  open,
}) => {
  const { page } = await open(await double.start());
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
});

test("page shows what the posline has that is there now, with an emulator or without, and that no money moves with one", async ({
  double,
  open,
  posline,
}) => {
  const [port = 0] = await freePorts(1);
  const alone = posline(["emulate", "--admin-port", String(port)]);
  await alone.port("admin");
  double.port = port;
  const { page } = await open(`http://127.0.0.1:${port}/`);
  const next = async (process: string, emulator: object | undefined) => {
    await double.stop();
    await untilText(page, "#verdict-words", /can't be reached/, 25_000);
    double.process = process;
    double.emulator = emulator;
    await double.start();
    await untilText(page, "#verdict-words", /^The terminal is ready.$/);
  };
  await untilText(page, "#verdict-words", /^The emulator runs.$/);
  await alone.ended("SIGTERM");
  await next("a1", undefined);
  assert.equal(await page.locator("#emulator").isVisible(), false);
  await next("b2", { now: "2026-11-20T10:00:00.000Z", forced: [], chances: {} });
  await untilText(page, "#emulator", /No money moves/);
  await next("c3", undefined);
  assert.equal(await page.locator("#emulator").isVisible(), false);
});

test("page shows the status to the ninth who watches, and says that it can't show exchanges until another one leaves", async ({
  double,
  open,
}) => {
  const url = await double.start();
  const leave = new AbortController();
  const watchers = Array.from({ length: 8 }, () => fetch(`${url}events`, { signal: leave.signal }));
  assert.ok((await Promise.all(watchers)).every(({ status }) => status === 200));
  const { page } = await open(url);
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
  }
});

test("page keeps a sale of unknown outcome when another call has its request id, as calls of one trace do, and tills that count", async ({
  double,
  open,
}) => {
  const { page } = await open(await double.start());
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
});

test("page asks once for a token, keeps it for the tab alone, and asks again when it is wrong", async ({ double, open }) => {
  double.token = "the-right-one";
  const { page } = await open(await double.start());
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
});

test("page shows the status where a user and a password stand in its address", async ({ double, open }) => {
  const { page, complaints } = await open((await double.start()).replace("//", "//user:password@"));
  await untilText(page, "#verdict-words", /The terminal is ready/);
  double.exchange("1");
  await untilText(page, ".exchange", /answered/);
  assert.deepEqual(complaints, []);
});

test("page shows what others wrote as text, whatever it holds", async ({ double, open }) => {
  const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
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
  const { page, complaints } = await open(await double.start());
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
});

test("page changes its language by the keyboard and remembers it", async ({ double, open }) => {
  const { page } = await open(await double.start(), { locale: "de-AT" });
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
  assert.equal(await page.evaluate("document.activeElement.id"), "find");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.id"), "exchanges", "the list can be scrolled by the keyboard");
  await page.reload();
  await untilText(page, "#verdict-words", /The terminal is ready/);
});

test("page before a real bridge: a line without its device, and a sale that is lost, each shown when it happens", async ({
  open,
}) => {
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
    const { page, complaints } = await open(`http://127.0.0.1:${await bridge.port("admin")}/`);
    await untilText(page, "#verdict-words", /The terminal is ready/);
    await untilText(page, "#doubts", /Nothing is in doubt/);
    await bridge.post("bank-2", "/sale", saleOf("LOST-1", 12_500));
    await untilText(page, ".doubt", /LOST-1/);
    assert.match(await textOf(page, ".doubt"), /bank-2 \/sale .*125.00 EUR.*call \/check with the same pay_id/);
    await untilText(page, ".exchange", /in doubt: no reply came/);
    terminal.unplug();
    await untilText(page, ".terminal", /Not connected/);
    await untilText(page, "#findings", /posline doctor --line till/);
    assert.deepEqual(complaints, []);
  } finally {
    await bridge.stop();
    terminal.unplug();
  }
});

test("page shows a terminal as ready again once posline has asked it by itself how a sale ended", async ({ open }) => {
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
    const { page } = await open(`http://127.0.0.1:${await bridge.port("admin")}/`);
    await untilText(page, "#verdict-words", /The terminal is ready/);
    await bridge.post("bank", "/sale", saleOf("LOST-1"));
    await untilText(page, "#verdict-words", /in doubt/);
    await untilText(page, "#verdict-words", /^The terminal is ready.$/);
    assert.match(await untilText(page, ".exchange:first-child", /answered/), /bank \/check answered/);
    assert.equal(await page.locator('.exchange[data-level="now"]').count(), 0);
    assert.match(await textOf(page, ".terminal"), /bank Ready/);
    await untilText(page, ".exchange:last-child", /bank \/sale\s*approved\s*LOST-1\s*15.00 EUR/);
    await page.locator(".exchange:last-child .what").click();
    assert.match(
      await textOf(page, ".exchange:last-child .facts"),
      /Outcome in doubt, HTTP 504 Result approved posline asked .*\/check answered$/,
    );
  } finally {
    await bridge.stop();
    terminal.unplug();
  }
});
