import { closeSync, constants, openSync, writeSync } from "node:fs";
import { ReadStream } from "node:tty";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { Presence } from "../../src/core/presence.ts";
import { serialPort } from "../../src/device/serial-port.ts";
import { lineService } from "../../src/line/caller.ts";

import { Line } from "../../src/line/line.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { pythonArgv } from "./machine.ts";
import { figureOf, inWorkshop } from "./processes.ts";
import { atMost, type Bench, lowerQuartile } from "./report.ts";

/**
 * How long a large reply takes over a line without a pace, as from a terminal on USB, whose speed has nothing to do with its baud
 * rate: a line that asks and has its reply, against a plain stream that gathers what comes and reads it as JSON, with no look at the
 * checksum, in turns on one pty.
 */

const section = "large";
const payloadBytes = (1 << 20) - 64;
const headerBytes = 4;
const frameBytes = headerBytes + payloadBytes + 2;
const limitMs = 20_000;
/** Rounds that aren't counted: until then the compiler is still at work on what reads. */
const warmUpRounds = 12;

/** What responder.py answers with the large reply. */
const payload = Buffer.from('/check\n{"pay_id":"ORDER-2026-11-20-000184","language":"en","no_print_data":true}');

/** Milliseconds until a plain stream has all of the reply, and has read it as JSON. */
async function plainMs(path: string): Promise<number> {
  const fd = openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
  const stream = new ReadStream(fd);
  try {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`Cannot read: the reply was not whole within ${limitMs} ms`)), limitMs);
      const pieces: Buffer[] = [];
      let left = frameBytes;
      const beganMs = performance.now();
      stream.on("data", (bytes) => {
        pieces.push(bytes);
        left -= bytes.length;
        if (left > 0) return;
        clearTimeout(timer);
        JSON.parse(Buffer.concat(pieces).toString("utf8", headerBytes, headerBytes + payloadBytes));
        resolve(performance.now() - beganMs);
      });
      writeSync(fd, Buffer.concat(frameOf("length", [payload], "arc")));
    });
  } finally {
    stream.destroy();
    closeSync(fd);
  }
}

/** Milliseconds until a line has given its caller the reply, which is checked and read. */
async function lineMs(path: string, folder: string): Promise<number> {
  const config = { ...lineDefaults, path };
  const contract = contracts.bank;
  const services = [lineService(contract, { crc16: config.crc16, quiet: false, merchantId: undefined })];
  const nothing = () => {};
  const report = {
    state: nothing,
    discard: nothing,
    late: nothing,
    probeAnswered: nothing,
    unheard: nothing,
    heardAgain: nothing,
  };
  const line = new Line({ name: "large", config, services, open: serialPort(config, { lockFolder: folder }), report });
  try {
    line.start();
    const untilMs = performance.now() + limitMs;
    while (line.state !== "idle") {
      if (performance.now() > untilMs) throw new Error(`Cannot ask: the line is ${line.state}: ${line.reason}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const request = {
      ...({
        service: "bank",
        route: "/sale",
        requestId: "large",
        framing: contract.framing,
        linePrefix: contract.linePrefix,
        payload: [payload],
      } as const),
      ...{
        replyTimeoutMs: limitMs,
        urgent: false,
        background: false,
        repeatable: false,
        shapedAs: undefined,
        adviceWhenUnknown: "",
      },
      caller: new Presence(),
    };
    const beganMs = performance.now();
    await line.run(request);
    return performance.now() - beganMs;
  } finally {
    await line.stop(0);
  }
}

export async function largeReply({ report, short }: Bench): Promise<void> {
  await inWorkshop(async (workshop) => {
    const link = workshop.path("large.line");
    const responder = workshop.start("large-responder", pythonArgv("responder.py", link, payloadBytes), { talks: true });
    figureOf(await responder.line(30_000), "ready");
    const times = { ours: [] as number[], theirs: [] as number[] };
    for (let round = 0; round < warmUpRounds + (short ? 20 : 40); round++) {
      const theirs = await plainMs(link);
      const ours = await lineMs(link, workshop.dir);
      if (round < warmUpRounds) continue;
      times.theirs.push(theirs);
      times.ours.push(ours);
    }
    const figures = { ours: lowerQuartile(times.ours), theirs: lowerQuartile(times.theirs), unit: "ms" };
    report.compare(section, "1 MiB reply from a pty without pace", figures, atMost(1.5));
  });
}
