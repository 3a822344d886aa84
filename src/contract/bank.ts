import { isObject, isTexts } from "../core/json-object.ts";
import type { Contract, Polling, Probe, Route, SecondProbe } from "./contract.ts";
import { posts } from "./post.ts";

/** The bank terminal service: card operations that are started and then polled. Sections named are the bank contract's. */

/** Limits: initial command response time-out (recommended), 30 s. */
export const replyTimeoutMs = 30_000;

/** Endpoints, rule 1: polled with the same pay_id, every 1000-2000 ms. */
const polling: Polling = { route: "/check", keys: ["pay_id"], intervalMs: { min: 1000, max: 2000 } };

const post = posts({ replyTimeoutMs, key: undefined });

const operation = { key: "pay_id", polling } as const;

/** "All money fields are integers in minor units" (Financial operation request). */
const card = { ...operation, amounts: ["amount", "tips", "cashback"] } as const;

/** Endpoints. */
const routes: readonly Route[] = [
  post("/supported_operations", "none", { methods: ["GET", "POST"], body: "none" }),
  post("/terminals", "none", { body: "none" }),
  post("/sale", "money", card),
  post("/preauth", "money", card),
  post("/confirm", "money", card),
  post("/cancel", "money", card),
  post("/refund", "money", card),
  // `no_printing` among its fields says that it prints otherwise
  post("/xreport", "print", operation),
  // Ends the terminal's business day; the report it prints is the lesser effect
  post("/close-shift", "state", operation),
  // Ends the active terminal session, whatever runs in it
  post("/terminate", "state", { body: "none", urgent: true }),
  post("/abort", "state", { key: "pay_id", urgent: true }),
  // Returns print_data for the till to print; asked again and again by design (Endpoints, rule 3), so it only reads
  post("/check", "none", { key: "pay_id" }),
];

/**
 * The shape is proof, since only /supported_operations answers with `operations`. The envelope puts it into `data`; a terminal that puts it
 * at the top level, as the fiscal service does, is believed too, for no other answer of this service has the word there either.
 */
const probe: Probe = {
  route: "/supported_operations",
  isAnswer: (reply) => reply["status"] === "success" && operationsOf(reply) !== undefined,
};

/** The shape is proof, since only /terminals answers with `terminals` (Endpoints). */
const secondProbe: SecondProbe = {
  route: "/terminals",
  body: undefined,
  alikeRoutes: [],
  isAnswer: (reply) => reply["status"] === "success" && isObject(reply["data"]) && Array.isArray(reply["data"]["terminals"]),
};

function operationsOf({ operations, data }: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  if (isTexts(operations)) return operations;
  return isObject(data) && isTexts(data["operations"]) ? data["operations"] : undefined;
}

export const bank: Contract = {
  service: "bank",
  port: 8888,
  framing: "length",
  linePrefix: "",
  envelope: "text",
  replyContentType: "application/json",
  routes,
  decisive: ["pay_id", "rrn", "terminal", "merchant", "amount", "tips", "cashback", "currency_name"],
  codes: [
    { code: -80, name: undefined, meaning: "operation not supported" },
    { code: -29, name: undefined, meaning: "invalid request parameters or body" },
    { code: -16, name: undefined, meaning: "original transaction not found" },
    { code: -15, name: undefined, meaning: "transaction not found" },
    { code: -47, name: undefined, meaning: "unsupported currency" },
    { code: -21, name: undefined, meaning: "cancelled by user" },
    { code: -20, name: undefined, meaning: "declined" },
    { code: -54, name: undefined, meaning: "card input timeout" },
    { code: -3, name: undefined, meaning: "generic send/processing error" },
    { code: -100, name: undefined, meaning: "critical version update required" },
    { code: -101, name: undefined, meaning: "application blocked" },
  ],
  // Any flaw of the request is -29; a generic error of sending or processing is -3, which a till recovers from by /check. This service has
  // no sign: that kind never occurs here
  faultCodes: {
    malformed: -29,
    missing: -29,
    date: -29,
    amount: -29,
    sign: -29,
    http: -29,
    method: -29,
    slow: -29,
    size: -29,
    headers: -29,
    reused: -29,
    key: -29,
    origin: -29,
    host: -29,
    route: -80,
    unavailable: -3,
    timeout: -3,
    broken: -3,
  },
  faultsInOk: ["sign", "malformed", "missing", "date", "amount"],
  // Used by no fault: rules 1 and 2 end nothing by an error without data, so -3 ends nothing either and claims less
  inProgress: { status: "success", code: undefined },
  probe,
  secondProbe,
  // Rule 1: stop only on a final result in data. An error without data, such as -3, leaves the outcome open
  finals: {
    field: ["data", "status"],
    values: ["APPROVED", "ERROR", "REVERSED"],
    pendingCodes: [],
    errorIsFinal: false,
    absentCodes: [-15],
  },
};
