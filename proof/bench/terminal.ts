import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type Asked, answering, type Behaviour, probeReply, Terminal } from "../../test/support/terminal.ts";

/**
 * A terminal of the isolation bench, on a pty at the path of the command line. It has a process of its own: in one with the others, what
 * a fault costs it (a pty is made while the process waits) would be their delay. `faults` on standard input makes it go wrong in every
 * way that a line knows, `well` makes it answer again; each is confirmed by a line.
 */

const reply = '{"status":"success","data":{"status":"APPROVED","rrn":"000000000001"}}';
const healthy = answering(() => reply);

/** Every way in which an answer goes wrong, the costly ones too: noise to read through, and a device that goes. */
const faults: readonly Behaviour[] = [
  async (asked, terminal) => {
    const frame = terminal.frame(asked.framing, answerTo(asked));
    frame.writeUInt8(frame.readUInt8(6) ^ 0xff, 6);
    await terminal.send(frame);
  },
  async (asked, terminal) => {
    const frame = terminal.frame(asked.framing, answerTo(asked));
    await terminal.send(frame.subarray(0, frame.length >> 1));
  },
  async (asked, terminal) => {
    await terminal.send(Buffer.from("AT+CPIN?\r\n"));
    await healthy(asked, terminal);
  },
  async (asked, terminal) => {
    await healthy(asked, terminal);
    await healthy(asked, terminal);
  },
  async (asked, terminal) => {
    await sleep(300);
    await healthy(asked, terminal);
  },
  // 60 kB of noise, which the decoder has to read through.
  async (asked, terminal) => {
    await terminal.send(Buffer.alloc(60_000, "\x00\x00\x01U"));
    await healthy(asked, terminal);
  },
  () => {},
  async (_asked, terminal) => {
    terminal.unplug();
    await sleep(200);
    terminal.plug();
  },
];

const answerTo = (asked: Asked) => probeReply(asked) ?? reply;

/** One fault after the other, with two good answers between, so that the line recovers and goes on. */
const faulty: Behaviour = async (asked, terminal) => {
  const fault = asked.number % 3 === 0 ? faults[(asked.number / 3) % faults.length] : undefined;
  await (fault ?? healthy)(asked, terminal);
};

const [path = ""] = process.argv.slice(2);
const terminal = new Terminal(path, healthy);
process.stdin.on("end", () => process.exit(0));
console.log("ready");
for await (const what of createInterface({ input: process.stdin })) {
  terminal.behaviour = what === "faults" ? faulty : healthy;
  console.log(what);
}
