import { probeIntervalMs } from "../../config/limits.ts";
import { messageOf } from "../../core/error-code.ts";
import { parseObject } from "../../envelope/json.ts";
import { otherReading } from "../../wire/crc16.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import type { AskedQuestion, Asker, TerminalAnswer } from "./asker.ts";
import { CheckEnd } from "./asker.ts";
import { both, type Row, type Sentence } from "./check.ts";
import { withWrongChecksum } from "./wire.ts";

/** What every service of a terminal is asked about its frames, by the sentences of its own contract. */

export const stx: Sentence = "Endpoints, Serial frame: one byte STX (0x02), payload bytes (UTF-8 text), 4-byte CRC32";
const invalid: Sentence =
  "Endpoints, Serial frame: A frame that is invalid or whose CRC does not match is treated as an invalid";
const flat: Sentence = "Endpoints, Response model: flat JSON object with status (string 'success' or 'error', required)";
const time = both("Limits: initial command response timeout", "What the service does: The same business API");
const frame = both("Serial: Length (4 bytes, unsigned big-endian", stx);
const checksum = both("Serial: CRC16-IBM (polynomial 0x8005, initial", "Serial: 4-byte CRC32 of the payload bytes only");
const mismatch = both("Serial: Frames with CRC mismatch are discarded", invalid);
const cut = both("Limits: serial frame payload read timeout (recommended) | 5 s", invalid);
export const oneInFlight = both("Serial: request in flight per connection.", flat);
const same = both("What the service does: only the transport differs.", "What the service does: Only the transport differs;");

/** In this order: what later checks need is judged first. */
export const firstRows: readonly Row[] = [
  ["answers", "It answers, in time", time, answersInTime],
  ["frame", "Its answers are frames", frame, answersInFrames],
  ["checksum", "One reading of the checksum", checksum, oneReading],
  ["wrong-checksum", "A request with a wrong checksum", mismatch, wrongChecksum],
  ["cut-short", "A request cut short, then a whole one", cut, (asker) => cutShort(asker)],
  ["cut-early", "Two bytes of a request, then a whole one", cut, (asker) => cutShort(asker, 0)],
  ["two-at-once", "Two requests at once", oneInFlight, twoAtOnce],
  ["idle", "Asked again after idle time", same, afterIdleTime],
  ["reopened", "The line is closed and opened again", same, afterReopening],
];

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
  await asker.waitIdle();
  const { ms } = await askFirst(asker);
  return passed(`After ${asker.pace.idleMs / 1_000} s without a request it answered in ${Math.round(ms)} ms`);
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
  const saying = { asked: asker.contract.probe.route, waitMs: probeIntervalMs };
  const heard = await asker.askUntilAnswered(readings, saying);
  const payloads = heard.flatMap(payloadsOf);
  if (payloads.length === 0) await askFirst(asker);
  else await mustAnswerProbe(asker, payloads);
  return passed(`After the line was closed and opened again it answered one of ${heard.length} requests`);
}
