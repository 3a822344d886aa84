import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { neededServices } from "../../src/lab/rehearse/scenario.ts";
import { scenarios } from "../../src/lab/rehearse/scenarios.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { programs, type ReadyTill, type RunningTill, type TillEnd, type TillProgram } from "./till-programs.ts";

/**
 * The example tills of docs/tills. `posline rehearse` judges the first in scenarios of each kind and the others in those that look different
 * to a till, or each in all of them with `REHEARSE=all`; what an answer says is tried with answers that are given.
 */

/** What a till sees differently: a lost answer, a lost posline, its own end, its twin, a fault that is no status, a number beyond 2^53. */
const quick = ["no-answer-carried-out", "posline-killed", "till-killed", "twice-at-once", "fault-status-200", "huge-amount"];
/** What each till meets in other ways here. To a page nobody else says it. */
const plain = ["declined", "key-reused"];
/** What looks to a till as one of these: it is posline that has to tell them apart. */
const alike = ["approved", "late-answer", "cable-out", "connection-cut", "new-day"];

const isAll = process.env["REHEARSE"] === "all";

/** Scenarios of bank in which a till is asked for more than a sale: these can only sell. */
const beyondSales = scenarios
  .filter((each) => each.lasts !== "minutes" && neededServices(each).every((service) => service === "bank"))
  .filter(({ steps }) => steps.some((step) => typeof step !== "number" && step.deed !== "sale"))
  .map(({ name }) => name)
  .sort();

function scenariosOf({ file }: TillProgram): readonly string[] {
  if (isAll) return ["--services", "bank"];
  const names = [...quick, ...(file === "till.sh" ? [...plain, ...alike] : file === "till.html" ? plain : [])];
  return names.flatMap((name) => ["--scenario", name]);
}

/** A till with a port that is its own. */
type Stand = { readonly till: ReadyTill; readonly port: number };

test("each till of docs/tills does right whatever goes wrong", { concurrency: 3 }, async (t) => {
  const folder = scratchFolder();
  const emulated = new PoslineProcess(["serve", "--emulated"]);
  t.after(() => emulated.ended("SIGTERM"));
  const port = await emulated.port("bank");
  const each = (program: TillProgram) =>
    t.test(program.file, { skip: program.skip }, async (context) => {
      const stand = await standOf(program, folder.path);
      try {
        await refusedOnce(stand);
        await toldUsage(stand);
        await soldInAnyLetters(stand);
        await soldOnceItCanBe(stand);
        await stoppedUnguarded(stand);
        await soldToEmulated(stand, port);
        await rehearsed(context, stand, program);
      } finally {
        await stand.till.end();
      }
    });
  await Promise.all(programs.map(each));
});

async function standOf({ file, ready }: TillProgram, folder: string): Promise<Stand> {
  const own = join(folder, file, "own");
  mkdirSync(own, { recursive: true });
  const [port = 0] = await freePorts(1);
  return { till: await ready(own, port), port };
}

/** What it isn't asked for, or never does, isn't tested; nothing failed. */
async function rehearsed(context: TestContext, { till }: Stand, program: TillProgram): Promise<void> {
  const all = await rehearse(till, scenariosOf(program));
  // A busy machine may be late for a cable that is out for seconds.
  const late = isAll ? [] : all.untested;
  const { posline, code, untested } =
    late.length === 0
      ? all
      : await rehearse(
          till,
          late.flatMap((name) => ["--scenario", name]),
        );
  assert.equal(code, isAll ? 75 : 0, `${posline.stdout}${posline.stderr}`);
  assert.deepEqual(untested, isAll ? beyondSales : []);
  context.diagnostic(posline.stdout.trimEnd().split("\n").at(-1) ?? "");
}

async function rehearse(till: ReadyTill, scenarios: readonly string[]) {
  const origins = till.origin === undefined ? [] : ["--origin", till.origin];
  const posline = new PoslineProcess(["rehearse", "--till", till.command, "--jobs", "3", ...scenarios, ...origins]);
  const code = await posline.ended(undefined, 420_000);
  assert.ok(code === 0 || code === 75, `${posline.stdout}${posline.stderr}`);
  const untested = [...posline.stdout.matchAll(/^not tested +(\S+)/gm)].map(([, name = ""]) => name).sort();
  return { posline, code, untested };
}

/** What no repetition can help ends at once, with the reason. */
async function refusedOnce(stand: Stand): Promise<void> {
  const body = Buffer.from('{"status":"error","message":"the header X-API-Key is missing"}');
  const { printed, complaint, code, calls } = await soldTo(stand, [{ status: 401, headers: {}, body }]);
  assert.deepEqual([printed, code, calls], ["", 2, 1]);
  assert.match(complaint, /401[\s\S]*the header X-API-Key is missing/);
}

type Answer = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body?: Buffer };

/** How a till ends whose calls get these answers, the last one again and again, and how many calls it made. */
async function soldTo(
  { till, port }: Stand,
  answers: readonly Answer[],
  start = (): RunningTill => till.start({ key: "A-stub", amount: 100 }),
): Promise<TillEnd & { readonly calls: number }> {
  const page = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "*",
    "Access-Control-Allow-Headers": "*",
  };
  let calls = 0;
  const service = createServer((request, response) => {
    if (request.method === "OPTIONS") return response.writeHead(204, page).end();
    const { status, headers, body = Buffer.from('{"status":"error"}') } = answers[calls++] ?? answers.at(-1) ?? never();
    return request.resume().on("end", () => response.writeHead(status, { ...page, ...headers }).end(body));
  }).listen(port, "127.0.0.1");
  await once(service, "listening");
  try {
    return { ...(await start().ended), calls };
  } finally {
    service.closeAllConnections();
    service.close();
    await once(service, "close");
  }
}

function never(): never {
  throw new Error("Cannot answer: no answer was given");
}

const said = (status: number, word: string, more: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers: { "X-Posline-Result": word, ...more },
});

const off = { "X-Posline-Repeat-Guard": "off" };

/** A terminal's texts are relayed byte for byte, in whatever letters they are: the word decides. */
async function soldInAnyLetters(stand: Stand): Promise<void> {
  // "При" as a terminal writes it in windows-1251.
  const body = Buffer.from('{"message":"\xcf\xf0\xe8"}', "latin1");
  const { printed, complaint, code } = await soldTo(stand, [{ ...said(200, "approved"), body }]);
  assert.deepEqual([printed, code], ["approved", 0], complaint);
}

/** Beside a 503 `failed` says that nothing was sent yet; elsewhere it is an end. */
async function soldOnceItCanBe(stand: Stand): Promise<void> {
  const unsent = said(503, "failed", { "Retry-After": "1" });
  const { printed, complaint, code, calls } = await soldTo(stand, [unsent, unsent, said(200, "approved")]);
  assert.deepEqual([printed, code, calls], ["approved", 0, 3], complaint);
  for (const status of [200, 502]) {
    const end = await soldTo(stand, [said(status, "failed"), said(200, "approved")]);
    assert.deepEqual([end.printed, end.code, end.calls], ["failed", 1, 1], end.complaint);
  }
}

/** Where no journal knows the call, nothing is sent again while its end isn't known; an end is one all the same. */
async function stoppedUnguarded(stand: Stand): Promise<void> {
  for (const word of ["unknown", "pending"]) {
    const { printed, complaint, code, calls } = await soldTo(stand, [said(502, word, off), said(200, "approved", off)]);
    assert.deepEqual([printed, code, calls], ["", stand.till.origin === undefined ? 3 : 2, 1], complaint);
    assert.equal(complaint, `${word}, and no journal: look at the terminal, and do not sell again before`);
  }
  const { printed, code } = await soldTo(stand, [
    said(503, "failed", { ...off, "Retry-After": "1" }),
    said(200, "approved", off),
  ]);
  assert.deepEqual([printed, code], ["approved", 0]);
}

/** What its developer tries first: the emulated bridge, whose journal knows a sale that is sent again. */
async function soldToEmulated({ till }: Stand, port: number): Promise<void> {
  // A page's origin would have to be in the configuration, and there is none.
  if (till.origin !== undefined) return;
  const key = `E-${port}-${performance.now()}`;
  const sell = (amount: number, of = key) => till.startWith([of, String(amount), `http://localhost:${port}`]).ended;
  for (const _ of ["first", "again"]) {
    const { printed, complaint, code } = await sell(1500);
    assert.deepEqual([printed, code], ["approved", 0], complaint);
    assert.match(complaint, /"status":"APPROVED"/);
  }
  assert.equal((await sell(1600)).code, 2, "the key has another amount");
  const declined = await sell(1520, `${key}-declined`);
  assert.deepEqual([declined.printed, declined.code], ["declined", 1], declined.complaint);
}

/** What is no sale is not sent, and ends with the usage. */
async function toldUsage(stand: Stand): Promise<void> {
  const { till } = stand;
  for (const words of [[], ["A-usage"], ["A-usage", "15.00"], ["A-usage", "many"]]) {
    const { printed, complaint, code, calls } = await soldTo(stand, [said(200, "approved")], () => till.startWith(words));
    // A page has no exit code.
    assert.deepEqual([printed, code, calls], ["", till.origin === undefined ? 64 : 2, 0], `${words.join(" ")}: ${complaint}`);
    assert.match(complaint, /^Usage: .*A-1\b.*1500$/);
  }
}
