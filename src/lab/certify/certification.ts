import type { LineConfig } from "../../config/config.ts";
import type { ContractName } from "../../core/call.ts";
import { nowMs } from "../../core/clock.ts";
import { messageOf } from "../../core/error-code.ts";
import type { OpenTransport } from "../../device/transport.ts";
import { type CaseResult, type Judged, untested } from "../report/judgement.ts";
import { answerRows } from "./answers.ts";
import { Asker, type CertifiedService, CheckEnd, contractPace, type Pace, type Sale } from "./asker.ts";
import { cardSales } from "./card-sales.ts";
import { type CertifyCheck, checksOf } from "./check.ts";
import { codePayments } from "./code-payments.ts";
import { documents } from "./documents.ts";
import { keptRows } from "./kept.ts";
import { firstRows } from "./transport.ts";
import { Wire } from "./wire.ts";

/** A certification: the checks of one line, one after the other, since one request is in flight. */

/** The services in the order in which they are asked. */
const services: readonly ContractName[] = ["bank", "qr", "fiscal"];

/** All checks in order: a service's frames first, then its answers, its sales, and at last all that it said. */
export const checks: readonly CertifyCheck[] = services.flatMap((service) => [
  ...checksOf(service, [...firstRows, ...answerRows]),
  ...checksOf(service, { bank: cardSales, qr: codePayments, fiscal: documents }[service], true),
  ...checksOf(service, keptRows),
]);

export interface CertificationOptions {
  readonly config: LineConfig;
  readonly open: OpenTransport;
  readonly services: readonly CertifiedService[];
  /** Those of other services are left out. */
  readonly checks: readonly CertifyCheck[];
  readonly sale?: Sale | undefined;
  readonly pace?: Pace;
  /** Begins every key of this run, and nothing that the terminal knows; by default made of the time. */
  readonly keys?: string;
  readonly judged: (judged: Judged) => void;
  /** Told which check begins. */
  readonly begins?: (check: CertifyCheck, index: number) => void;
}

/** @returns what came of each check, in their order. @throws OpenError saying why the line can't be opened. */
export async function certify(options: CertificationOptions): Promise<readonly Judged[]> {
  const { config, open, sale, judged, begins = () => {}, pace = contractPace } = options;
  const { keys = `certify-${Date.now().toString(36)}` } = options;
  const framings = new Set(options.services.map(({ contract }) => contract.framing));
  const wire = new Wire(config, framings, open, pace.quietMs);
  const made = options.services.map((each) => new Asker({ ...each, wire, sale, pace, keys }));
  const askers = new Map(made.map((asker) => [asker.contract.service, asker]));
  await wire.open();
  try {
    const results: Judged[] = [];
    for (const [index, check] of options.checks.entries()) {
      const asker = askers.get(check.service);
      if (asker === undefined) continue;
      begins(check, index);
      const result = await tried(check, asker);
      results.push(result);
      judged(result);
    }
    return results;
  } finally {
    await wire.close();
  }
}

async function tried({ name, title, rule, run }: CertifyCheck, asker: Asker): Promise<Judged> {
  const beganMs = nowMs();
  asker.begin();
  const { lost } = asker.wire;
  const finding = lost === undefined ? await run(asker).catch(findingOf) : untested(`The line was lost: ${lost}`);
  return { name, title, rule, ...finding, tookMs: nowMs() - beganMs, moments: asker.moments };
}

const findingOf = (error: unknown): CaseResult =>
  error instanceof CheckEnd ? error.finding : untested(`The check itself failed: ${messageOf(error)}`);
