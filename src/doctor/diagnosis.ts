import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { isObject, isTexts, type JsonObject } from "../core/json-object.ts";
import { quoted } from "../core/shell-text.ts";
import { cannotOpen } from "../device/open-errors.ts";
import { OpenError } from "../device/transport.ts";
import { type BytePattern, bytePatternOf } from "./byte-patterns.ts";
import { openErrorFinding } from "./device.ts";
import { causeFinding, type Finding, type FindingDetails, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { answerMs, type ProbeAnswer, type ProbeResult, probeServices, ServiceProbe } from "./probe.ts";

/** A line with what is configured on it. */
export interface LineToProbe extends ProbedLine {
  readonly services: Config["services"];
}

/**
 * Probes each service of a line that nobody holds with its barrier, which reads and changes nothing, and says what the answers
 * mean. Nothing else is ever sent.
 */
export async function diagnoseLine(line: LineToProbe, host: Host, progress: (text: string) => void): Promise<Finding[]> {
  const served = serviceNames.flatMap((service) => {
    const config = line.services[service];
    return config?.line === line.name ? [{ service, config }] : [];
  });
  const skipped = served.flatMap(({ service, config }) => {
    const why = skipReason(service, config, line.config);
    return why === undefined ? [] : [{ service, why }];
  });
  const probed = served.filter(({ service }) => !skipped.some((each) => each.service === service));
  const findings = skipped.map(({ service, why }) => finding("answer", "skipped", why, { line: line.name, service }));
  if (probed.length === 0) return findings;
  const probes = probed.map(({ service, config }) => new ServiceProbe(contracts[service], config.merchantId));
  try {
    const open = await host.open(line.config);
    const result = await probeServices({ config: line.config, open, probes, progress });
    findings.unshift(...answerFindings(line, probes, result));
    if (!result.leftClean && result.lost === undefined) findings.push(notCleanFinding(line));
  } catch (error) {
    findings.unshift(openFailedFinding(line, error));
  }
  return findings;
}

/** Why a service isn't probed; undefined when it is. */
function skipReason(service: ServiceName, config: ServiceConfig, line: LineConfig): string | undefined {
  if (service === "fiscal" && config.merchantId === undefined) {
    const why = "without services.fiscal.merchantId the question can't be signed";
    return `fiscal isn't asked: ${why}; at its start posline waits for silence instead`;
  }
  if (line.recovery === "quiet") return `${service} isn't asked: "recovery" is "quiet", so posline asks nothing on this line`;
  return undefined;
}

function openFailedFinding({ name, device }: LineToProbe, error: unknown): Finding {
  if (error instanceof OpenError) return openErrorFinding("open", error, { line: name });
  return causeFinding("open", "bad", cannotOpen(device, String(error)), { line: name });
}

function notCleanFinding({ name }: LineToProbe): Finding {
  const cause = "something sends on this line without being asked";
  return finding("line", "warn", "the line did not fall silent before it was left", {
    line: name,
    cause,
    cure: "look at posline tap --raw",
  });
}

/** The line that was probed. */
export interface ProbedLine {
  readonly name: string;
  readonly config: LineConfig;
  /** Its device, as a command takes it. */
  readonly device: string;
}

/** What the answers of a line's services say, and what their silence does. */
export function answerFindings(line: ProbedLine, probes: readonly ServiceProbe[], result: ProbeResult): Finding[] {
  const anyAnswer = probes.some(({ answer }) => answer !== undefined);
  const findings = probes.flatMap((probe) => {
    if (!probe.pending && probe.answer === undefined) return [];
    const more = { line: line.name, service: probe.service, frames: probe.frames };
    if (probe.answer?.kind === "barrier") return [answeredFinding(line, probe, probe.answer, more)];
    if (probe.answer?.kind === "error") return [errorFinding(probe, probe.answer, more)];
    return [unansweredFinding(line, probe, anyAnswer, more)];
  });
  return [...lineFindings(line, probes, result, anyAnswer), ...findings];
}

/** How fast and by what a service answered. */
function answeredFinding(
  line: ProbedLine,
  probe: ServiceProbe,
  { json, crc16, ms }: ProbeAnswer,
  more: FindingDetails,
): Finding {
  const { config, name } = line;
  const { route } = probe.contract.probe;
  const fact = `${probe.service} answered ${route} in ${timeOf(ms)} at ${config.baudRate} baud: ${capabilitiesText(json)}`;
  if (probe.contract.framing === "length" && crc16 !== config.crc16) {
    const cause = `the terminal reads CRC16 as ${namesOfCrc16[crc16]}, and line ${name} has "crc16": "${config.crc16}"`;
    const cure = `set "crc16": "${crc16}" for line ${name} in the configuration`;
    return finding("answer", "bad", `${fact}; but by the other reading of CRC16, "${crc16}"`, { ...more, cause, cure });
  }
  if (!probe.late) return finding("answer", "ok", fact, more);
  const cause = `it takes longer than ${answerMs} ms for what needs no thought: it was busy, or is still starting`;
  return finding("answer", "warn", fact, { ...more, cause, cure: "see what the terminal's screen shows, and ask again" });
}

const namesOfCrc16 = { arc: "CRC-16/ARC (123456789 gives BB3D)", umts: "CRC-16/UMTS (123456789 gives FEE8)" } as const;

const timeOf = (ms: number) => (ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1_000).toFixed(1)} s`);

/** What the service says that it can do. */
function capabilitiesText(json: JsonObject): string {
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
function errorFinding(probe: ServiceProbe, { json, ms }: ProbeAnswer, more: FindingDetails): Finding {
  const { contract, service } = probe;
  const code = typeof json["code"] === "number" ? json["code"] : undefined;
  const meaning = contract.codes.find((each) => each.code === code)?.meaning;
  const text = typeof json["message"] === "string" ? ` "${maskCardNumbers(json["message"]).slice(0, messageMax)}"` : "";
  const codeWords = code === undefined ? "without a code" : `with code ${code}${meaning === undefined ? "" : ` (${meaning})`}`;
  const fact = `${service} answered ${contract.probe.route} in ${timeOf(ms)} with an error, ${codeWords}${text}`;
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
function unansweredFinding(line: ProbedLine, probe: ServiceProbe, anyAnswer: boolean, more: FindingDetails): Finding {
  const { service, waitResult, garbage, broken, sent } = probe;
  if (waitResult === "stuck") {
    const cause = `flow control ("${line.config.flowControl}") stops it: the other end doesn't say that it is ready`;
    const cure = `set "flowControl": "none" for line ${line.name}, or mend the cable's CTS wire`;
    return finding("answer", "bad", `${service} could not be asked: the line takes no bytes`, { ...more, cause, cure });
  }
  if (waitResult === "lost") return finding("answer", "bad", `${service}: the line was lost before an answer came`, more);
  if (broken) {
    const cause = "by neither reading of CRC16 it is whole: bytes are lost or changed on the way";
    const cure = "try another cable and adapter; take the cable away from mains wires; check parity and data bits";
    return finding("answer", "bad", `${service} answered with a broken frame`, { ...more, cause, cure });
  }
  if (garbage.length > 0) return finding("answer", "bad", `${service}: what came is no answer`, more);
  const readings = sent.length > 1 ? " to either reading of CRC16" : "";
  const fact = `${service} did not answer ${probe.contract.probe.route}${readings}`;
  if (!anyAnswer) return finding("answer", "bad", fact, more);
  const cause = "others on this line do answer, so cable and speed are right: the terminal doesn't serve it on this line";
  const cure = `switch the service on in the terminal, or take services.${service} out of the configuration`;
  return finding("answer", "bad", fact, { ...more, cause, cure });
}

/** What concerns the whole line: its silence, and bytes that are no answer. */
function lineFindings(line: ProbedLine, probes: readonly ServiceProbe[], result: ProbeResult, anyAnswer: boolean): Finding[] {
  const findings: Finding[] = [];
  const more = { line: line.name };
  const sent = probes.flatMap((probe) => probe.sent.map(({ bytes }) => bytes));
  const garbage = probes.find((probe) => probe.garbage.length > 0)?.garbage;
  if (garbage !== undefined) findings.push(bytesFinding(line, bytePatternOf(garbage, sent), garbage, anyAnswer));
  else if (result.before.length > 0) findings.push(bytesFinding(line, bytePatternOf(result.before, []), result.before, true));
  if (result.lost !== undefined) {
    const cure = "check plug and cable; dmesg | tail shows what the kernel says of it";
    findings.push(finding("line", "bad", `the line was lost while it was asked: ${result.lost}`, { ...more, cure }));
  }
  const unanswered = probes.filter((probe) => probe.pending);
  const received = garbage !== undefined || probes.some(({ broken }) => broken);
  if (
    unanswered.length > 0 &&
    !anyAnswer &&
    !received &&
    result.lost === undefined &&
    !unanswered.some(({ waitResult }) => waitResult === "stuck")
  ) {
    findings.push(silenceFinding(line));
  }
  return findings;
}

/** Not one byte came: what it may be, the likeliest first. */
function silenceFinding({ config, device, name }: ProbedLine): Finding {
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
function bytesFinding({ name, config, device }: ProbedLine, pattern: BytePattern, bytes: Buffer, works: boolean): Finding {
  const head = Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const { what, cause, cure } = patternTexts(pattern, config.baudRate, quoted(device));
  return finding("bytes", works ? "warn" : "bad", `${what}: ${head}`, { line: name, cause, cure });
}

function patternTexts(pattern: BytePattern, baudRate: number, device: string): { what: string; cause: string; cure: string } {
  const tap = `posline tap --raw --line ${device}`;
  switch (pattern) {
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
