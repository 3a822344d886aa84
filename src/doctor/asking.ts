import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import { contracts } from "../contract/contracts.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import { cannotOpen } from "../device/open-errors.ts";
import { OpenError } from "../device/transport.ts";
import { type AskedLine, answerFindings } from "./answers.ts";
import type { Box } from "./box.ts";
import { refusal } from "./device.ts";
import { type Finding, finding, trouble } from "./finding.ts";
import { interview } from "./interview.ts";
import { Question } from "./question.ts";

/** A line with what is configured on it. */
export interface LineToAsk extends AskedLine {
  readonly services: Config["services"];
}

/**
 * Asks each service of a line that nobody holds its barrier, which reads and changes nothing, and says what the answers mean.
 * Nothing else is ever sent.
 */
export async function askLine(line: LineToAsk, box: Box, progress: (text: string) => void): Promise<Finding[]> {
  const served = serviceNames.flatMap((service) => {
    const config = line.services[service];
    return config?.line === line.name ? [{ service, config }] : [];
  });
  const skipped = served.flatMap(({ service, config }) => {
    const why = whyNotAsked(service, config, line.config);
    return why === undefined ? [] : [{ service, why }];
  });
  const asked = served.filter(({ service }) => !skipped.some((each) => each.service === service));
  const findings = skipped.map(({ service, why }) => finding("answer", "skipped", why, { line: line.name, service }));
  if (asked.length === 0) return findings;
  const questions = asked.map(({ service, config }) => new Question(contracts[service], config.merchantId));
  try {
    const open = await box.open(line.config);
    const told = await interview({ config: line.config, open, questions, progress });
    findings.unshift(...answerFindings(line, questions, told));
    if (!told.leftClean && told.lost === undefined) findings.push(notClean(line));
  } catch (error) {
    findings.unshift(notOpened(line, error));
  }
  return findings;
}

/** Why a service isn't asked; undefined when it is. */
function whyNotAsked(service: ServiceName, config: ServiceConfig, line: LineConfig): string | undefined {
  if (service === "fiscal" && config.merchantId === undefined) {
    const why = "without services.fiscal.merchantId the question can't be signed";
    return `fiscal isn't asked: ${why}; at its start posline waits for silence instead`;
  }
  if (line.recovery === "quiet") return `${service} isn't asked: "recovery" is "quiet", so posline asks nothing on this line`;
  return undefined;
}

function notOpened({ name, device }: LineToAsk, error: unknown): Finding {
  if (error instanceof OpenError) return refusal("open", error, { line: name });
  return trouble("open", "bad", cannotOpen(device, String(error)), { line: name });
}

function notClean({ name }: LineToAsk): Finding {
  const cause = "something sends on this line without being asked";
  return finding("line", "warn", "the line did not fall silent before it was left", {
    line: name,
    cause,
    cure: "look at posline tap --raw",
  });
}
