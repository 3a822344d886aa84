import { createServer, type ServerResponse } from "node:http";
import { crc16 } from "crc";
import { SerialPort } from "serialport";

/**
 * A Node-RED flow of `http in`, `serial request` and `http response`, as plain JavaScript, to compare with. The queue is that of
 * node-red-node-serialport (node-red/node-red-nodes, io/serialport/25-serial.js: `enqueue`, `writehead`, `dequeue`): strictly
 * first in, first out; what arrives is the answer to the head of the queue; after the response timeout the head is given
 * up, and the next request goes out at once. Bytes that come while nothing waits are dropped.
 *
 * Two things are kinder than the real flow: Node-RED's `http in` is express, this is node:http; and the node can split by a character, a
 * count or a pause only, while here it is given the frame's length.
 *
 * Usage: node node-red-bridge.mjs LINE PORT BAUD RESPONSE_TIMEOUT_MS
 */

const [linePath = "", port = "", baudRate = "", timeoutMs = ""] = process.argv.slice(2);

interface Message {
  readonly payload: Buffer;
  /** The reply, or nothing after the response timeout. */
  readonly send: (reply: Buffer | undefined) => void;
}

const serial = new SerialPort({ path: linePath, baudRate: Number(baudRate) });
const queue: Message[] = [];
let timer: NodeJS.Timeout | undefined;
let pending: Buffer = Buffer.alloc(0);

function writeHead(): void {
  const head = queue[0];
  if (head === undefined) return;
  serial.write(head.payload);
  timer = setTimeout(() => dequeue(undefined), Number(timeoutMs));
}

function dequeue(reply: Buffer | undefined): void {
  clearTimeout(timer);
  const head = queue.shift();
  writeHead();
  head?.send(reply);
}

function enqueue(message: Message): void {
  queue.push(message);
  if (queue.length === 1) writeHead();
}

serial.on("data", (chunk: Buffer) => {
  pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
  while (pending.length >= 4) {
    const whole = pending.readUInt32BE(0) + 6;
    if (pending.length < whole) return;
    const frame = pending.subarray(0, whole);
    pending = pending.subarray(whole);
    // The flow's function node: a frame whose checksum is wrong goes nowhere.
    if (crc16(frame.subarray(0, whole - 2)) === frame.readUInt16BE(whole - 2)) dequeue(frame.subarray(4, whole - 2));
  }
});

function encode(route: string, body: Buffer): Buffer {
  const payload = Buffer.concat([Buffer.from(`${route}\n`), body]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(payload.length);
  const tail = Buffer.alloc(2);
  tail.writeUInt16BE(crc16(payload, crc16(head)));
  return Buffer.concat([head, payload, tail]);
}

function respond(response: ServerResponse, reply: Buffer | undefined): void {
  response.writeHead(reply === undefined ? 504 : 200, {
    "content-type": "application/json",
    "content-length": reply?.length ?? 0,
  });
  response.end(reply);
}

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    enqueue({ payload: encode(request.url ?? "/", Buffer.concat(pieces)), send: (reply) => respond(response, reply) });
  });
});
serial.once("open", () => server.listen(Number(port), "127.0.0.1"));
