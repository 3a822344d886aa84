import type { Contract } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import { contractNames } from "../core/call.ts";
import { Fault, type FaultKind, type FaultOutcome, faultClasses } from "../core/fault.ts";
import { type FaultBody, faultBody, faultHttpStatus, faultOnLine } from "./fault.ts";

/** The table of each fault on each route, over HTTP and on a line, for people: its cells are made by the code that writes faults. */

// The keys of `faultClasses` are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

const outcomes: readonly FaultOutcome[] = ["not-sent", "unknown"];

/** The table as Markdown, for docs/client.md. */
export function faultTable(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const titles = ["service", "route", "outcome", "body", "HTTP status", "with `faultStatus: 200`", "a gateway's line"];
  const rows = contractNames.flatMap((service) => rowsOf(contracts[service]).map((cells) => [service, ...cells]));
  return [titles, titles.map(() => "---"), ...rows].map(row).join("\n");
}

/** The rows of a service; the routes on which every fault is the plain error envelope come last, together. */
function rowsOf(contract: Contract): readonly (readonly string[])[] {
  const rows = outcomes.flatMap((outcome) => {
    const routesBy = new Map<string, { readonly cells: readonly string[]; readonly routes: string[] }>();
    for (const { path, faultWords } of contract.routes) {
      if (faultWords[outcome] === "error") continue;
      const cells = cellsOf(contract, path, outcome);
      const group = routesBy.get(cells.join()) ?? { cells, routes: [] };
      group.routes.push(`\`${path}\``);
      routesBy.set(cells.join(), group);
    }
    const others = routesBy.size === 0 ? "each" : "the others";
    return [
      ...[...routesBy.values()].map(({ cells, routes }) => [routes.join(", "), outcome, ...cells]),
      [others, outcome, ...cellsOf(contract, contract.probe.route, outcome)],
    ];
  });
  const isAmbiguous = contract.routes.some(({ faultWords }) => faultWords["not-sent"] !== "error");
  return isAmbiguous ? [...rows, ["not readable as HTTP", "not-sent", ...cellsOf(contract, undefined, "not-sent")]] : rows;
}

/** Body, HTTP status, HTTP status under `faultStatus: 200`, and the words on a line. */
function cellsOf(contract: Contract, path: string | undefined, outcome: FaultOutcome): readonly string[] {
  const faults = kinds.filter((kind) => faultClasses[kind].outcome === outcome).map((kind) => new Fault(kind, ""));
  const bodies = faults.map((fault) => faultBody(contract, path, fault));
  const statuses = (faultStatus: 200 | undefined) =>
    faults.map((fault, n) => ({
      kind: fault.kind,
      own: fault.httpStatus,
      status: faultHttpStatus(contract, bodies[n]?.word ?? "error", fault, faultStatus),
    }));
  const silent = faults.filter((fault) => faultOnLine(contract, path, fault).length === 0).length;
  const onLine = silent === 0 ? "the body" : silent === faults.length ? "silence" : "the body, or silence";
  return [bodyText(bodies, faults), statusText(statuses(undefined)), statusText(statuses(200)), onLine];
}

/** The bodies with their codes; if only some have a word, with the kinds of the others. */
function bodyText(bodies: readonly FaultBody[], faults: readonly Fault[]): string {
  const spoken = bodies.filter(({ word }) => word !== "none");
  const [{ word, status } = {}] = spoken;
  if (word === undefined) return "`message` alone";
  const codes = [...new Set(spoken.flatMap(({ code }) => code ?? []))].sort((one, other) => other - one).join(", ");
  const text = `${word === "in progress" ? "in progress: " : ""}\`${status}\`${codes === "" ? "" : ` ${codes}`}`;
  if (spoken.length === bodies.length) return text;
  const kinds = faults.filter((_, n) => bodies[n]?.word === "none").map(({ kind }) => kind);
  return `${text}; ${kinds.join(", ")}: \`message\` alone`;
}

function statusText(all: readonly { readonly kind: FaultKind; readonly own: number; readonly status: number }[]): string {
  if (all.every(({ status }) => status === 200)) return "200";
  const [in200, others] = [all.filter(({ status }) => status === 200), all.filter(({ status }) => status !== 200)];
  if (in200.length === 0) return "its own";
  const [few, text] = in200.length < others.length ? [in200, "its own; %: 200"] : [others, "200; %: its own"];
  return text.replace("%", few.map(({ kind }) => kind).join(", "));
}
