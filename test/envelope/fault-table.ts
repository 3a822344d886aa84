import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import { Fault, type FaultKind, type FaultOutcome, faultClasses } from "../../src/core/fault.ts";
import { type FaultBody, faultBody, faultHttpStatus, faultOnLine } from "../../src/envelope/fault.ts";

/** The table of each fault on each route, over HTTP and on a line, for people: its cells are made by the code that writes faults. */

// The keys of `faultClasses` are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

const outcomes: readonly FaultOutcome[] = ["not-sent", "unknown"];

/** The table as Markdown, for docs/client.md. */
export function faultTable(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const titles = ["service: route", "outcome", "body", "HTTP status", "with `faultStatus: 200`"];
  const rows = contractNames.flatMap((service) =>
    rowsOf(contracts[service]).map(([route, ...cells]) => [`${service}: ${route}`, ...cells]),
  );
  return [titles, titles.map(() => "---"), ...rows].map(row).join("\n");
}

/** The rows of a service; the routes on which every fault is the plain error envelope come last, together. */
function rowsOf(contract: Contract): readonly (readonly string[])[] {
  const rows = outcomes.flatMap((outcome) => {
    const routesBy = new Map<string, { readonly cells: readonly string[]; readonly routes: string[] }>();
    for (const { path, faultWords } of contract.routes) {
      if (faultWords[outcome] === "error") continue;
      for (const cells of cellsOf(contract, path, outcome)) {
        const group = routesBy.get(cells.join()) ?? { cells, routes: [] };
        group.routes.push(`\`${path}\``);
        routesBy.set(cells.join(), group);
      }
    }
    const others = routesBy.size === 0 ? "each" : "the others";
    return [
      ...[...routesBy.values()].map(({ cells, routes }) => [routes.join(", "), ...cells]),
      ...cellsOf(contract, contract.probe.route, outcome).map((cells) => [others, ...cells]),
    ];
  });
  const isAmbiguous = contract.routes.some(({ faultWords }) => faultWords["not-sent"] !== "error");
  if (!isAmbiguous) return rows;
  return [...rows, ...cellsOf(contract, undefined, "not-sent").map((cells) => ["not readable as HTTP", ...cells])];
}

/** For each word: the outcome, the body, the HTTP status, and the HTTP status under `faultStatus: 200`. */
function cellsOf(contract: Contract, path: string | undefined, outcome: FaultOutcome): readonly (readonly string[])[] {
  const all = kinds
    .filter((kind) => faultClasses[kind].outcome === outcome)
    .map((kind) => ({ fault: new Fault(kind, ""), body: faultBody(contract, path, new Fault(kind, "")) }));
  const words = [...new Set(all.map(({ body }) => body.word))];
  return words.map((word) => {
    const those = all.filter(({ body }) => body.word === word);
    const statuses = (faultStatus: 200 | undefined) =>
      those.map(({ fault }) => ({
        kind: fault.kind,
        own: fault.httpStatus,
        status: faultHttpStatus(contract, word, fault, faultStatus),
      }));
    const isTills = those.every(({ fault }) => fault.httpStatus < 500);
    const which = words.length === 1 ? outcome : `${outcome}, ${isTills ? "4xx" : "5xx"}`;
    const silent = those.every(({ fault }) => faultOnLine(contract, path, fault).length === 0);
    const bodies = those.map(({ body }) => body);
    const body = `${bodyText(bodies)}${silent ? "; on a gateway's line silence" : ""}`;
    return [which, body, statusText(statuses(undefined)), statusText(statuses(200))];
  });
}

/** Bodies of one word, with the codes that they have. */
function bodyText(bodies: readonly FaultBody[]): string {
  const codes = [...new Set(bodies.flatMap(({ code }) => code ?? []))].sort((one, other) => other - one).join(", ");
  const [{ word, status } = {}] = bodies;
  if (word === "none") return "`message` alone";
  return `${word === "in progress" ? "in progress: " : ""}\`${status}\`${codes === "" ? "" : ` ${codes}`}`;
}

function statusText(all: readonly { readonly kind: FaultKind; readonly own: number; readonly status: number }[]): string {
  if (all.every(({ status }) => status === 200)) return "200";
  const in200 = all.filter(({ status }) => status === 200).map(({ kind }) => kind);
  return in200.length === 0 ? "its own" : `its own; ${in200.join(", ")}: 200`;
}
