import assert from "node:assert/strict";
import type { Box } from "../box.ts";
import type { Guest } from "../guest.ts";
import { adapterById } from "../machine.ts";
import { type BoxProof, seconds } from "../proof.ts";
import { CabledTill } from "../till.ts";

/**
 * A line is given back while its last answer is still on the way. A till at the other end reads no faster than the wire is, so that
 * the answer lies in the guest's kernel when posline stops.
 */

const baudRate = 9_600;
const msPerByte = 10_000 / baudRate;

/** Answers a till's request with so many bytes; one that says so stops the gateway first, so that its answer is the last. */
const upstream = `
import { execFile } from "node:child_process";
import { createServer } from "node:http";
createServer((request, response) => {
  let text = "";
  request.on("data", (part) => { text += part; });
  request.on("end", () => {
    const { pay_id, bytes, stop } = JSON.parse(text);
    const answer = () => response.end(JSON.stringify({ status: "success", code: 0, pay_id, note: "x".repeat(bytes) }));
    if (stop) execFile("systemctl", ["stop", "--no-block", "posline-gateway.service"], () => setTimeout(answer, 300));
    else answer();
  });
}).listen(9777, "127.0.0.1");
`;

/** Milliseconds that the terminal of a round may take to answer, beside the time on the wire: the box is slow. */
const slowMs = 60_000;

export const drain: BoxProof = {
  name: "drain",
  shows:
    "posline stopped while it answers at 9600 baud: each answer comes whole, and a device that takes nothing holds nobody up",
  async run({ box, isShort, figure }) {
    const { guest, terminal, machine } = box;
    const rounds = isShort ? 3 : 20;
    await guest.sh("systemctl stop posline.service");
    await terminal.unplug();
    await guest.write("/root/upstream.mjs", upstream);
    await guest.sh("systemd-run -q -u upstream node /root/upstream.mjs");
    try {
      for (const { path, socket } of [
        { path: adapterById, socket: machine.cable },
        { path: "/dev/ttyS1", socket: machine.uart },
      ]) {
        const came = await answersOf(box, path, socket, rounds);
        figure(`${path}: ${came} of ${rounds} last answers came whole`);
        assert.equal(came, rounds);
      }
      figure(`an answer of 1000 bytes on a UART that was told to stop: given back after ${seconds(await stoppedMs(box))}`);
    } finally {
      await guest.run("systemctl stop posline-gateway.service upstream.service; rm -f /etc/posline/gateway.json");
    }
  },
};

/** Stops the gateway again and again, and counts the last answers that came whole. */
async function answersOf(box: Box, path: string, socket: string, rounds: number): Promise<number> {
  const till = new CabledTill(socket, msPerByte);
  try {
    await configure(box, { path, baudRate });
    let whole = 0;
    for (let round = 0; round < rounds; round++) {
      const key = `${path.slice(5, 11)}-${round}`;
      await greeted(box, till);
      if ((await stoppedAnswering(box, till, key, 1_500 + 100 * round)) !== undefined) whole++;
    }
    return whole;
  } finally {
    till.hangUp();
  }
}

/** Milliseconds from SIGTERM to the end, on a UART whose till has stopped the flow with XOFF. */
async function stoppedMs(box: Box): Promise<number> {
  const { guest, machine } = box;
  const till = new CabledTill(machine.uart, msPerByte);
  try {
    await configure(box, { path: "/dev/ttyS1", baudRate, flowControl: "xonxoff" });
    await greeted(box, till);
    till.stopFlow();
    assert.equal(await stoppedAnswering(box, till, "stopped", 1_000), undefined, "nothing came");
    const log = await logOf(guest);
    const timeOf = (message: string) => Date.parse(new RegExp(`"time":"([^"]+)"[^\\n]*"msg":"${message}`).exec(log)?.[1] ?? "");
    // It waits twice an answer's time on the wire, and a little; the kernel by itself would wait 30 s.
    const ms = timeOf("stopped") - timeOf("stopping");
    assert.ok(ms > 2_000 && ms < 10_000, `${ms} ms\n${log}`);
    return ms;
  } finally {
    till.hangUp();
  }
}

const logOf = (guest: Guest) => guest.sh("journalctl -o cat -u posline-gateway -n 20 --no-pager");

function configure(box: Box, line: object): Promise<void> {
  const services = { bank: { line: "till", upstream: "http://127.0.0.1:9777" } };
  return box.guest.write("/etc/posline/gateway.json", JSON.stringify({ lines: { till: line }, services }));
}

/** A bank question with this key, and the answer to it. */
const asked = (till: CabledTill, key: string, more: object, limitMs: number) =>
  till.ask(`/check\n${JSON.stringify({ pay_id: key, ...more })}`, `"pay_id":"${key}"`, limitMs);

/** Starts the gateway, and asks until it answers. */
async function greeted({ guest }: Box, till: CabledTill): Promise<void> {
  await guest.sh("systemctl start posline-gateway.service");
  // QEMU's UART may never interrupt again for bytes that come while its driver starts it.
  await guest.until("journalctl -o cat -u posline-gateway -n 1 --no-pager", /"the device opened"/);
  const untilMs = performance.now() + slowMs;
  while ((await asked(till, "greeting", { bytes: 1 }, 1_500)) === undefined) {
    if (performance.now() > untilMs) throw new Error(`Cannot go on: the gateway doesn't answer\n${await logOf(guest)}`);
  }
}

/** Asks, which stops the gateway; gives the answer if it came whole. The log must have it as given. */
async function stoppedAnswering({ guest }: Box, till: CabledTill, key: string, bytes: number): Promise<string | undefined> {
  const answer = asked(till, key, { bytes, stop: true }, slowMs);
  await guest.until("systemctl is-active posline-gateway.service", /^(inactive|failed)$/, 2 * slowMs);
  assert.equal(await guest.sh("systemctl show -P Result posline-gateway.service"), "success");
  // What is left by now lies in the emulated cable at most.
  till.givesUpIn(3_000);
  const text = await answer;
  const log = await logOf(guest);
  assert.match(log, new RegExp(`"key":"${key}","outcome":"answered"`));
  return text;
}
