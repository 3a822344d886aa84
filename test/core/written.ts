import assert from "node:assert/strict";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ExchangeRecord, type Log, type LogLevel, openLog } from "../../src/core/log.ts";

/** What a log writes into a file, line by line. */
export function written(level: LogLevel, use: (log: Log) => void): Record<string, unknown>[] {
  return textOf(level, use, false)
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** The same as it is on the descriptor; where the log is to find out about journald by itself, the file is said to be journald's. */
export function textOf(level: LogLevel, use: (log: Log) => void, journald?: boolean): string {
  const folder = mkdtempSync(join(tmpdir(), "posline-log-"));
  const path = join(folder, "log");
  const fd = openSync(path, "w");
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    if (journald === undefined) process.env["JOURNAL_STREAM"] = `${dev}:${ino}`;
    const log = openLog(level, journald === undefined ? { fd } : { fd, journald });
    use(log);
    log.flush();
    const text = readFileSync(path, "utf8");
    assert.ok(text === "" || text.endsWith("\n"));
    return text;
  } finally {
    delete process.env["JOURNAL_STREAM"];
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
}

export const record: ExchangeRecord = {
  requestId: "r-1",
  service: "bank",
  route: "/sale",
  key: "A-1",
  outcome: "answered",
  httpStatus: 200,
  status: "success",
  code: 0,
  queueMs: 1.23456,
  lineMs: 12.3456,
  requestBytes: 10,
  replyBytes: 20,
  left: false,
  message: undefined,
};
