import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import { contractOnLine } from "../contract/contracts.ts";
import type { ServiceName } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { isObject, isTexts, type JsonObject } from "../core/json-object.ts";
import { quoted } from "../core/shell-text.ts";
import { cannotOpen } from "../device/open-errors.ts";
import { OpenError } from "../device/transport.ts";
import { otherReading } from "../wire/crc16.ts";
import { type BytePattern, bytePatternOf } from "./byte-patterns.ts";
import { openErrorFinding } from "./device.ts";
import { causeFinding, type Finding, type FindingDetails, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { type ProbeAnswer, type ProbeResult, probeAnswerMs, probeServices, ServiceProbe } from "./probe.ts";
import { headOf } from "./redact.ts";

/** A line with what is configured on it. */
export interface LineToProbe extends ProbedLine {
  readonly services: Config["services"];
}

/**
 * Sends each service of a line that no process holds its probe, which reads and changes nothing, and says what the answers mean.
 * Nothing else is ever sent.
 */
export async function diagnoseLine(line: LineToProbe, host: Host, progress: (text: string) => void): Promise<Finding[]> {
  const { probes, skipped } = probesOf(line);
  if (probes.length === 0) return skipped;
  return [...(await probe(line, probes, host, progress)), ...skipped];
}

async function probe(
  line: LineToProbe,
  probes: readonly ServiceProbe[],
  host: Host,
  progress: (text: string) => void,
): Promise<Finding[]> {
  try {
    const open = await host.open(line.config);
    return answerFindings(line, probes, await probeServices({ config: line.config, open, probes, progress }));
  } catch (error) {
    return [openFailedFinding(line, error)];
  }
}

/** A probe for each service of a line that can be probed, and why the others can't. */
export function probesOf(line: LineToProbe): { readonly probes: readonly ServiceProbe[]; readonly skipped: Finding[] } {
  const probes: ServiceProbe[] = [];
  const skipped: Finding[] = [];
  for (const [service, config] of Object.entries(line.services)) {
    if (config.line !== line.name) continue;
    const why = skipReason(service, config, line.config);
    if (why === undefined) probes.push(new ServiceProbe(contractOnLine(config), config.merchantId, service));
    else skipped.push(finding("answer", "skipped", why, { line: line.name, service }));
  }
  return { probes, skipped };
}

/** Why a service isn't probed; undefined when it is. */
function skipReason(service: ServiceName, config: ServiceConfig, line: LineConfig): string | undefined {
  if (config.contract === "fiscal" && config.merchantId === undefined) {
    const why = `its probe can't be signed without services.${service}.merchantId`;
    return `${service} not tested: ${why}; at its start posline waits for silence instead`;
  }
  if (line.recovery === "quiet") return `${service} not tested: "recovery" is "quiet", so posline sends no probes on this line`;
  return undefined;
}

export function openFailedFinding({ name, device }: ProbedLine, error: unknown): Finding {
  if (error instanceof OpenError) return openErrorFinding("open", error, { line: name });
  return causeFinding("open", "bad", cannotOpen(device, String(error)), { line: name });
}

function notCleanFinding({ name, device }: ProbedLine): Finding {
  return finding("line", "warn", "the line did not fall silent before it was closed", {
    line: name,
    cause: "the device sends without being asked",
    cure: `posline tap --raw --line ${quoted(device)} shows what it sends`,
  });
}

/** The line that was probed. */
export interface ProbedLine {
  readonly name: string;
  readonly config: LineConfig;
  /** Its device, as a command takes it. */
  readonly device: string;
  /** All usual speeds and both readings of CRC16 were tried, so nothing advises to. */
  readonly scanned?: boolean;
}

/** What the answers of a line's services say, and what their silence does. What concerns the whole line comes first, and once. */
export function answerFindings(line: LineToProbe, probes: readonly ServiceProbe[], result: ProbeResult): Finding[] {
  const anyAnswer = probes.some(({ answer, odd }) => answer !== undefined || odd);
  const ofLine = lineFindings(line, probes, result, anyAnswer);
  const isExplained = ofLine.some(({ level }) => level === "bad");
  const ofServices = probes.flatMap((probe) => {
    if (!probe.pending && probe.answer === undefined) return [];
    const more = { line: line.name, service: probe.service, frames: probe.frames };
    if (probe.answer?.kind === "answer") return [answeredFinding(line, probe, probe.answer, more)];
    if (probe.answer?.kind === "error") return [errorFinding(probe, probe.answer, more)];
    return [unansweredFinding(line, probe, { anyAnswer, isExplained }, more)];
  });
  const unclean = result.leftClean || result.lost !== undefined ? [] : [notCleanFinding(line)];
  return [...ofLine, ...ofServices, ...unclean];
}

/** How fast and by what a service answered. */
function answeredFinding(
  line: ProbedLine,
  probe: ServiceProbe,
  { json, crc16, ms }: ProbeAnswer,
  more: FindingDetails,
): Finding {
  const { config } = line;
  const { route } = probe.contract.probe;
  const fact = `${probe.service} answered ${route} in ${timeOf(ms)} at ${config.baudRate} baud: ${capabilitiesText(json)}`;
  if (usesOtherCrc16(probe, config)) return finding("answer", "note", `${fact}; with ${namesOfCrc16[crc16]}`, more);
  if (!probe.late) return finding("answer", "ok", fact, more);
  const cause = `the answer took longer than ${probeAnswerMs / 1_000} s: the terminal was busy, or is still starting`;
  const cure = "wait for the terminal's idle screen, and run this command again";
  return finding("answer", "warn", `${fact}; that is late`, { ...more, cause, cure });
}

/** The answer is whole only by the reading of CRC16 that isn't configured. */
function usesOtherCrc16({ contract, answer }: ServiceProbe, { crc16 }: LineConfig): boolean {
  return contract.framing === "length" && answer !== undefined && answer.crc16 !== crc16;
}

export const namesOfCrc16 = { arc: "CRC-16/ARC", umts: "CRC-16/UMTS" } as const;

const timeOf = (ms: number) => (ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1_000).toFixed(1)} s`);

/** Characters of a terminal's own words that are shown, and names. */
const messageMax = 80;
const namesMax = 8;

/** What the service says that it can do. */
function capabilitiesText(json: JsonObject): string {
  const data = isObject(json["data"]) ? json["data"] : {};
  for (const operations of [json["operations"], data["operations"]]) {
    if (isTexts(operations)) return `${operations.length} operations`;
  }
  const systems = Array.isArray(data["systems"]) ? data["systems"] : [];
  const names = systems.flatMap((system: unknown) => (isObject(system) ? [String(system["name"])] : []));
  const shown = names.slice(0, namesMax).map((name) => maskCardNumbers(name).slice(0, messageMax));
  return names.length === 0 ? "no payment system" : `payment systems ${shown.join(", ")}`;
}

/** The line works, and the service refuses the probe. */
function errorFinding(probe: ServiceProbe, { json, ms }: ProbeAnswer, more: FindingDetails): Finding {
  const { contract, service } = probe;
  const code = typeof json["code"] === "number" ? json["code"] : undefined;
  const meaning = contract.codes.find((each) => each.code === code)?.meaning;
  const text = typeof json["message"] === "string" ? ` "${maskCardNumbers(json["message"]).slice(0, messageMax)}"` : "";
  const codeWords = code === undefined ? "without a code" : `with code ${code}${meaning === undefined ? "" : ` (${meaning})`}`;
  const fact = `${service} answered ${contract.probe.route} in ${timeOf(ms)} with an error, ${codeWords}${text}`;
  if (contract.faultCodes.sign === code && contract.envelope === "form") {
    const cause = "the line works, but merchantId isn't the one that the terminal has";
    const cure =
      "compare services.fiscal.merchantId (or the file that holds it) with the terminal's, also spaces and upper case";
    return finding("answer", "bad", fact, { ...more, cause, cure });
  }
  const cause = "the line works, but this service can't prove that it is clean: posline waits for silence instead";
  const cure = `ask the terminal's vendor to enable ${contract.probe.route}, or remove services.${service} from the configuration`;
  return finding("answer", "warn", fact, { ...more, cause, cure });
}

/** The line works, and what comes isn't what the contract says. */
function oddFinding({ service, contract }: ServiceProbe, level: "note" | "warn", more: FindingDetails): Finding {
  const fact = `${service} answered ${contract.probe.route} with something that its contract doesn't have`;
  const cause =
    "the terminal's firmware is of another version or speaks another contract, unless this was the answer to an earlier request";
  const cure =
    "run this command again; if it says the same, ask the terminal's vendor whether its firmware is of the contract's version";
  return finding("answer", level, fact, { ...more, cause, cure });
}

interface LineOutcome {
  /** Some service of the line answered. */
  readonly anyAnswer: boolean;
  /** A finding about the whole line says why this service didn't answer. */
  readonly isExplained: boolean;
}

/** Nothing came, or nothing that is an answer. */
function unansweredFinding(
  line: ProbedLine,
  probe: ServiceProbe,
  { anyAnswer, isExplained }: LineOutcome,
  more: FindingDetails,
): Finding {
  const { service, waitResult, receivedBytes, sent } = probe;
  const { route } = probe.contract.probe;
  if (waitResult === "stuck") {
    const cause = `flow control ("${line.config.flowControl}") stops it: the other end doesn't say that it is ready`;
    const cure = `set "flowControl": "none" for line ${line.name}, or repair the cable's CTS wire`;
    return finding("answer", "bad", `${service} not tested: the line takes no bytes`, { ...more, cause, cure });
  }
  if (waitResult === "lost") return finding("answer", "note", `${service}: the line was lost before an answer came`, more);
  const level = isExplained ? "note" : "bad";
  if (probe.odd) return oddFinding(probe, isExplained ? "note" : "warn", more);
  if (receivedBytes > 0) {
    const came = `${receivedBytes} ${receivedBytes === 1 ? "byte" : "bytes"} came`;
    return finding("answer", level, `${service}: ${came} after ${route}, and no answer among them`, more);
  }
  const readings = sent.length > 1 ? ", with either CRC16" : "";
  const fact = `${service} did not answer ${route}${readings}`;
  if (!anyAnswer) return finding("answer", level, fact, more);
  const cause =
    "another service on this line answers, so cable and speed are right: the terminal doesn't serve it on this line";
  const cure = `switch ${service} on in the terminal, or remove services.${service} from the configuration`;
  return finding("answer", level, fact, { ...more, cause, cure });
}

/** What concerns the whole line: the checksum it uses, its silence, and bytes that are not an answer. */
function lineFindings(line: LineToProbe, probes: readonly ServiceProbe[], result: ProbeResult, anyAnswer: boolean): Finding[] {
  const findings: Finding[] = [];
  const more = { line: line.name };
  if (result.lost !== undefined) {
    const cure = "check plug and cable; dmesg | tail shows what the kernel says of it";
    findings.push(finding("line", "bad", `the line was lost during the test: ${result.lost}`, { ...more, cure }));
  }
  if (probes.some((probe) => usesOtherCrc16(probe, line.config))) findings.push(otherCrc16Finding(line));
  const garbage = probes.find((probe) => probe.garbage.length > 0)?.garbage;
  const bytes = garbage ?? result.before;
  const broken = probes.find(({ pending, broken }) => pending && broken);
  if (bytes.length > 0) {
    const sent = garbage === undefined ? [] : probes.flatMap((probe) => probe.sent.map(({ bytes }) => bytes));
    const isHarmless = anyAnswer && (garbage === undefined || findings.length > 0 || probes.every(({ pending }) => !pending));
    findings.push(bytesFinding(line, bytePatternOf(bytes, sent), bytes, isHarmless));
  } else if (broken !== undefined) findings.push(brokenFinding(line, broken));
  const unexplained = findings.length === 0 && !anyAnswer;
  const silent = probes.filter(({ pending }) => pending);
  const nothingCame = silent.every(({ receivedBytes, waitResult }) => receivedBytes === 0 && waitResult === "silence");
  if (unexplained && silent.length > 0 && nothingCame) findings.push(silenceFinding(line, silent));
  return findings;
}

function otherCrc16Finding({ name, config }: ProbedLine): Finding {
  const other = otherReading(config.crc16);
  const cure = `set "crc16": "${other}" for line ${name} in the configuration`;
  const what = `the terminal uses the ${namesOfCrc16[other]} checksum`;
  return finding("checksum", "bad", what, { line: name, cause: `line ${name} has "crc16": "${config.crc16}"`, cure });
}

/** Frames came whose checksum is wrong by any reading. */
function brokenFinding({ name }: ProbedLine, { contract }: ServiceProbe): Finding {
  const readings = contract.framing === "length" ? ", with either CRC16" : "";
  return finding("checksum", "bad", `answers come with a wrong checksum${readings}`, { line: name, ...damaged });
}

const damaged = {
  cause: "bytes are lost or changed on the way",
  cure: "1. try another cable and adapter, away from mains wires; 2. compare parity, dataBits and stopBits with the terminal's",
} as const;

/** Not one byte came: what it may be, the likeliest first. */
function silenceFinding({ config, name, services, scanned = false }: LineToProbe, probes: readonly ServiceProbe[]): Finding {
  const hasCrc16 = probes.some(({ contract }) => contract.framing === "length");
  const isOff = ["the terminal is off, asleep or still starting", "switch it on and wait for its idle screen"];
  const isCut = [
    "the cable is not plugged in, or is of the wrong kind",
    "check the cable, and try the other kind (straight or null modem)",
  ];
  const isUnset = ["it is not set up to be driven by a till", "choose the till (ECR) protocol for this port in its menu"];
  const isOther = scanned
    ? ["its parity, data bits or stop bits are different", "compare parity, dataBits and stopBits with its menu"]
    : [
        `its speed is not ${config.baudRate} baud`,
        `posline doctor --line ${quoted(name)} --scan tries the usual speeds${hasCrc16 ? " and both CRC16" : ""}`,
      ];
  // A terminal hears nothing in what is meant for one of another kind.
  const others = new Set(Object.values(services).flatMap(({ line }) => (line === name ? [] : [line])));
  const isSwapped = [
    `the terminal of line ${[...others].join(" or ")} is at this cable`,
    "follow the cable to its terminal, and swap the cables, or the lines' paths in the configuration",
  ];
  const pairs = [isOff, isCut, ...(others.size === 0 ? [] : [isSwapped]), isOther, isUnset];
  const numbered = (at: 0 | 1) => pairs.map((pair, index) => `${index + 1}. ${pair[at]}`).join("; ");
  const what = scanned ? "not one byte came back, at any speed" : "not one byte came back";
  return finding("silence", "bad", what, { line: name, cause: numbered(0), cure: numbered(1) });
}

/** What bytes are that are not an answer, and what to do about it. */
function bytesFinding(line: ProbedLine, pattern: BytePattern, bytes: Buffer, isHarmless: boolean): Finding {
  const { what, cause, cure } = patternTexts(pattern, line);
  return finding("bytes", isHarmless ? "warn" : "bad", `${what}: ${headOf(bytes)}`, { line: line.name, cause, cure });
}

interface PatternTexts {
  readonly what: string;
  readonly cause: string;
  readonly cure: string;
}

function patternTexts(pattern: BytePattern, { name, config, device, scanned = false }: ProbedLine): PatternTexts {
  const tap = `posline tap --raw --line ${quoted(device)}`;
  const scan = `posline doctor --line ${quoted(name)} --scan`;
  switch (pattern) {
    case "echo":
      return {
        what: "what was sent comes back",
        cause:
          "1. the line is looped: a test plug, or RX and TX joined; 2. a computer's console is at the other end; " +
          "3. a two-wire adapter (RS-485) hears itself, which does no harm where the terminal answers",
        cure: "1. and 2. check the plug and the cable, and that a terminal is at the other end; 3. nothing is to be done",
      };
    case "at commands":
      return {
        what: "AT commands came (a modem's language)",
        cause: "ModemManager, here or at the other end, takes the line for a modem",
        cure: "sudo systemctl disable --now ModemManager, on each computer of this line",
      };
    case "login prompt":
      return {
        what: "a login prompt comes",
        cause: "the other end is a computer's console, not a terminal",
        cure: "plug the cable into the terminal's port for a till (ECR), or switch the console off there",
      };
    case "damaged answer":
      return { what: "damaged answers came", ...damaged };
    case "text":
      return {
        what: "text came that is not an answer",
        cause:
          "1. another device is at the other end (a scanner, a scale, a modem); 2. the terminal's port is set to another protocol",
        cure: `1. ${tap} shows what it sends; 2. choose the till (ECR) protocol for this port in the terminal's menu`,
      };
    case "other baud rate":
      return {
        what: "bytes came that were sent at another speed",
        cause: `the terminal's speed is not ${config.baudRate} baud`,
        cure: scanned ? "look its speed up in its menu, and set baudRate" : `${scan} finds the speed to set as baudRate`,
      };
    case "break":
      return {
        what: "only zeros came",
        cause: "the line is held down (a break): the terminal has no power, or the cable's RX wire is grounded",
        cure: "1. switch the terminal on; 2. check the cable",
      };
    default:
      return {
        what: "bytes came that are not an answer",
        cause: "1. another speed, parity or protocol; 2. a bad cable; 3. another device",
        cure:
          (scanned ? "1. look the speed up in the terminal's menu" : `1. ${scan} tries the usual speeds`) +
          `; 2. compare parity, dataBits and stopBits with the terminal's; 3. ${tap} shows what comes`,
      };
  }
}
