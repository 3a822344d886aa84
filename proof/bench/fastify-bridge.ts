import { crc16 } from "crc";
import Fastify from "fastify";
import { SerialPort } from "serialport";

/**
 * The bridge that most would write in an afternoon, to compare with: fastify, serialport's stream, a promise chain that keeps
 * one exchange on the line, and npm `crc`. It relays the body as it came and has a time-out, and nothing else: no guard, no
 * checks, no recovery.
 *
 * Usage: node fastify-bridge.mjs LINE PORT BAUD LOG [REPLY_TIMEOUT_MS], where LOG is `log` for one line an exchange
 */

const [linePath = "", port = "", baudRate = "", log = "", timeoutMs = "30000"] = process.argv.slice(2);
const replyTimeoutMs = Number(timeoutMs);

const line = new SerialPort({ path: linePath, baudRate: Number(baudRate) });
let pending: Buffer = Buffer.alloc(0);
let waiting: ((payload: Buffer) => void) | undefined;

line.on("data", (chunk: Buffer) => {
  pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
  while (pending.length >= 4) {
    const whole = pending.readUInt32BE(0) + 6;
    if (pending.length < whole) return;
    const frame = pending.subarray(0, whole);
    pending = pending.subarray(whole);
    if (crc16(frame.subarray(0, whole - 2)) !== frame.readUInt16BE(whole - 2)) continue;
    waiting?.(frame.subarray(4, whole - 2));
    waiting = undefined;
  }
});

function encode(route: string, body: Buffer | undefined): Buffer {
  const payload = body === undefined ? Buffer.from(route) : Buffer.concat([Buffer.from(`${route}\n`), body]);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(payload.length);
  const tail = Buffer.alloc(2);
  tail.writeUInt16BE(crc16(payload, crc16(head)));
  return Buffer.concat([head, payload, tail]);
}

function exchange(route: string, body: Buffer | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      waiting = undefined;
      reject(new Error("no reply in time"));
    }, replyTimeoutMs);
    waiting = (payload) => {
      clearTimeout(timer);
      resolve(payload);
    };
    line.write(encode(route, body));
  });
}

let last: Promise<unknown> = Promise.resolve();
function queued(route: string, body: Buffer | undefined): Promise<Buffer> {
  const mine = last.then(() => exchange(route, body));
  last = mine.catch(() => {});
  return mine;
}

const app = Fastify({ logger: log === "log", disableRequestLogging: true });
app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
app.route({
  method: ["GET", "POST"],
  url: "/*",
  handler: async (request, reply) => {
    const begun = performance.now();
    const payload = await queued(request.url, Buffer.isBuffer(request.body) ? request.body : undefined);
    if (log === "log")
      request.log.info({ route: request.url, bytes: payload.length, ms: performance.now() - begun }, "exchange");
    return reply.type("application/json").send(payload);
  },
});
line.once("open", () => {
  app.listen({ host: "127.0.0.1", port: Number(port) }).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
