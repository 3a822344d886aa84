import type { LineConfig } from "../config/config.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import type { JsonObject } from "../core/json-object.ts";
import { isObject, isTexts } from "../core/json-object.ts";
import { quoted } from "../core/shell-text.ts";
import { type Finding, finding, type More } from "./finding.ts";
import type { Interview } from "./interview.ts";
import { answerMs } from "./interview.ts";
import type { Answer, Question } from "./question.ts";
import { type Sign, signOf } from "./signs.ts";

/** The line that was asked. */
export interface AskedLine {
  readonly name: string;
  readonly config: LineConfig;
  /** Its device, as a command takes it. */
  readonly device: string;
}

/** What the answers of a line's services say, and what their silence does. */
export function answerFindings(line: AskedLine, questions: readonly Question[], told: Interview): Finding[] {
  const anyAnswer = questions.some(({ answer }) => answer !== undefined);
  const findings = questions.flatMap((question) => {
    if (!question.pending && question.answer === undefined) return [];
    const more = { line: line.name, service: question.service, frames: question.frames };
    if (question.answer?.kind === "barrier") return [answered(line, question, question.answer, more)];
    if (question.answer?.kind === "error") return [refused(question, question.answer, more)];
    return [unanswered(line, question, anyAnswer, more)];
  });
  return [...lineFindings(line, questions, told, anyAnswer), ...findings];
}

/** How fast and by what a service answered. */
function answered(line: AskedLine, question: Question, { json, crc16, ms }: Answer, more: More): Finding {
  const { config, name } = line;
  const { route } = question.contract.probe;
  const fact = `${question.service} answered ${route} in ${timeOf(ms)} at ${config.baudRate} baud: ${offerOf(json)}`;
  if (question.contract.framing === "length" && crc16 !== config.crc16) {
    const cause = `the terminal reads CRC16 as ${namesOfCrc16[crc16]}, and line ${name} has "crc16": "${config.crc16}"`;
    const cure = `set "crc16": "${crc16}" for line ${name} in the configuration`;
    return finding("answer", "bad", `${fact}; but by the other reading of CRC16, "${crc16}"`, { ...more, cause, cure });
  }
  if (!question.late) return finding("answer", "ok", fact, more);
  const cause = `it takes longer than ${answerMs} ms for what needs no thought: it was busy, or is still starting`;
  return finding("answer", "warn", fact, { ...more, cause, cure: "see what the terminal's screen shows, and ask again" });
}

const namesOfCrc16 = { arc: "CRC-16/ARC (123456789 gives BB3D)", umts: "CRC-16/UMTS (123456789 gives FEE8)" } as const;

const timeOf = (ms: number) => (ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1_000).toFixed(1)} s`);

/** What the service says that it can do. */
function offerOf(json: JsonObject): string {
  const data = isObject(json["data"]) ? json["data"] : {};
  for (const operations of [json["operations"], data["operations"]]) {
    if (isTexts(operations)) return `${operations.length} operations`;
  }
  const systems = Array.isArray(data["systems"]) ? data["systems"] : [];
  const names = systems.flatMap((system: unknown) => (isObject(system) ? [String(system["name"])] : []));
  return names.length === 0 ? "no payment system" : `payment systems ${names.slice(0, 8).join(", ")}`;
}

/** Characters of an error's message that are shown. */
const messageMax = 80;

/** The frames pass, and the service says no. */
function refused(question: Question, { json, ms }: Answer, more: More): Finding {
  const { contract, service } = question;
  const code = typeof json["code"] === "number" ? json["code"] : undefined;
  const meaning = contract.codes.find((each) => each.code === code)?.meaning;
  const said = typeof json["message"] === "string" ? ` "${maskCardNumbers(json["message"]).slice(0, messageMax)}"` : "";
  const codeWords = code === undefined ? "without a code" : `with code ${code}${meaning === undefined ? "" : ` (${meaning})`}`;
  const fact = `${service} answered ${contract.probe.route} in ${timeOf(ms)} with an error, ${codeWords}${said}`;
  if (contract.faultCodes.sign === code && contract.envelope === "form") {
    const cause = "the frames pass, but merchantId isn't the one that the terminal has";
    const cure =
      "compare services.fiscal.merchantId (or the file that it is in) with the terminal's, blanks and letters' case too";
    return finding("answer", "bad", fact, { ...more, cause, cure });
  }
  const cause = "the frames pass, but this service can't prove that the line is clean: posline waits for silence instead";
  const cure = `ask the terminal's vendor to enable ${contract.probe.route}, or take services.${service} out of the configuration`;
  return finding("answer", "warn", fact, { ...more, cause, cure });
}

/** Nothing came, or nothing that is an answer. */
function unanswered(line: AskedLine, question: Question, anyAnswer: boolean, more: More): Finding {
  const { service, ending, garbage, broken, sent } = question;
  if (ending === "stuck") {
    const cause = `flow control ("${line.config.flowControl}") stops it: the other end doesn't say that it is ready`;
    const cure = `set "flowControl": "none" for line ${line.name}, or mend the cable's CTS wire`;
    return finding("answer", "bad", `${service} could not be asked: the line takes no bytes`, { ...more, cause, cure });
  }
  if (ending === "lost") return finding("answer", "bad", `${service}: the line was lost before an answer came`, more);
  if (broken) {
    const cause = "by neither reading of CRC16 it is whole: bytes are lost or changed on the way";
    const cure = "try another cable and adapter; take the cable away from mains wires; check parity and data bits";
    return finding("answer", "bad", `${service} answered with a broken frame`, { ...more, cause, cure });
  }
  if (garbage.length > 0) return finding("answer", "bad", `${service}: what came is no answer`, more);
  const readings = sent.length > 1 ? " to either reading of CRC16" : "";
  const fact = `${service} did not answer ${question.contract.probe.route}${readings}`;
  if (!anyAnswer) return finding("answer", "bad", fact, more);
  const cause = "others on this line do answer, so cable and speed are right: the terminal doesn't serve it on this line";
  const cure = `switch the service on in the terminal, or take services.${service} out of the configuration`;
  return finding("answer", "bad", fact, { ...more, cause, cure });
}

/** What concerns the whole line: its silence, and bytes that are no answer. */
function lineFindings(line: AskedLine, questions: readonly Question[], told: Interview, anyAnswer: boolean): Finding[] {
  const findings: Finding[] = [];
  const more = { line: line.name };
  const sent = questions.flatMap((question) => question.sent.map(({ bytes }) => bytes));
  const garbage = questions.find((question) => question.garbage.length > 0)?.garbage;
  if (garbage !== undefined) findings.push(bytesFinding(line, signOf(garbage, sent), garbage, anyAnswer));
  else if (told.before.length > 0) findings.push(bytesFinding(line, signOf(told.before, []), told.before, true));
  if (told.lost !== undefined) {
    const cure = "check plug and cable; dmesg | tail shows what the kernel says of it";
    findings.push(finding("line", "bad", `the line was lost while it was asked: ${told.lost}`, { ...more, cure }));
  }
  const silent = questions.filter((question) => question.pending);
  const heard = garbage !== undefined || questions.some(({ broken }) => broken);
  if (
    silent.length > 0 &&
    !anyAnswer &&
    !heard &&
    told.lost === undefined &&
    !silent.some(({ ending }) => ending === "stuck")
  ) {
    findings.push(silence(line));
  }
  return findings;
}

/** Not one byte came: what it may be, the likeliest first. */
function silence({ config, device, name }: AskedLine): Finding {
  const other = config.baudRate === 9_600 ? 115_200 : 9_600;
  const cause =
    "in order of likelihood: the terminal is off, asleep or still starting; the cable is not in, or not the right one (crossed " +
    `where it must be straight, or the other way round); its speed isn't ${config.baudRate} baud; it isn't set to be driven by a till`;
  const cure =
    "switch it on and see that its screen shows no menu; put a null modem in, or take it out; look its speed up in its menu, or " +
    `try posline doctor --line ${quoted(name)} --baud ${other}; posline tap --raw --line ${quoted(device)} shows whether anything comes at all`;
  return finding("silence", "bad", "not one byte came back", { line: name, cause, cure });
}

/** What bytes are that are no answer, and what to do about it. */
function bytesFinding({ name, config, device }: AskedLine, sign: Sign, bytes: Buffer, works: boolean): Finding {
  const head = Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const { what, cause, cure } = looks(sign, config.baudRate, quoted(device));
  return finding("bytes", works ? "warn" : "bad", `${what}: ${head}`, { line: name, cause, cure });
}

function looks(sign: Sign, baudRate: number, device: string): { what: string; cause: string; cure: string } {
  const tap = `posline tap --raw --line ${device}`;
  switch (sign) {
    case "echo":
      return {
        what: "what was sent came back",
        cause: "the line is looped: a test plug, RX and TX joined, or a computer with a login prompt at the other end",
        cure: "check the plug and the cable, and that a terminal is at the other end",
      };
    case "at commands":
      return {
        what: "AT commands came (a modem's language)",
        cause: "a modem manager probes the line from the other end, or the terminal gives back what ModemManager wrote into it",
        cure: "sudo systemctl disable --now ModemManager, on each computer of this line",
      };
    case "login prompt":
      return {
        what: "a login prompt came",
        cause: "at the other end is a computer's console and no terminal",
        cure: "plug the cable into the terminal's port for a till (ECR), or switch the console off there",
      };
    case "text":
      return {
        what: "text came that is no answer",
        cause:
          "another device is at the other end (a scanner, a scale, a modem), or the terminal's port is set to something else",
        cure: `see what it is with ${tap}, and set the terminal's port to the till's (ECR) protocol`,
      };
    case "other baud rate":
      return {
        what: "bytes came as another speed leaves them",
        cause: `the terminal speaks at another speed than ${baudRate} baud`,
        cure: "look its speed up in its menu and set baudRate, or try --baud 9600, 19200, 38400, 57600, 115200",
      };
    case "break":
      return {
        what: "only zeros came",
        cause: "the line is held down (a break): a cable with RX on ground, or a terminal without power",
        cure: "switch the terminal on, and check the cable",
      };
    default:
      return {
        what: "bytes came that are no frame",
        cause: "another speed, parity or protocol, or a bad cable",
        cure: `compare baudRate, dataBits, parity and stopBits with the terminal's, and look at ${tap}`,
      };
  }
}
