import type { Config, LineConfig } from "../config/config.ts";
import { draftOfOneLine } from "../config/draft.ts";
import { resolveDraft } from "../config/resolve.ts";
import { contractOnLine } from "../contract/contracts.ts";
import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { answerText, type LineToProbe, refusesSign } from "./diagnosis.ts";
import type { Finding } from "./finding.ts";
import type { Host } from "./host.ts";
import { type ProbePace, probeServices, ServiceProbe } from "./probe.ts";
import { answeringPass, type Pass, scanFindings, scanSpeeds } from "./scan.ts";

/**
 * Finds which services a terminal has, and by which speed and checksum they answer, by probes alone. Fiscal answers a probe that is signed
 * with another merchant's id too: it refuses the sign, and by that is there.
 */

/** A service that answered. */
export interface AnsweringService {
  readonly name: ServiceName;
  readonly contract: ContractName;
  /** What it answered and how fast, in words. */
  readonly fact: string;
  /** It refused the sign of the probe. */
  readonly refusesSign: boolean;
}

export interface SearchedTerminal {
  /** The line's settings by which it answered. */
  readonly config: LineConfig;
  readonly crc16: LineConfig["crc16"] | undefined;
  readonly services: readonly AnsweringService[];
  readonly silent: readonly ServiceName[];
}

/** Milliseconds for which a missing answer is waited for: a service that is slower is taken for one that the terminal hasn't. */
const lateMsMax = 10_000;

/** Signs a probe where no merchant's id is known. */
const standIn = "posline-setup";

/** The line to search on: a configured one with its services, and in any case one service of each contract. */
export function lineToSearch(
  { name, config }: Pick<LineToProbe, "name" | "config">,
  services: Config["services"],
  merchantId: string | undefined,
): LineToProbe {
  const own = Object.entries(services).filter(([, each]) => each.line === name && each.upstream === undefined);
  const usual = resolveDraft(draftOfOneLine(name), { file: undefined, marginMs: 0, stateFolders: undefined }, []).services;
  const missing = contractNames.flatMap((contract) => {
    const service = usual[contract];
    return service === undefined || own.some(([, each]) => each.contract === contract) ? [] : [[contract, service] as const];
  });
  const signed = [...own, ...missing].map(([service, each]) => {
    const id = merchantId ?? each.merchantId ?? standIn;
    return [service, each.contract === "fiscal" ? { ...each, merchantId: id } : each] as const;
  });
  const lateReplyMs = Math.min(config.lateReplyMs, lateMsMax);
  return { name, config: { ...config, lateReplyMs }, services: Object.fromEntries(signed) };
}

/**
 * @param tried Called with each speed at which no service answered, in words.
 * @returns the terminal, or why none was found.
 */
export async function searchTerminal(
  line: LineToProbe,
  host: Host,
  tried: (text: string) => void,
): Promise<SearchedTerminal | readonly Finding[]> {
  const scan = await scanSpeeds(
    line,
    host,
    () => {},
    (pass) => tried(triedText(pass)),
  );
  const pass = answeringPass(scan);
  if (pass === undefined) return scanFindings(line, scan);
  const config = { ...pass.config, crc16: pass.crc16 ?? pass.config.crc16 };
  return {
    config,
    crc16: pass.crc16,
    services: pass.probes.flatMap((probe) => answering(probe, config)),
    silent: pass.probes.flatMap(({ service, answer }) => (answer === undefined ? [service] : [])),
  };
}

function triedText({ config, probes, result }: Pass): string {
  const bytes = result.before.length + probes.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0);
  const names = probes.map(({ service }) => service).join(", ");
  return `${config.baudRate} baud: no answer from ${names}${bytes === 0 ? "" : `, though ${bytes} bytes came`}`;
}

function answering(probe: ServiceProbe, config: LineConfig): readonly AnsweringService[] {
  const { answer, contract, service } = probe;
  if (answer === undefined) return [];
  const fact = answerText(probe, answer, config);
  return [{ name: service, contract: contract.service, fact, refusesSign: refusesSign(probe) }];
}

/** Milliseconds that a service which has answered already may take. */
const againPace: ProbePace = { answerMs: 5_000, frameMs: 2_500, lateMs: () => 0 };

/** Probes services once more, by settings that are known; gives those that answer. */
export async function probeAgain(
  line: LineToProbe,
  names: readonly ServiceName[],
  host: Host,
): Promise<readonly AnsweringService[]> {
  const { config } = line;
  const probes = names.flatMap((name) => {
    const service = line.services[name];
    return service === undefined ? [] : [new ServiceProbe(contractOnLine(service), service.merchantId, name)];
  });
  await probeServices({ config, open: await host.open(config), probes, progress: () => {}, pace: againPace });
  return probes.flatMap((probe) => answering(probe, config));
}
