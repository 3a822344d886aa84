import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import { contractOnLine } from "../contract/contracts.ts";
import type { ServiceName } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { isObject, isTexts, type JsonObject, objectIn } from "../core/json-object.ts";
import { cannotOpen, telnet, wordsOf } from "../device/open-errors.ts";
import { OpenError } from "../device/transport.ts";
import { bytePatternOf } from "../trouble/byte-patterns.ts";
import {
  echoes,
  likelyCause,
  notServed,
  otherThanContract,
  rawTap,
  refusalWords,
  refused,
  silent,
  type TroubledLine,
} from "../trouble/causes.ts";
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
  const { config } = line;
  try {
    const result = await probeServices({ config, open: await host.open(config), probes, progress });
    return [...answerFindings(line, probes, result), ...skipped];
  } catch (error) {
    return [openFailedFinding(line, error), ...skipped];
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

export function openFailedFinding({ name, config }: ProbedLine, error: unknown): Finding {
  if (error instanceof OpenError) return openErrorFinding("open", error, { line: name });
  return causeFinding("open", "bad", cannotOpen(config.path, String(error)), { line: name });
}

function notCleanFinding(line: ProbedLine): Finding {
  return finding("line", "warn", "the line did not fall silent before it was closed", {
    line: line.name,
    cause: "the device sends without being asked",
    cure: `${rawTap(line)} shows what it sends`,
  });
}

/** The line that was probed. */
export interface ProbedLine extends TroubledLine {
  readonly config: LineConfig;
}

/** The findings about a line's answers and silences. Findings about the whole line come first, each once. */
export function answerFindings(line: LineToProbe, probes: readonly ServiceProbe[], result: ProbeResult): Finding[] {
  const anyAnswer = probes.some(({ answer, odd }) => answer !== undefined || odd);
  const ofLine = lineFindings(line, probes, result, anyAnswer);
  const isExplained = ofLine.some(({ level }) => level === "bad");
  const ofServices = probes.flatMap((probe) => {
    if (!probe.pending && probe.answer === undefined) return [];
    const more = { line: line.name, service: probe.service, frames: probe.frames };
    if (probe.answer?.kind === "answer") return [answeredFinding(line, probe, probe.answer, more)];
    if (probe.answer?.kind === "error") return [errorFinding(line, probe, probe.answer, more)];
    return [unansweredFinding(line, probe, { anyAnswer, isExplained }, more)];
  });
  const unclean = result.leftClean || result.lost !== undefined ? [] : [notCleanFinding(line)];
  return [...ofLine, ...ofServices, ...unclean];
}

/** How fast and by what a service answered. */
function answeredFinding(line: ProbedLine, probe: ServiceProbe, answer: ProbeAnswer, more: FindingDetails): Finding {
  const { config } = line;
  const fact = answerText(probe, answer, config);
  if (usesOtherCrc16(probe, config)) return finding("answer", "note", `${fact}; with ${namesOfCrc16[answer.crc16]}`, more);
  if (!probe.late) return finding("answer", "ok", fact, more);
  const cause = `the answer took longer than ${probeAnswerMs / 1_000} s`;
  return finding("answer", "warn", `${fact}; that is late`, { ...more, cause, cure: likelyCause("late", line).cure });
}

/** What a service answered its probe, and how fast. */
export function answerText(
  { contract, service }: ServiceProbe,
  { kind, json, ms }: ProbeAnswer,
  { baudRate, path }: LineConfig,
): string {
  const fact = `${service} answered ${contract.probe.route} in ${timeOf(ms)}`;
  const speed = isTcpPath(path) ? "" : ` at ${baudRate} baud`;
  if (kind === "answer") return `${fact}${speed}: ${capabilitiesText(json)}`;
  const code = codeIn(json);
  const meaning = contract.codes.find((each) => each.code === code)?.meaning;
  const text = typeof json["message"] === "string" ? ` "${maskCardNumbers(json["message"]).slice(0, messageMax)}"` : "";
  const codeWords = code === undefined ? "without a code" : `with code ${code}${meaning === undefined ? "" : ` (${meaning})`}`;
  return `${fact} with an error, ${codeWords}${text}`;
}

const codeIn = (json: JsonObject) => (typeof json["code"] === "number" ? json["code"] : undefined);

/** The answer is whole only by the reading of CRC16 that isn't configured. */
function usesOtherCrc16({ contract, answer }: ServiceProbe, { crc16 }: LineConfig): boolean {
  return contract.framing === "length" && answer !== undefined && answer.crc16 !== crc16;
}

export const namesOfCrc16 = { arc: "CRC-16/ARC", umts: "CRC-16/UMTS" } as const;

const timeOf = (ms: number) => (ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1_000).toFixed(1)} s`);

/** Characters of a terminal's own words that are shown, and names. */
const messageMax = 80;
const namesMax = 8;

/** The operations or payment systems that the service's answer lists. */
function capabilitiesText(json: JsonObject): string {
  const data = objectIn(json["data"]);
  for (const operations of [json["operations"], data["operations"]]) {
    if (isTexts(operations)) return `${operations.length} operations`;
  }
  const systems = Array.isArray(data["systems"]) ? data["systems"] : [];
  const names = systems.flatMap((system: unknown) => (isObject(system) ? [String(system["name"])] : []));
  const shown = names.slice(0, namesMax).map((name) => maskCardNumbers(name).slice(0, messageMax));
  return names.length === 0 ? "no payment system" : `payment systems ${shown.join(", ")}`;
}

/** The line works, and the service refuses the probe. */
function errorFinding(line: ProbedLine, probe: ServiceProbe, answer: ProbeAnswer, more: FindingDetails): Finding {
  const { contract, service } = probe;
  const { cause, cure } = refused({ name: service, framing: contract.framing }, refusalWords(codeIn(answer.json)), line.name);
  const level = refusesSign(probe) ? "bad" : "warn";
  return finding("answer", level, answerText(probe, answer, line.config), { ...more, cause, cure });
}

/** True if the service's answer is that it doesn't take the probe's sign. */
export function refusesSign({ contract, answer }: ServiceProbe): boolean {
  if (answer?.kind !== "error" || contract.envelope !== "form") return false;
  return codeIn(answer.json) === contract.faultCodes.sign;
}

/** The line works, and what comes isn't what the contract says. */
function oddFinding(
  line: ProbedLine,
  { service, contract }: ServiceProbe,
  level: "note" | "warn",
  more: FindingDetails,
): Finding {
  const fact = `${service} answered ${contract.probe.route} with ${otherThanContract}`;
  const { cause, cure } = refused({ name: service, framing: contract.framing }, otherThanContract, line.name);
  const again = "run this command again, as an answer to an earlier request may come first; if it says the same";
  return finding("answer", level, fact, { ...more, cause, cure: `${again}, ${cure}` });
}

interface LineOutcome {
  /** True if any service of the line answered. */
  readonly anyAnswer: boolean;
  /** A finding about the whole line says why this service didn't answer. */
  readonly isExplained: boolean;
}

/** The finding for a service without an answer: nothing came, or only bytes that are none. */
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
  if (probe.odd) return oddFinding(line, probe, isExplained ? "note" : "warn", more);
  if (receivedBytes > 0) {
    const came = `${receivedBytes} ${receivedBytes === 1 ? "byte" : "bytes"} came`;
    return finding("answer", level, `${service}: ${came} after ${route}, and no answer among them`, more);
  }
  if (anyAnswer) return causeFinding("answer", level, notServed(service), more);
  const readings = sent.length > 1 ? ", with either CRC16" : "";
  return finding("answer", level, `${service} did not answer ${route}${readings}`, more);
}

/** Findings about the whole line: the checksum it uses, its silence, and bytes that are not an answer. */
function lineFindings(line: LineToProbe, probes: readonly ServiceProbe[], result: ProbeResult, anyAnswer: boolean): Finding[] {
  const findings: Finding[] = [];
  const more = { line: line.name };
  const named = telnet(line.config.path);
  if (result.lost === wordsOf(named)) findings.push(causeFinding("line", "bad", named, more));
  else if (result.lost !== undefined) {
    const ofDevice = "check plug and cable; sudo dmesg | tail shows what the kernel says of it";
    const cure = isTcpPath(line.config.path) ? "check the port, and the far end's own log" : ofDevice;
    findings.push(finding("line", "bad", `the line was lost during the test: ${result.lost}`, { ...more, cure }));
  }
  if (probes.some((probe) => usesOtherCrc16(probe, line.config))) findings.push(otherCrc16Finding(line));
  const garbage = probes.find((probe) => probe.garbage.length > 0)?.garbage;
  const bytes = garbage ?? result.before;
  const broken = probes.find(({ pending, broken }) => pending && broken);
  if (bytes.length > 0) {
    const sent = garbage === undefined ? [] : probes.flatMap((probe) => probe.sent.map(({ bytes }) => bytes));
    const isHarmless = anyAnswer && (garbage === undefined || findings.length > 0 || probes.every(({ pending }) => !pending));
    findings.push(bytesFinding(line, bytes, sent, isHarmless));
  } else if (broken !== undefined) findings.push(causeFinding("checksum", "bad", likelyCause("checksum", line), more));
  const unexplained = findings.length === 0 && !anyAnswer;
  const silent = probes.filter(({ pending }) => pending);
  const nothingCame = silent.every(({ receivedBytes, waitResult }) => receivedBytes === 0 && waitResult === "silence");
  if (unexplained && silent.length > 0 && nothingCame) findings.push(silenceFinding(line, silent));
  return findings;
}

function otherCrc16Finding(line: ProbedLine): Finding {
  const cause = `line ${line.name} has "crc16": "${line.config.crc16}"`;
  return causeFinding("checksum", "bad", likelyCause("other crc16", line), { line: line.name, cause });
}

/** The finding for a line on which not one byte came. */
function silenceFinding(line: LineToProbe, probes: readonly ServiceProbe[]): Finding {
  const hasCrc16 = probes.some(({ contract }) => contract.framing === "length");
  const others = [...new Set(Object.values(line.services).flatMap((other) => (other.line === line.name ? [] : [other.line])))];
  const { cause, cure } = silent(line, hasCrc16, others);
  return finding("silence", "bad", line.scanned ? `${cause}, at any speed` : cause, { line: line.name, cure });
}

/** The finding that names what bytes are that are not an answer, and what to do about it. */
function bytesFinding(line: ProbedLine, bytes: Buffer, sent: readonly Buffer[], isHarmless: boolean): Finding {
  const pattern = bytePatternOf(bytes, sent);
  const { cause, cure } = pattern === "echo" && isHarmless ? echoes() : likelyCause(pattern, line);
  return finding("bytes", isHarmless ? "warn" : "bad", `${cause}: ${headOf(bytes)}`, { line: line.name, cure });
}
