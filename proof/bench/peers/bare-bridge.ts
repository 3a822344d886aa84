import { constants, openSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { ReadStream } from "node:tty";
import { crc16 } from "crc";

/**
 * No bridge to run, but the least that any bridge on Node takes: its HTTP server, one write to the line, and what comes back cut at
 * the lengths that it names, one exchange after the other. It checks nothing, logs nothing and waits for ever.
 *
 * Usage: node bare-bridge.mjs LINE PORT, where LINE is raw already
 */

const [linePath = "", port = ""] = process.argv.slice(2);

const fd = openSync(linePath, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
let pending: Buffer = Buffer.alloc(0);
/** The first one is on the line. */
const exchanges: { readonly request: Buffer; readonly answer: (payload: Buffer) => void }[] = [];

function send(): void {
  const [next] = exchanges;
  if (next !== undefined) writeSync(fd, next.request);
}

new ReadStream(fd).on("data", (chunk: Buffer) => {
  pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
  if (pending.length < 4 || pending.length < pending.readUInt32BE(0) + 6) return;
  exchanges.shift()?.answer(pending.subarray(4, -2));
  pending = Buffer.alloc(0);
  send();
});

function frame(payload: Buffer): Buffer {
  const whole = Buffer.alloc(payload.length + 6);
  whole.writeUInt32BE(payload.length);
  payload.copy(whole, 4);
  whole.writeUInt16BE(crc16(whole.subarray(0, -2)), whole.length - 2);
  return whole;
}

createServer({ keepAliveTimeout: 72_000 }, (request, response) => {
  let body = `${request.url}\n`;
  request.setEncoding("utf8");
  request.on("data", (text: string) => {
    body += text;
  });
  request.on("end", () => {
    const answer = (payload: Buffer) => {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": payload.length }).end(payload);
    };
    if (exchanges.push({ request: frame(Buffer.from(body)), answer }) === 1) send();
  });
}).listen(Number(port), "127.0.0.1");
