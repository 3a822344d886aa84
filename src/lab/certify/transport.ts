import { isUtf8 } from "node:buffer";
import { setTimeout as pause } from "node:timers/promises";
import { probeIntervalMs } from "../../config/limits.ts";
import type { ContractName } from "../../core/call.ts";
import { messageOf } from "../../core/error-code.ts";
import { parseObject } from "../../envelope/json.ts";
import { otherReading } from "../../wire/crc16.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import type { AskedQuestion, Asker, TerminalAnswer } from "./asker.ts";
import { CheckEnd } from "./asker.ts";
import { type CertifyCheck, checkOf, type Sentence } from "./check.ts";
import { keptChecks } from "./kept.ts";
import { withWrongChecksum } from "./wire.ts";

/** What every service of a terminal is asked about its frames, by the sentences of its own contract. */

type Topic = "time" | "frame" | "checksum" | "mismatch" | "cut" | "oneInFlight" | "around" | "payload" | "same";

/** Of both services whose frames begin with a length. */
const lengthFramed = {
  time: "Limits: initial command response timeout (recommended) | 30 s",
  cut: "Limits: serial frame payload read timeout (recommended) | 5 s",
  same: "What the service does: The same routes and JSON bodies are used over HTTP and Serial; only the transport differs.",
} as const;

const stxFrame =
  "Endpoints, Serial frame: one byte STX (0x02), payload bytes (UTF-8 text), 4-byte CRC32 of the payload bytes only in big-endian order, one byte ETX (0x03).";
const invalidFrame =
  "Endpoints, Serial frame: A frame that is invalid or whose CRC does not match is treated as an invalid request or response frame.";
const flatObject =
  "Endpoints, Response model: flat JSON object with status (string 'success' or 'error', required), code (int32, 0 on success, required)";

const sentences: Readonly<Record<ContractName, Readonly<Record<Topic, Sentence>>>> = {
  bank: {
    ...lengthFramed,
    frame:
      "Endpoints, Serial transport: Frame: Length (4 bytes, unsigned big-endian, payload size in bytes), Payload (N bytes), CRC16 (2 bytes, big-endian)",
    checksum:
      "Endpoints, Serial transport: computed over Length followed by Payload with CRC16-IBM (polynomial 0x8005, initial value 0x0000).",
    mismatch: "Endpoints, Serial transport: Frames with CRC mismatch are discarded",
    oneInFlight: "Endpoints, Serial transport: one request in flight per connection.",
    around: "Endpoints, Serial transport: No ACK/NACK layer exists.",
    payload: "Endpoints, Serial transport: The response payload is always the standard response envelope.",
  },
  qr: {
    ...lengthFramed,
    frame:
      "Endpoints, Serial frame: Length (4 bytes, unsigned big-endian payload size), Payload (N bytes, UTF-8), CRC16 (2 bytes, big-endian)",
    checksum: "Endpoints, Serial frame: over Length followed by Payload using CRC16-IBM (polynomial 0x8005, initial 0x0000).",
    mismatch: "Endpoints, Serial frame: Frames with CRC mismatch are discarded",
    oneInFlight: "Endpoints, Serial frame: One request in flight per connection.",
    around: "Endpoints, Serial frame: No ACK/NACK layer.",
    payload: "Response envelope: status | string 'success' or 'error' | always",
  },
  fiscal: {
    time: "What the service does, rule 1: The same business API is offered over two transports: HTTP and Serial.",
    frame: stxFrame,
    checksum: "Endpoints, Serial frame: 4-byte CRC32 of the payload bytes only in big-endian order",
    mismatch: invalidFrame,
    cut: invalidFrame,
    oneInFlight: flatObject,
    around: stxFrame,
    payload: flatObject,
    same: "What the service does, rule 1: Only the transport differs; the business payload is the same JSON model.",
  },
};

type Row = readonly [name: string, title: string, topic: Topic, run: CertifyCheck["run"]];

/** In this order: what later checks need is judged first. */
const first: readonly Row[] = [
  ["answers", "It answers, in time", "time", answersInTime],
  ["frame", "Its answers are frames", "frame", answersInFrames],
  ["checksum", "One reading of the checksum", "checksum", oneReading],
  ["wrong-checksum", "A request with a wrong checksum", "mismatch", wrongChecksum],
  ["cut-short", "A request cut short, then a whole one", "cut", (asker) => cutShort(asker)],
  ["cut-early", "Two bytes of a request, then a whole one", "cut", (asker) => cutShort(asker, 0)],
  ["two-at-once", "Two requests at once", "oneInFlight", twoAtOnce],
  ["idle", "Asked again after idle time", "same", afterIdleTime],
  ["reopened", "The line is closed and opened again", "same", afterReopening],
];

/** These judge all that the service answered in the run. */
const last: readonly Row[] = [
  ["nothing-around", "No byte around an answer, and none unasked", "around", nothingAround],
  ["one-answer", "One answer to a request", "oneInFlight", oneAnswer],
  ["json", "Each answer is one JSON object in UTF-8, with a status", "payload", jsonWithStatus],
];

const made = (service: ContractName, rows: readonly Row[]): readonly CertifyCheck[] =>
  rows.map(([name, title, topic, run]) => checkOf(service, name, title, sentences[service][topic], run));

export const firstChecks = (service: ContractName) => made(service, first);
export const lastChecks = (service: ContractName) => [...made(service, last), ...keptChecks(service)];

async function askFirst(asker: Asker): Promise<TerminalAnswer> {
  return asker.ask(asker.contract.probe.route);
}

/** Asks after a request that was broken, which a service may refuse late; returns how many answers came to both. */
async function answersToNext(asker: Asker): Promise<number> {
  const { contract, exchanges } = asker;
  const { route: asked } = contract.probe;
  await asker.askRaw(asker.probe(), { asked, waitMs: asker.answerMs(asked), isSeveral: true });
  const late = await asker.wire.listen(contract.framing, asker.silentMs);
  const payloads = asker.withoutCopies([...payloadsOf(exchanges.at(-1)), ...late]);
  await mustAnswerProbe(asker, payloads);
  return payloads.length;
}

/** @throws CheckEnd if the answers are those of an earlier request. */
async function mustAnswerProbe(asker: Asker, payloads: readonly Buffer[]): Promise<void> {
  const presence = await asker.presence();
  const isKnown = "answer" in presence && asker.contract.probe.isAnswer(presence.answer.json);
  if (isKnown && !payloads.some((payload) => shapeOf(asker, payload) === "first"))
    throw new CheckEnd(failed("It gave the next request the answer of an earlier one"));
}

const payloadsOf = (exchange: AskedQuestion | undefined) => exchange?.answers.map(({ payload }) => payload) ?? [];

async function answersInTime(asker: Asker): Promise<CaseResult> {
  const times: number[] = [];
  for (let count = 0; count < 3; count++) times.push((await askFirst(asker)).ms);
  return passed(`Asked three times, it answered in ${Math.round(Math.min(...times))} to ${Math.round(Math.max(...times))} ms`);
}

async function answersInFrames(asker: Asker): Promise<CaseResult> {
  const presence = await asker.presence();
  if ("answer" in presence) return passed("Its answers are whole frames");
  return presence.garbled === "frame" ? failed(presence.absent.why) : presence.absent;
}

async function oneReading(asker: Asker): Promise<CaseResult> {
  const { contract, wire } = asker;
  const presence = await asker.presence();
  if ("absent" in presence) return presence.garbled === "checksum" ? failed(presence.absent.why) : presence.absent;
  if (contract.framing === "stx") return passed("It takes and gives CRC-32");
  const { crc16 } = wire;
  const other = otherReading(crc16);
  const [ours, others] = [crc16, other].map((reading) => `CRC-16/${reading.toUpperCase()}`);
  const asked = `${contract.probe.route} in ${others}, the other reading of CRC16-IBM`;
  const { answers } = await asker.send(asker.probe(other), { asked, waitMs: asker.silentMs });
  if (answers.length > 0) {
    wire.crc16 = crc16;
    return failed(`It answers requests in ${ours}, and in ${others} as well: one of them is wrong`);
  }
  await askFirst(asker);
  return passed(`It takes and gives ${ours}, and discards ${others}`);
}

async function wrongChecksum(asker: Asker): Promise<CaseResult> {
  const { secondProbe, framing } = asker.contract;
  const saying = { asked: `${secondProbe.route}, with a wrong checksum`, waitMs: asker.silentMs };
  const frame = asker.frame(asker.payload(secondProbe.route, secondProbe.body));
  const [answer] = (await asker.send(withWrongChecksum(frame, framing), saying)).answers;
  if (answer !== undefined && answer.status !== "error") return failed("It carried out a request whose checksum is wrong");
  const more = await answersToNext(asker);
  // The fiscal contract has it treated as an invalid request: an error says so, and silence too.
  const isDiscarded = answer === undefined && more <= 1;
  if (framing === "length" && !isDiscarded) return failed("It answered a request whose checksum is wrong");
  const did = answer === undefined ? "It discarded" : `It refused (code ${answer.code})`;
  return passed(`${did} a request whose checksum is wrong, and answered the next one`);
}

/** @param share How much of it is sent. */
async function cutShort(asker: Asker, share = 0.5): Promise<CaseResult> {
  const { contract, pace } = asker;
  await askFirst(asker);
  const frame = asker.probe();
  const part = frame.subarray(0, Math.max(2, Math.ceil(frame.length * share)));
  const asked = `${contract.probe.route}, cut short: ${part.length} of ${frame.length} bytes`;
  const [answer] = (await asker.send(part, { asked, waitMs: pace.cutMs })).answers;
  if (answer !== undefined && answer.status !== "error") return failed("It carried out a request that was cut short");
  await answersToNext(asker);
  return passed(`It answered the request that came ${pace.cutMs / 1_000} s after one that was cut short`);
}

async function twoAtOnce(asker: Asker): Promise<CaseResult> {
  const { probe, secondProbe, framing } = asker.contract;
  // Alone first: only answers that are known can be told apart.
  const alone = await asker.ask(probe.route);
  if (!probe.isAnswer(alone.json))
    return untested(`Its answer to ${probe.route} is none of that route, so two can't be told apart`);
  const both = Buffer.concat([asker.probe(), asker.frame(asker.payload(secondProbe.route, secondProbe.body))]);
  const asked = `${probe.route} and ${secondProbe.route} at once`;
  const exchange = await asker.send(both, { asked, waitMs: asker.answerMs(probe.route), isSeveral: true });
  // The second answer may come late.
  const rest = await asker.wire.listen(framing, asker.silentMs);
  const shapes = asker.withoutCopies([...payloadsOf(exchange), ...rest]).map((payload) => shapeOf(asker, payload));
  if (shapes.length > 2) return failed(`It gave ${shapes.length} answers to two requests`);
  if (shapes.includes("neither")) return failed("Of two requests at once it answered with what answers neither");
  const [one, two] = shapes;
  if (one === "second" && two === "first") return failed("It answered two requests at once in the wrong order");
  if (one !== undefined && one === two) return failed("It answered two different requests with the same answer");
  const after = await askFirst(asker);
  if (one === undefined) return passed("It answered neither of two requests at once, and the next one alone");
  if (!probe.isAnswer(after.json)) return failed("After two requests at once it gave the next one another one's answer");
  return passed(two === undefined ? "It answered one of them, and not the other" : "It answered both, in order");
}

/** Which of the two questions it answers: only the first one's answer has a shape of its own with every service. */
function shapeOf({ contract: { probe } }: Asker, payload: Buffer): "first" | "second" | "neither" {
  const json = parseObject(payload.toString("utf8"));
  if (json !== undefined && probe.isAnswer(json)) return "first";
  return json?.["status"] === "success" || json?.["status"] === "error" ? "second" : "neither";
}

async function afterIdleTime(asker: Asker): Promise<CaseResult> {
  await askFirst(asker);
  const { idleMs } = asker.pace;
  asker.note("bridge", `asks nothing for ${idleMs / 1_000} s`);
  await pause(idleMs);
  const { ms } = await askFirst(asker);
  return passed(`After ${idleMs / 1_000} s without a request it answered in ${Math.round(ms)} ms`);
}

async function afterReopening(asker: Asker): Promise<CaseResult> {
  const { secondProbe } = asker.contract;
  await asker.ask(secondProbe.route, secondProbe.body);
  asker.note("bridge", "closes the line, and opens it again");
  try {
    await asker.wire.open();
  } catch (error) {
    throw new CheckEnd(untested(`The line couldn't be opened again: ${messageOf(error)}`));
  }
  // What comes right after an opening may be older than it, so a terminal may drop it; one that starts anew with it needs some seconds.
  const readings = Array.from({ length: 5 }, () => asker.wire.crc16);
  const heard = await asker.askUntilAnswered(readings, probeIntervalMs, () => asker.contract.probe.route);
  const isAnswered = heard.some(isAsked);
  if (isAnswered) await mustAnswerProbe(asker, heard.flatMap(payloadsOf));
  if (!isAnswered) await askFirst(asker);
  const count = heard.length + (isAnswered ? 0 : 1);
  return passed(
    `After the line was closed and opened again it answered ${count === 1 ? "the first request" : `request ${count}`}`,
  );
}

const isAsked = ({ answers }: AskedQuestion) => answers.length > 0;

/** Answered requests, once both questions were asked once more. */
async function answeredOf(asker: Asker): Promise<readonly AskedQuestion[]> {
  const { probe, secondProbe } = asker.contract;
  await asker.ask(probe.route);
  await asker.ask(secondProbe.route, secondProbe.body);
  return asker.exchanges.filter(isAsked);
}

async function nothingAround(asker: Asker): Promise<CaseResult> {
  const answered = await answeredOf(asker);
  const odd = answered.find(({ strayBytes }) => strayBytes > 0);
  if (odd !== undefined) {
    const { asked, strayBytes, strayHead } = odd;
    return failed(
      `Beside its answer to ${asked} it sent ${strayBytes} bytes that belong to no frame (it began with ${strayHead})`,
    );
  }
  const unasked = asker.exchanges.find(({ unaskedBytes }) => unaskedBytes > 0);
  if (unasked !== undefined) return failed(`It sent ${unasked.unaskedBytes} bytes unasked, before ${unasked.asked}`);
  return passed(`In ${answered.length} answers every byte belongs to a frame`);
}

async function oneAnswer(asker: Asker): Promise<CaseResult> {
  const answered = await answeredOf(asker);
  const twice = answered.find(({ answers, isSeveral }) => answers.length > 1 && !isSeveral);
  if (twice !== undefined) return failed(`It gave ${twice.answers.length} answers to ${twice.asked}`);
  return passed(`It gave one answer to each of ${answered.length} requests`);
}

async function jsonWithStatus(asker: Asker): Promise<CaseResult> {
  const answers = (await answeredOf(asker)).flatMap(({ asked, answers }) => answers.map((each) => ({ ...each, asked })));
  for (const { asked, payload, status } of answers) {
    const its = `Its answer to ${asked}`;
    if (!isUtf8(payload)) return failed(`${its} is not UTF-8`);
    if (parseObject(payload.toString("utf8")) === undefined) return failed(`${its} is not one JSON object`);
    if (status !== "success" && status !== "error") return failed(`${its} has no status of success or error`);
  }
  return passed(`${answers.length} answers are JSON objects in UTF-8, with a status`);
}
