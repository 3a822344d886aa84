import { LogView, type LogViewOptions } from "../../src/logs/view.ts";

/** Lines of a log, and what a view makes of them. */

process.env["TZ"] = "Europe/Berlin";

export const stamp = { level: "info", time: "2026-11-20T10:33:08.336Z" };

export const sale = {
  ...stamp,
  requestId: "6fcc1715-1",
  service: "bank",
  route: "/sale",
  key: "A-1",
  outcome: "answered",
  httpStatus: 200,
  status: "success",
  queueMs: 0,
  lineMs: 8.7,
  requestBytes: 56,
  replyBytes: 20,
  msg: "exchange",
};

export const unknown = {
  ...sale,
  level: "warn",
  key: "A-2",
  outcome: "unknown",
  httpStatus: 504,
  status: "error",
  code: -3,
  queueMs: 120.4,
  lineMs: 30000.2,
  message: "Cannot tell the outcome of /sale: no reply came: outcome unknown: query /check with the same pay_id",
};

export const notSent = {
  ...sale,
  service: "fiscal",
  route: "/close_shift",
  key: undefined,
  outcome: "not-sent",
  httpStatus: 503,
  status: "error",
  code: 5,
  lineMs: 0,
  message: "Cannot send /close_shift: the line is down: nothing was sent",
};

export const checksum = {
  ...stamp,
  level: "warn",
  line: "till",
  reason: "checksum",
  bytes: 27,
  head: "000000154f4b7b22737461747573223a",
  crcGot: "fee8",
  crcArc: "bb3d",
  crcUmts: "fee8",
  msg: "bytes were discarded",
};

export const late = { ...stamp, level: "warn", line: "till", framing: "length", bytes: 64, msg: "a late reply was discarded" };

export const trace = '    at run (/usr/lib/posline/posline.cjs:12:7)\u001b[31m "quoted"';

/** What is shown of these lines, each an object or a text. */
export function shown(lines: readonly (object | string)[], options: Partial<LogViewOptions> = {}): string {
  const bytes = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  return shownOf([Buffer.from(bytes)], options);
}

/** What is shown of bytes that come in these pieces. */
export function shownOf(chunks: readonly Buffer[], options: Partial<LogViewOptions> = {}): string {
  const out: Buffer[] = [];
  const view = new LogView({
    criteria: {},
    last: undefined,
    json: false,
    colour: false,
    terminal: true,
    out: (each) => out.push(each),
    ...options,
  });
  for (const chunk of chunks) view.push(chunk);
  view.endLine();
  view.caughtUp();
  return Buffer.concat(out).toString();
}
