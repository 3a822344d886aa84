import { STATUS_CODES } from "node:http";
import type { Contract, Route } from "../../contract/contract.ts";
import { settlingRulesOf } from "../../contract/settling.ts";
import { Fault, type FaultKind, type FaultReason, faultClasses, faultReasons, type Outcome } from "../../core/fault.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { type FaultBody, faultBody, faultHttpStatus } from "../../envelope/fault.ts";
import type { Components } from "./parts.ts";

/**
 * The faults that a route may answer, by HTTP status: their outcomes, reasons and bodies. Made by the code that writes faults, kind by
 * kind, so that the document can't differ.
 */

/**
 * The reasons of each kind over HTTP. `upstream-unreachable`, `upstream-refused` and `connection-lost` are a gateway's, which answers on
 * a line.
 */
export const reasonsOf = {
  malformed: ["malformed-request"],
  missing: ["missing-parameter"],
  date: ["malformed-request"],
  amount: ["malformed-request"],
  sign: ["wrong-sign"],
  http: ["not-http"],
  key: ["wrong-key"],
  origin: ["origin-not-allowed"],
  route: ["unknown-route"],
  method: ["wrong-method"],
  slow: ["request-too-slow"],
  size: ["request-too-large"],
  host: ["host-not-allowed"],
  headers: ["headers-too-large"],
  reused: ["key-reused"],
  unavailable: [
    "line-down",
    "recovering",
    "queue-full",
    "waited-too-long",
    "too-many-requests",
    "too-many-followed",
    "not-recorded",
    "cannot-ask",
    "not-configured",
    "caller-left",
    "stopping",
    "internal-error",
  ],
  timeout: ["no-reply", "no-question"],
  // No answer about a followed call that was sent before.
  broken: [
    "no-reply",
    "no-question",
    "sent-before",
    "reply-corrupt",
    "reply-too-large",
    "reply-ambiguous",
    "line-lost",
    "stopping",
    "internal-error",
  ],
} as const satisfies Record<FaultKind, readonly FaultReason[]>;

/** Kinds that know nothing of the request but that it came: no route could be read. */
const unread: readonly FaultKind[] = ["http", "slow", "headers"];

/** All faults of one HTTP status. */
export interface FaultAnswer {
  readonly httpStatus: number;
  readonly outcomes: readonly Outcome[];
  readonly reasons: readonly FaultReason[];
  /** References to the schemas of their bodies. */
  readonly bodies: readonly JsonObject[];
  /** A name for all this, by which the document has it once. */
  readonly name: string;
}

/** The faults that a route's request may be answered with, by HTTP status. */
export function faultAnswers(
  contract: Contract,
  route: Route,
  faultStatus: 200 | undefined,
  components: Components,
): readonly FaultAnswer[] {
  // The keys of `faultClasses` are the kinds.
  const kinds = (Object.keys(faultClasses) as FaultKind[]).filter((kind) => occurs(contract, route, kind));
  const written = kinds.flatMap((kind) => {
    const paths = unread.includes(kind) ? [route.path, undefined] : [route.path];
    return paths.map((path) => {
      const fault = new Fault(kind, "");
      const body = faultBody(contract, path, fault);
      return { kind, path, body, httpStatus: faultHttpStatus(contract, body.word, fault, faultStatus) };
    });
  });
  const statuses = [...new Set(written.map(({ httpStatus }) => httpStatus))].sort((one, other) => one - other);
  return statuses.map((httpStatus) => {
    const here = written.filter((each) => each.httpStatus === httpStatus);
    // On one route a request that is wrong has no word either, for more reasons than one that can't be read.
    const unreadAlone = here.every(({ path }) => path === undefined) ? ".Unread" : "";
    const bodies = new Map(here.map(({ body }) => [schemaName(body), body]));
    return {
      httpStatus,
      outcomes: unique(here.map(({ kind }) => faultClasses[kind].outcome)),
      reasons: unique(here.flatMap(({ kind }) => reasonsOf[kind])),
      bodies: [...bodies].map(([name, body]) => components.ref("schemas", name, () => schemaOf(body))),
      name: `${(STATUS_CODES[httpStatus] ?? "Status").replaceAll(/\W/g, "")}.${[...bodies.keys()].join(".")}${unreadAlone}`,
    };
  });
}

/**
 * True if a kind of fault can occur on a route: only bank has an API key, only a form a sign, and only an operation that can be followed a
 * key that is looked up. A path and a method of the contract are never refused with 404 or 405.
 */
function occurs(contract: Contract, route: Route, kind: FaultKind): boolean {
  if (kind === "route" || kind === "method") return false;
  if (kind === "reused") return settlingRulesOf(contract.service, route.path) !== undefined;
  if (kind === "key") return contract.service === "bank";
  return kind !== "sign" || contract.envelope === "form";
}

const unique = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];

function schemaName({ word, code }: FaultBody): string {
  if (word === "error") return `Fault${Math.abs(code ?? 0)}`;
  return word === "in progress" ? "FaultInProgress" : "FaultWithoutWord";
}

const wordDescriptions: Readonly<Record<FaultBody["word"], string>> = {
  error: "A fault of posline's in the service's own error envelope: no word of the terminal",
  "in progress": "A fault of posline's as the service says that it goes on: its error would end a payment that may go on",
  none: "A fault of posline's for which the contract has no word that would not be taken for an end",
};

function schemaOf({ word, status, code }: FaultBody): JsonObject {
  return {
    type: "object",
    description: wordDescriptions[word],
    required: [...(status === undefined ? [] : ["status"]), ...(code === undefined ? [] : ["code"]), "message"],
    properties: {
      ...(status === undefined ? {} : { status: { const: status } }),
      // A range and not `const`: generators of TypeScript write that as a literal, and oazapfts can't write one below 0.
      ...(code === undefined ? {} : { code: { type: "integer", minimum: code, maximum: code } }),
      message: { type: "string", description: "For people: what happened and what to do. Its wording may change" },
    },
  };
}

const outcomeWords: Readonly<Record<Outcome, string>> = {
  answered: "the terminal answered",
  "not-sent": "nothing reached the terminal",
  unknown: "it may have been carried out",
};

/** The headers of an answer that has one of these outcomes. */
export function answerHeaders(
  outcomes: readonly Outcome[],
  reasons: readonly FaultReason[],
  components: Components,
): JsonObject {
  const isFault = !outcomes.includes("answered");
  return {
    "X-Posline-Outcome": {
      description: outcomes.map((outcome) => `\`${outcome}\`: ${outcomeWords[outcome]}`).join("; "),
      required: true,
      schema: { type: "string", enum: outcomes },
    },
    ...(reasons.length === 0
      ? {}
      : {
          "X-Posline-Reason": {
            description: reasons.map((reason) => `\`${reason}\`: ${faultReasons[reason]}`).join("; "),
            required: isFault,
            schema: { type: "string", enum: reasons },
          },
        }),
    "X-Request-Id": components.header("RequestId"),
    "Server-Timing": components.header("ServerTiming"),
    "X-Posline-Joined": components.header("Joined"),
    ...(outcomes.includes("not-sent") ? { "Retry-After": components.header("RetryAfter") } : {}),
  };
}

/**
 * The headers of the answer to a call that is followed.
 * @param learns True if the answer gives a name of its own (`SettlingRules.learns`).
 */
export function followedHeaders(components: Components, learns: boolean): JsonObject {
  return {
    "X-Posline-Result": components.header("Result"),
    ...(learns ? { "X-Posline-Trans": components.header("Trans") } : {}),
    "X-Posline-Answer-Of": components.header("AnswerOf"),
    "X-Posline-Polls": components.header("Polls"),
    "X-Posline-Repeat-Guard": components.header("RepeatGuard"),
    "Preference-Applied": components.header("PreferenceApplied"),
  };
}
