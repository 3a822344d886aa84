import { isTexts } from "../core/json-object.ts";
import type { Contract, Polling, Probe, Route, SecondProbe } from "./contract.ts";
import { posts } from "./post.ts";

/** The fiscal service: receipts, shifts, cash and reports. Sections named here are those of the fiscal contract. */

/**
 * Milliseconds to the first byte of most replies. The contract gives no timeout for this service; a minute covers a printer
 * that has to wake up.
 */
const replyTimeoutMs = 60_000;

/**
 * Milliseconds for the routes that wait for a customer at the card reader (/sale, /refund) or print a long report: minutes in
 * practice, and giving up early turns a paid sale into an unknown outcome.
 */
const slowReplyTimeoutMs = 180_000;

/** Limits: /check_status polling, interval 1-2 s; Errors, recovery behavior: code 44 and docStatus 0 are polled. */
const polling: Polling = {
  route: "/check_status",
  keys: ["documentExtID", "documentID"],
  intervalMs: { min: 1000, max: 2000 },
};

const post = posts({ replyTimeoutMs, key: undefined });

const document = { key: "documentExtID", polling } as const;

/**
 * Errors: code 5 has /sale and /refund sent again with the same documentExtID, as a timeout has. Of cash it says no such thing, so
 * a till may take it for a document that was rolled back; 44 has it ask /check_status first, as a timeout of cash does.
 */
const cash = { ...document, faultWords: { "not-sent": "error", unknown: "in progress" } } as const;

/** Endpoints. Every POST carries `data` and `sign`, so even a route whose JSON may be empty has a body. */
const routes: readonly Route[] = [
  post("/supported_operations", "none", { methods: ["GET", "POST"], body: "none" }),
  post("/sale", "money", { ...document, replyTimeoutMs: slowReplyTimeoutMs }),
  post("/refund", "money", { ...document, replyTimeoutMs: slowReplyTimeoutMs }),
  // Polled until docStatus 1, so that an error 5 ends nothing; 44 would claim that there is a document
  post("/check_status", "none", { key: "documentExtID" }),
  // "Only printing is recovered via /check_copy" (Errors, code 15): it puts the copy on paper, so twice would be two copies
  post("/check_copy", "print"),
  post("/abort", "state", { key: "documentExtID", urgent: true }),
  post("/open_shift", "state"),
  // Closes the shift and may delete or transfer orders; the report it prints is the lesser effect
  post("/close_shift", "state", { replyTimeoutMs: slowReplyTimeoutMs }),
  post("/check_shift", "none"),
  // "False or missing runs the normal print flow" (Endpoints, rule 1): by default it prints
  post("/x_report", "print", { replyTimeoutMs: slowReplyTimeoutMs }),
  // Cash in and out of the drawer is registered in the fiscal memory: twice would be wrong by an amount of money
  post("/deposit", "money", cash),
  post("/withdraw", "money", cash),
  // Its reply isn't shown by the contract and it has no switch against printing: taken to print
  post("/dates_report", "print", { replyTimeoutMs: slowReplyTimeoutMs }),
  post("/get_info", "none"),
];

/** Only /supported_operations answers with `operations`, and on this service at the top level (Endpoints). */
const probe: Probe = {
  route: "/supported_operations",
  isAnswer: (reply) => reply["status"] === "success" && isTexts(reply["operations"]),
};

/**
 * Only /check_shift says of a shift whether it is open (Endpoints). The others of its resource (Shift) may say it too, and those whose
 * replies aren't shown; a receipt's reply with it is a receipt's.
 */
const secondProbe: SecondProbe = {
  route: "/check_shift",
  alikeRoutes: ["/open_shift", "/close_shift", "/x_report", "/dates_report", "/get_info"],
  isAnswer: (reply) => reply["status"] === "success" && reply["isShiftOpen"] !== undefined && reply["documentID"] === undefined,
  isOffered: ({ operations }) => isTexts(operations) && operations.includes("check_shift"),
};

export const fiscal: Contract = {
  service: "fiscal",
  port: 8008,
  framing: "stx",
  linePrefix: "",
  envelope: "form",
  replyContentType: "application/json; charset=utf-8",
  routes,
  // A receipt's amounts stand in its items and payments
  decisive: [
    ...["documentExtID", "documentID", "parentDocID", "parentDocNum"],
    ...["amount", "items", "payments", "extraPayments"],
  ],
  codes: [
    { code: 0, name: "OK", meaning: "success" },
    { code: 1, name: "AUTH_ERROR", meaning: "signature/auth error" },
    { code: 2, name: "INVALID_JSON", meaning: "JSON or Base64 parse error" },
    { code: 3, name: "MISSING_PARAMS", meaning: "required fields missing" },
    { code: 4, name: "AMOUNT_MISMATCH", meaning: "amount mismatch" },
    { code: 5, name: "INTERNAL_ERROR", meaning: "internal or not implemented" },
    { code: 6, name: "SHIFT_NOT_OPEN", meaning: "shift is not open" },
    { code: 7, name: "PAYMENT_TYPE_NOT_SUPPORTED", meaning: "unsupported payment type" },
    { code: 8, name: "DOCUMENT_NOT_PAID", meaning: "document not fully paid" },
    { code: 9, name: "DOCUMENT_NOT_FOUND", meaning: "document not found" },
    { code: 10, name: "DOCUMENT_NOT_FISCALIZED", meaning: "document not fiscalized" },
    { code: 11, name: "CHANGE_ONLY_FOR_CASH", meaning: "change allowed only for cash" },
    { code: 12, name: "DOC_TIME_BEFORE_SHIFT", meaning: "document time before shift open" },
    { code: 13, name: "CREDIT_SINGLE_PAYMENT", meaning: "credit payment constraint violated" },
    { code: 14, name: "INVALID_DATE_FORMAT", meaning: "invalid date format (for example in /dates_report)" },
    {
      code: 15,
      name: "DOCUMENT_NOT_PRINTED",
      meaning: "print stage failed; printError may hold the printer reason; the business operation may already be committed",
    },
    { code: 23, name: "BANK_TERMINAL_NOT_CONNECTED", meaning: "bank terminal not connected" },
    { code: 44, name: "DOCUMENT_STILL_PROCESSING", meaning: "document processing in progress" },
  ],
  // Errors, rule 2: sign 1, unparseable 2, missing field 3. What isn't about the request's content is 5, after which the
  // contract has a till resend with the same documentExtID: right after `not-sent`, and harmless after `unknown`. Shifts, reports
  // and copies have no code for what isn't known either; no rule takes their 5 for an end, and money doesn't hang on them
  faultCodes: {
    sign: 1,
    malformed: 2,
    http: 2,
    method: 2,
    slow: 2,
    size: 2,
    headers: 2,
    reused: 2,
    missing: 3,
    key: 5,
    origin: 5,
    host: 5,
    route: 5,
    unavailable: 5,
    timeout: 5,
    broken: 5,
  },
  faultsInOk: ["sign", "malformed", "missing"],
  inProgress: { status: "error", code: 44 },
  probe,
  secondProbe,
  // docStatus 1 is final even beside code 15, where only printing failed. An error without docStatus says nothing final
  finals: { field: ["docStatus"], values: [1], pendingCodes: [44], errorIsFinal: false, absentCodes: [9] },
};
