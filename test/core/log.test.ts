import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { blockFor } from "../../src/core/clock.ts";
import { type LineFields, type Log, openLog, type ProcessFields } from "../../src/core/log.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { evil, obeyed } from "../support/evil-text.ts";
import { record, textOf, written } from "./written.ts";

test("Log.exchange() writes a line with exactly the fields that may be logged", () => {
  const [line] = written("info", (log) => log.exchange(record));
  assert.match(String(line?.["time"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  delete line?.["time"];
  assert.deepEqual(line, {
    level: "info",
    requestId: "r-1",
    service: "bank",
    route: "/sale",
    key: "A-1",
    outcome: "answered",
    httpStatus: 200,
    status: "success",
    code: 0,
    queueMs: 1.23,
    lineMs: 12.35,
    requestBytes: 10,
    replyBytes: 20,
    msg: "exchange",
  });
});

test("Log.exchange() says that the caller left, and why it failed", () => {
  const [line] = written("info", (log) => log.exchange({ ...record, left: true, message: "Cannot do it: a test" }));
  assert.equal(line?.["left"], true);
  assert.equal(line?.["message"], "Cannot do it: a test");
});

test("Log writes only what is listed, whatever is passed beside it", () => {
  const secrets = {
    body: "SECRET-BODY",
    payload: ["SECRET-PAYLOAD"],
    data: { card_num: "4111111111111111" },
    apiKey: "SECRET-KEY",
    merchantId: "SECRET-MERCHANT",
    headers: { "x-api-key": "SECRET-KEY" },
    err: new Error("SECRET-ERROR"),
    toJSON: undefined,
  };
  // The types forbid these fields; a mistake that gets around them must not reach the output.
  const line = { ...secrets, line: "till", reason: "r" } as LineFields;
  const process = { ...secrets, service: "bank", port: 1 } as ProcessFields;
  const lines = written("info", (log) => {
    log.exchange({ ...secrets, ...record });
    log.line("warn", "w", line);
    log.process("error", "p", process);
  });
  const text = JSON.stringify(lines);
  assert.ok(!text.includes("SECRET"), text);
  assert.ok(!text.includes("4111111111111111"));
  assert.deepEqual(Object.keys(lines[1] ?? {}), ["level", "time", "line", "reason", "msg"]);
  assert.deepEqual(Object.keys(lines[2] ?? {}), ["level", "time", "service", "port", "msg"]);
});

test("Log.exchange() shows no card number that came as an id, a status or a code", () => {
  const pan = "4111111111111111";
  const [line] = written("info", (log) =>
    log.exchange({ ...record, requestId: pan, key: `PAY-${pan}`, status: pan, code: Number(pan) }),
  );
  assert.equal(line?.["requestId"], "411111******1111");
  assert.equal(line?.["key"], "PAY-411111******1111");
  assert.equal(line?.["status"], "?");
  assert.ok(!("code" in (line ?? {})));
  assert.ok(!JSON.stringify(line).includes(pan));
});

test("Log.line() shows no card number among the first bytes of a discard, and what else tells where they come from", () => {
  const heads = ["4111111111111111", '"411111111111111', "4111 1111 1111 1", ";411111111111111"];
  const lines = written("info", (log) => {
    for (const head of [...heads, "AT+GMM\r", '\0\0\0\x15O{"status":'])
      log.line("warn", "w", { line: "till", reason: "noise", bytes: 16, head: Buffer.from(head, "latin1").toString("hex") });
  });
  assertMapped(
    lines,
    ["411111**********", '"411111*********', "4111 11** **** *", ";411111*********", "AT+GMM\r", '\0\0\0\x15O{"status":'],
    ({ head }) => Buffer.from(String(head), "hex").toString("latin1"),
  );
});

test("Log writes one line of JSON whatever characters a key holds", () => {
  const key = 'a"b\\c\nd\u0000e\u2028f\u001b[31m\ud800{"level":"fatal"}';
  const lines = written("info", (log) => log.exchange({ ...record, key }));
  assert.equal(lines.length, 1);
  assert.equal(lines[0]?.["level"], "info");
});

test("Log.exchange() keeps each line's place and time, though answered ones are made into lines together", () => {
  const apartMs = 30;
  const lines = written("info", (log) => {
    for (let i = 0; i < 20; i++) {
      log.exchange({ ...record, requestId: `a${i}` });
      if (i % 6 === 1) log.line("warn", `after a${i}`, { line: "till" });
      if (i % 6 === 3) log.exchange({ ...record, requestId: `u${i}`, outcome: "unknown" });
      if (i % 6 === 5) log.exchange({ ...record, requestId: `n${i}`, outcome: "not-sent" });
      blockFor(apartMs);
    }
    log.setLevel("warn");
    log.exchange({ ...record, requestId: "below the level" });
  });
  const names = lines.map(({ requestId, msg }) => requestId ?? msg);
  const behind = (i: number) => [[], [`after a${i}`], [], [`u${i}`], [], [`n${i}`]][i % 6] ?? [];
  assert.deepEqual(names, Array.from({ length: 20 }, (_, i) => [`a${i}`, ...behind(i)]).flat());
  const times = lines.filter(({ outcome }) => outcome === "answered").map(({ time }) => Date.parse(String(time)));
  for (let i = 1; i < times.length; i++) assert.ok((times[i] ?? 0) - (times[i - 1] ?? 0) >= apartMs - 1, `${times}`);
});

test("Log.exchange() costs no other line where one can't be made, and says so", () => {
  const folder = mkdtempSync(join(tmpdir(), "posline-log-"));
  const path = join(folder, "log");
  const fd = openSync(path, "w");
  try {
    const render = (line: string) => {
      if (line.includes('"requestId":"bad"')) throw new Error("a bug");
      return line;
    };
    const log = openLog("info", { fd, render });
    for (const requestId of ["a", "bad", "b"]) log.exchange({ ...record, requestId });
    log.flush();
    assert.deepEqual(readFileSync(path, "utf8").match(/"requestId":"\w+"|"error":"[^"]+"/g), [
      '"requestId":"a"',
      '"requestId":"b"',
      '"error":"Error: a bug"',
    ]);
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
});

test("Log writes an answered exchange soon, though nothing follows it", async () => {
  const child = logging("serve", "1");
  const [first] = await once(child.stdout, "data");
  assert.match(String(first), /"requestId":"line 0"/);
  child.stdin.end();
  await once(child, "exit");
});

test("Log writes nothing below its level", () => {
  const use = (log: Log) => {
    log.exchange(record);
    log.line("info", "i", { line: "till" });
    log.line("warn", "w", { line: "till" });
    log.process("error", "e");
  };
  assertMapped(written("warn", use), ["warn", "error"], ({ level }) => level);
  assert.deepEqual(written("silent", use), []);
  assert.equal(written("info", use).length, 4);
});

const script = fileURLToPath(new URL("logging.ts", import.meta.url));

function logging(...args: readonly string[]): ChildProcessByStdio<Writable, Readable, Readable> {
  return spawn(process.execPath, ["--import", "tsx", script, ...args], { stdio: ["pipe", "pipe", "pipe"] });
}

/** Waits until the process said so. */
async function said(child: ChildProcessByStdio<Writable, Readable, Readable>, text: string): Promise<void> {
  let heard = "";
  for await (const chunk of child.stderr.iterator({ destroyOnReturn: false })) {
    heard += String(chunk);
    if (heard.includes(text)) return;
  }
  assert.fail(`the process ended before it said ${text}: ${heard}`);
}

async function linesOf(stream: Readable): Promise<Record<string, unknown>[]> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("Log.flush() writes all that is held before the process ends, and a process that ends by itself does too", async () => {
  for (const end of ["exit", "end"]) {
    const child = logging(end, "1000");
    const exited = once(child, "exit");
    const lines = await linesOf(child.stdout);
    assert.equal(lines.length, 1000);
    assert.equal(lines[999]?.["requestId"], "line 999");
    assert.deepEqual(await exited, [0, null]);
  }
});

test("Log drops and counts lines while its reader takes none, and says so as soon as it reads again", async () => {
  const count = 20_000;
  const child = logging("serve", String(count), "journald");
  const exited = once(child, "exit");
  await said(child, "ready");
  // The reader was away so far; now it reads, and one more line is logged when all that was held came.
  let text = "";
  const complete = (async () => {
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (text.includes("log lines were dropped")) child.stdin.end();
    }
  })();
  await complete;
  const texts = text.trimEnd().split("\n");
  for (const each of texts) assert.match(each, each.includes('"dropped":') ? /^<4>\{"level":"warn"/ : /^<6>\{"level":"info"/);
  const lines = texts.map((each): Record<string, unknown> => JSON.parse(each.slice(3)));
  const kept = lines.filter(({ requestId }) => String(requestId).startsWith("line ")).length;
  const dropped = lines.map((line) => Number(line["dropped"] ?? 0)).reduce((sum, n) => sum + n, 0);
  assert.ok(dropped > 0 && kept > 0);
  assert.equal(kept + dropped, count);
  assert.deepEqual(await exited, [7, null]);
});

test("Log lets the process end while its reader takes none, told to or by itself", async () => {
  for (const end of ["exit", "end"]) {
    const child = logging(end, "20000");
    // Nobody reads its output.
    assert.deepEqual(await once(child, "exit"), [0, null]);
    child.stdout.destroy();
  }
});

test("Log survives a reader that went away, also when what is held is flushed at the end", async () => {
  for (const flushes of [true, false]) {
    const child = logging("serve");
    const exited = once(child, "exit");
    await said(child, "ready");
    child.stdout.destroy();
    for (const command of flushes ? ["one", "flush", "two", "flush"] : ["one"]) {
      child.stdin.write(`${command}\n`);
      await said(child, `did ${command}`);
    }
    child.stdin.end();
    assert.deepEqual(await exited, [7, null]);
  }
});

test("Log writes what else is told of lines and of the process, its ids without card numbers", () => {
  const pan = "4111111111111111";
  const told = { requestId: pan, service: "bank", route: "/sale", key: pan, amount: 1500, count: 2, signal: "SIGHUP" };
  const [line, process] = written("info", (log) => {
    log.line("info", "line", { line: "till", state: "idle", reason: "r", device: "/dev/ttyUSB1", count: 3 });
    log.process("warn", "p", { ...told, folder: "/var/lib/posline", device: "/dev/ttyUSB1", error: `no ${pan}` });
  });
  assert.deepEqual([line?.["device"], line?.["count"]], ["/dev/ttyUSB1", 3]);
  delete process?.["time"];
  assert.deepEqual(process, {
    level: "warn",
    ...told,
    requestId: "411111******1111",
    key: "411111******1111",
    folder: "/var/lib/posline",
    device: "/dev/ttyUSB1",
    error: "no 411111******1111",
    msg: "p",
  });
});

test("Log escapes what a terminal obeys, what turns a line round and what nobody sees, and keeps the value", () => {
  for (const journald of [false, true]) {
    const text = textOf(
      "info",
      (log) => {
        log.exchange({ ...record, requestId: evil, key: evil, message: evil });
        log.line("warn", evil, { line: evil, reason: evil });
        log.process("error", evil, { path: evil, error: evil });
      },
      journald,
    );
    assert.doesNotMatch(text, obeyed);
    const lines = text.trimEnd().split("\n");
    assert.equal(lines.length, 3);
    const [exchange, line, process] = lines.map((each) => JSON.parse(journald ? each.replace(/^<\d>/, "") : each));
    assert.deepEqual([exchange.requestId, exchange.key, exchange.message], [evil, evil, evil]);
    assert.deepEqual([line.line, line.reason, line.msg], [evil, evil, evil]);
    assert.deepEqual([process.path, process.error, process.msg], [evil, evil, evil]);
  }
});
