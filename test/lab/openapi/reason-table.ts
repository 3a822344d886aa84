import { contracts } from "../../../src/contract/contracts.ts";
import { contractNames } from "../../../src/core/call.ts";
import {
  Fault,
  type FaultKind,
  type FaultOutcome,
  type FaultReason,
  faultClasses,
  retryAfterS,
} from "../../../src/core/fault.ts";
import { faultBody, faultHttpStatus } from "../../../src/envelope/fault.ts";
import { reasonsOf } from "../../../src/lab/openapi/fault-answers.ts";

/** A till's steps after each reason, as a table for people: the code that writes faults gives status and outcome. */

/** Reasons that share one answer. */
export interface ReasonRow {
  readonly outcome: FaultOutcome;
  readonly reasons: readonly FaultReason[];
  /** `X-Posline-Result` of a call with `Prefer: wait`. */
  readonly result: "none" | "`failed`" | "`unknown`";
  /** The words on a till's screen. */
  readonly cashier: string;
  /** The next step of the till's program. */
  readonly code: string;
}

export const reasonRows: readonly ReasonRow[] = [
  {
    outcome: "not-sent",
    reasons: ["malformed-request", "missing-parameter", "wrong-sign"],
    result: "none",
    cashier: "Error in the till",
    code: "fix the request: the message names the field",
  },
  {
    outcome: "not-sent",
    reasons: ["not-http", "unknown-route", "wrong-method", "request-too-large", "headers-too-large"],
    result: "none",
    cashier: "Error in the till",
    code: "fix the request",
  },
  {
    outcome: "not-sent",
    reasons: ["wrong-key", "origin-not-allowed", "host-not-allowed", "not-configured"],
    result: "none",
    cashier: "Error in the setup",
    code: "fix the configuration, or the address",
  },
  {
    outcome: "not-sent",
    reasons: ["key-reused"],
    result: "none",
    cashier: "Error in the till",
    code: "see how this key's first call ended; only another sale gets a new key",
  },
  {
    outcome: "not-sent",
    reasons: ["request-too-slow", "too-many-requests", "too-many-followed", "internal-error"],
    result: "none",
    cashier: "Please wait",
    code: "send the same call again",
  },
  {
    outcome: "not-sent",
    reasons: [
      ...(["line-down", "recovering", "queue-full", "waited-too-long", "not-recorded", "cannot-ask"] as const),
      "caller-left",
      "stopping",
    ],
    result: "`failed`",
    cashier: "Terminal not ready, please wait",
    code: "send the same call again",
  },
  {
    outcome: "unknown",
    reasons: ["no-reply"],
    result: "`unknown`",
    cashier: "Checking the payment",
    code: "with `Prefer: wait` send the same call again; without it ask (`/check`, fiscal `/check_status`)",
  },
  {
    outcome: "unknown",
    reasons: ["sent-before", "reply-corrupt", "reply-too-large", "reply-ambiguous", "line-lost", "stopping"],
    result: "`unknown`",
    cashier: "Checking the payment",
    code: "the same",
  },
  {
    outcome: "unknown",
    reasons: ["no-question"],
    result: "`unknown`",
    cashier: "Look at the terminal: it isn't known whether this was done",
    code: "stop: sending it again won't change the result",
  },
  {
    outcome: "unknown",
    reasons: ["internal-error"],
    result: "none",
    cashier: "Checking the payment",
    code: "the same, and report it: a bug in posline",
  },
];

// The keys of `faultClasses` are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

/** True if a kind of fault has that outcome, and may have that reason. */
export const mayHave = (kind: FaultKind, outcome: FaultOutcome, reason: FaultReason): boolean =>
  faultClasses[kind].outcome === outcome && reasonsOf[kind].some((each) => each === reason);

/** The table as Markdown, for docs/client.md. */
export function reasonTable(): string {
  const titles = ["`X-Posline-Reason` status (`Retry-After`)", "outcome", "result", "the cashier sees", "the code does"];
  const rows = reasonRows.map((row) => [
    row.reasons
      .map((reason) => `\`${reason}\` ${statusesOf(row.outcome, reason)}${row.outcome === "not-sent" ? afterOf(reason) : ""}`)
      .join(", "),
    `\`${row.outcome}\``,
    row.result,
    row.cashier,
    row.code,
  ]);
  return [titles, titles.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function afterOf(reason: FaultReason): string {
  const seconds = retryAfterS[reason];
  return seconds === undefined ? "" : ` (${seconds} s)`;
}

/** The HTTP statuses of a reason, and the services that have another one than the others. */
function statusesOf(outcome: FaultOutcome, reason: FaultReason): string {
  const services = new Map<number, Set<string>>();
  for (const kind of kinds.filter((each) => mayHave(each, outcome, reason))) {
    for (const service of contractNames) {
      const contract = contracts[service];
      const fault = new Fault(kind, "");
      const { word } = faultBody(contract, contract.probe.route, fault);
      const status = faultHttpStatus(contract, word, fault, undefined);
      services.set(status, (services.get(status) ?? new Set()).add(service));
    }
  }
  const all = [...services].sort(([one], [other]) => one - other);
  return all
    .map(([status, of]) => (of.size === contractNames.length ? `${status}` : `${status} (${[...of].join(", ")})`))
    .join(" or ");
}
