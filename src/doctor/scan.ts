import type { LineConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import { lineDefaults } from "../config/limits.ts";
import { nowMs } from "../core/clock.ts";
import { bytePatternOf } from "../trouble/byte-patterns.ts";
import type { Crc16 } from "../wire/crc16.ts";
import { answerFindings, type LineToProbe, namesOfCrc16, openFailedFinding, probesOf } from "./diagnosis.ts";
import { type Finding, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { type ProbePace, type ProbeResult, probeServices, type ServiceProbe } from "./probe.ts";

/**
 * Finds the speed of a terminal and its reading of CRC16 by trying them: each speed is one opening of the line, on which each service is
 * probed by both readings. Only probes are sent, and a scan is over within a minute, whatever comes.
 */

/** The speeds that terminals are set to, the likeliest first; the configured one is tried before them. */
const usualSpeeds = [115_200, 9_600, 57_600, 38_400, 19_200, 4_800, 2_400, 1_200, 28_800, 14_400] as const;

/** Milliseconds after which no other speed is tried, and after which a late answer is no longer waited for. */
const tryMsMax = 50_000;
const scanMsMax = 55_000;

/** Milliseconds that an answer may take to begin, and all waits for one together. */
const scanAnswerMs = 1_500;
const answersMsMax = 28_000;

/** Milliseconds that a begun frame may take: 300 bytes at 1200 baud. */
const scanFrameMs = 2_500;

/** The outcome at one speed. */
export interface Pass {
  readonly config: LineConfig;
  readonly probes: readonly ServiceProbe[];
  readonly result: ProbeResult;
}

export async function scanLine(line: LineToProbe, host: Host, progress: (text: string) => void): Promise<Finding[]> {
  return scanFindings(line, await scanSpeeds(line, host, progress));
}

/** The outcome at each speed that was tried, and why no more could be. */
export interface Scan {
  readonly passes: readonly Pass[];
  /** Count of speeds that there are to try. */
  readonly speeds: number;
  readonly skipped: readonly Finding[];
  /** Why the line couldn't be opened; undefined if it could each time. */
  readonly cutShort?: { readonly error: unknown };
}

/** @param failed Called after each speed at which no service answered. */
export async function scanSpeeds(
  line: LineToProbe,
  host: Host,
  progress: (text: string) => void,
  failed: (pass: Pass) => void = () => {},
): Promise<Scan> {
  const { probes: first, skipped } = probesOf(line);
  const passes: Pass[] = [];
  if (first.length === 0) return { passes, speeds: 0, skipped };
  // What is at the far end of a TCP connection has the speed that it was given there.
  const isSerial = !isTcpPath(line.config.path);
  const speeds = [...new Set([line.config.baudRate, ...(isSerial ? usualSpeeds : [])])];
  const sendings = first.reduce((sum, { contract }) => sum + (contract.framing === "length" ? 2 : 1), 0);
  const answerMs = Math.min(scanAnswerMs, answersMsMax / (speeds.length * sendings));
  const beganMs = nowMs();
  const leftMs = () => Math.max(0, beganMs + scanMsMax - nowMs());
  const scan = { passes, speeds: speeds.length, skipped };
  try {
    for (const [index, baudRate] of speeds.entries()) {
      if (index > 0 && nowMs() >= beganMs + tryMsMax) break;
      const isLast = index === speeds.length - 1;
      const lateMs = (anyAnswer: boolean) => (anyAnswer || isLast ? Math.min(line.config.lateReplyMs, leftMs()) : 0);
      // What goes on and on at the last speed must not hold the scan up.
      const frameMs = Math.min(scanFrameMs, leftMs() / sendings);
      const pace: ProbePace = { answerMs, frameMs, lateMs };
      const pass = await tryOut(line, { ...line.config, baudRate }, { host, progress, pace });
      passes.push(pass);
      if (!answered(pass)) failed(pass);
      if (isTelling(pass)) break;
    }
  } catch (error) {
    return { ...scan, cutShort: { error } };
  }
  return scan;
}

/** The first speed at which a service answered, with the reading of CRC16 that it answered by; undefined if none did. */
export function answeringPass({ passes }: Scan): (Pass & { readonly crc16: Crc16 | undefined }) | undefined {
  const pass = passes.find(answered);
  if (pass === undefined) return undefined;
  const proven = pass.probes.find(({ contract, answer }) => contract.framing === "length" && answer !== undefined);
  return { ...pass, crc16: proven?.answer?.crc16 };
}

export function scanFindings(line: LineToProbe, scan: Scan): Finding[] {
  const { passes, speeds, skipped, cutShort } = scan;
  if (speeds === 0) return [...skipped];
  if (cutShort !== undefined) return [...cutShortFindings(line, cutShort.error, passes, speeds), ...skipped];
  return [...passFindings(line, scan), ...skipped];
}

interface Trying {
  readonly host: Host;
  readonly progress: (text: string) => void;
  readonly pace: ProbePace;
}

async function tryOut(line: LineToProbe, config: LineConfig, { host, progress, pace }: Trying): Promise<Pass> {
  const { probes } = probesOf(line);
  const open = await host.open(config);
  const said = (text: string) => progress(`${config.baudRate} baud: ${text}`);
  return { config, probes, result: await probeServices({ config, open, probes, progress: said, pace }) };
}

const answered = ({ probes }: Pass) => probes.some(({ answer }) => answer !== undefined);

/** Another speed would tell nothing more: a service answered, the line was lost or is stuck, or what came is known for what it is. */
function isTelling(pass: Pass): boolean {
  const { probes, result } = pass;
  const isStopped = result.lost !== undefined || probes.some(({ waitResult }) => waitResult === "stuck");
  return answered(pass) || isStopped || isRecognised(pass);
}

/** True if the bytes can only be read so at the right speed, or come back at each (an echo). */
function isRecognised({ probes, result }: Pass): boolean {
  const sent = probes.flatMap((probe) => probe.sent.map(({ bytes }) => bytes));
  const came = [result.before, ...probes.map(({ garbage }) => garbage)].filter(({ length }) => length > 0);
  return came.some((bytes) => /^(?:echo|at commands|login prompt)$/.test(bytePatternOf(bytes, sent)));
}

function passFindings(line: LineToProbe, scan: Scan): Finding[] {
  const { passes, speeds } = scan;
  const { name } = line;
  const found = answeringPass(scan);
  if (found !== undefined) {
    const config = { ...found.config, crc16: found.crc16 ?? found.config.crc16 };
    const setting = settingFinding(line, config, found.crc16 !== undefined);
    return [setting, ...answerFindings({ ...line, config }, found.probes, found.result)];
  }
  const isHeard = ({ probes, result }: Pass) =>
    result.before.length > 0 || probes.some(({ receivedBytes }) => receivedBytes > 0);
  const best = passes.find(isTelling) ?? passes.find(isHeard) ?? passes[0];
  if (best === undefined) return [];
  const { config, probes, result } = best;
  const findings = answerFindings({ ...line, config, scanned: true }, probes, result);
  return [...findings, triedFinding(name, passes, speeds)];
}

/** The line can't be opened any more: why, and what had gone over it until then. */
function cutShortFindings(line: LineToProbe, error: unknown, passes: readonly Pass[], speeds: number): Finding[] {
  const failed = openFailedFinding(line, error);
  const last = passes.at(-1);
  if (last === undefined) return [failed];
  const frames = last.probes.flatMap((probe) => probe.frames);
  return [{ ...failed, frames }, triedFinding(line.name, passes, speeds)];
}

function triedFinding(line: string, { length }: readonly Pass[], speeds: number): Finding {
  const tried = length === speeds ? `all ${speeds} speeds` : `${length} of ${speeds} speeds`;
  return finding("scan", "note", `no setting was found: ${tried} were tried`, { line });
}

/** The setting that works, as the line's entry in the configuration. @param isCrc16Known Some service has a CRC16. */
function settingFinding({ name, config: configured }: LineToProbe, found: LineConfig, isCrc16Known: boolean): Finding {
  const words = ({ baudRate, crc16 }: LineConfig) => `${baudRate} baud${isCrc16Known ? ` with ${namesOfCrc16[crc16]}` : ""}`;
  const setting = entryOf(name, found, isCrc16Known);
  if (found.baudRate === configured.baudRate && found.crc16 === configured.crc16) {
    return finding("scan", "ok", `the terminal answers at ${words(found)}, as configured`, { line: name, setting });
  }
  const what = `the terminal answers at ${words(found)}, and line ${name} is set to ${words(configured)}`;
  const cure = `replace line ${name} in the configuration with the last line of this output`;
  return finding("scan", "bad", what, { line: name, cure, setting });
}

function entryOf(name: string, line: LineConfig, isCrc16Known: boolean): string {
  const { path, ...others } = line;
  const defaults: Readonly<Record<string, unknown>> = lineDefaults;
  const isNamed = (key: string) => key === "baudRate" || (key === "crc16" && isCrc16Known);
  const settings = [["path", path] as const, ...Object.entries(others)].filter(
    ([key, value]) => isNamed(key) || defaults[key] !== value,
  );
  const members = settings.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  return `${JSON.stringify(name)}: { ${members.join(", ")} }`;
}
