import type { ContractName } from "../core/call.ts";
import { checkByEye, checkOriginal } from "../core/fault.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { replyTimeoutMs as bankReplyTimeoutMs } from "./bank.ts";
import type { Route } from "./contract.ts";

/**
 * The contracts' rules for following an operation to its end, as data beside the tables of routes: the meaning of a start's answer, the
 * question after a lost one, and when the same request may go out again. The client interprets these tables and knows no route by heart. A
 * final state's place in an answer is the contract's `finals`.
 *
 * Two rules stand above all: a retry is always the same request with the same key, and an answer proves an end only if it can't be about
 * anything else.
 */

export interface SettlingRules {
  readonly route: string;
  /**
   * The meaning of status "success" at the start: the operation is `followed` by questions, unless the answer holds a final state already;
   * or it has ended so, unless the answer says that it is open still.
   */
  readonly success: "followed" | OperationEnd;
  /** True if a success that has ended the operation has the contract's `finals.field`, so that one without that field proves nothing. */
  readonly successShowsEnd: boolean;
  /** True if the key names this operation, so that one is made if it is missing; false if it names an earlier one. */
  readonly ownKey: boolean;
  /** True if several operations may stand under one key, told apart by their amounts: refunds of a payment, in parts. */
  readonly isByAmount: boolean;
  /** True if a success at the start may hold a final state; otherwise only the question's answer is believed to. */
  readonly startMayEnd: boolean;
  /** Ends by the value of the contract's `finals.field`; "" if the field's presence is the end. */
  readonly ends: Readonly<Record<string, OperationEnd>>;
  /** Codes at the start which prove that nothing was begun, as long as no earlier sending of it is in doubt. */
  readonly refusals: readonly number[];
  /** Codes at the start after which the request is sent once more, with a sign that was built anew. */
  readonly signCodes: readonly number[];
  /** Codes at the start after which the same request with the same key is sent again; the first sending is in doubt from then. */
  readonly resendCodes: readonly number[];
  /** Codes at the start after which it is sent again, if an earlier sending is in doubt. */
  readonly resendCodesInDoubt: readonly number[];
  /**
   * The meaning of "there is none" once the operation was accepted: nothing, so that asking goes on, or that it was rolled back; said
   * `absentsMin` times.
   */
  readonly absentWhenAccepted: "ask" | "refused";
  /** The meaning of "there is none" for an operation that was accepted and then aborted (`/abort`); said `absentsMin` times. */
  readonly absentWhenAborted: "ask" | "refused";
  /**
   * How often "there is none" must be said, one question after the other, to prove anything: before a start as after one. Once is enough
   * after an error that the contract lists, which says by itself that the start failed (`isOwnRefusal`).
   */
  readonly absentsMin: number;
  /**
   * Milliseconds after the last start in which "there is none" doesn't count, however often it is said: that start may still be on its way.
   * Not after an error that the contract lists, or has resent.
   */
  readonly absentsAfterMs: number;
  /** How often the same request may go out again in one following; after that "there is none" is waited for. */
  readonly resendsMax: number;
  /**
   * Codes by which the question, asked before the start, says that nothing is there. undefined if it isn't asked then: only of an operation
   * whose key may be that of another, about which the question would be answered, so that an answer that says the same afterwards proves
   * nothing.
   */
  readonly baseline: readonly number[] | undefined;
  /** Printing is recovered apart: the code that says that only printing failed, and the route that prints, once. */
  readonly print: { readonly code: number; readonly route: string; readonly key: string } | undefined;
  /** What a day counts it as, once it has ended well; undefined if it is neither: a reservation, cash in the drawer, a report. */
  readonly counts: "sold" | "refunded" | undefined;
  /** `reversed` is its good end: it has the key of the payment of which that is said. Of a refund the contract leaves open what was reversed. */
  readonly takesBack: boolean;
  /** A field of the question that only the start's answer gives; without it an error in answer to the question proves nothing. */
  readonly learns: string | undefined;
}

/**
 * Milliseconds for which a start that was lost may run behind a gateway: as long as bank.md lets its answer be awaited; fiscal.md says
 * nothing.
 */
const onItsWayMs = bankReplyTimeoutMs;

/** Sendings of one request beyond the first: a line that loses four in a row won't bring the fifth back either. */
const resendsMax = 3;

const none = {
  ownKey: true,
  successShowsEnd: false,
  isByAmount: false,
  startMayEnd: false,
  refusals: [],
  signCodes: [],
  resendCodes: [],
  resendCodesInDoubt: [],
  absentWhenAccepted: "ask",
  absentWhenAborted: "ask",
  // Three in a row, so that a question that ran ahead of the start doesn't decide
  absentsMin: 3,
  absentsAfterMs: 0,
  resendsMax,
  baseline: undefined,
  print: undefined,
  counts: undefined,
  takesBack: false,
  learns: undefined,
} as const;

/**
 * bank.md, Endpoints, rules 1 to 4, and Errors. -3 and codes that aren't listed leave the outcome open: /check, and nothing is
 * sent again, for the contract has only a lost delivery resent.
 */
const bankOperation = {
  ...none,
  success: "followed",
  ends: { APPROVED: "approved", ERROR: "declined", REVERSED: "reversed" },
  // Invalid parameters, unsupported currency, no original, unsupported operation, update required, application blocked
  refusals: [-29, -47, -16, -80, -100, -101],
  absentsAfterMs: onItsWayMs,
} as const;

/** What refers to an original, whose pay_id it may have. The original isn't found either where nothing is. */
const bankLinked = { ...bankOperation, baseline: [-15, -16] } as const;

/** Rule 4: /confirm and /cancel are never sent again. */
const bankOnce = { ...bankLinked, resendsMax: 0 } as const;

/** fiscal.md, Errors, recovery behavior. */
const fiscalDocument = {
  ...none,
  success: "followed",
  startMayEnd: true,
  ends: { "1": "closed" },
  // Codes from before a document can exist: not JSON, a missing field, a closed shift, a wrong date. The other codes may come
  // from a document that was opened, so /check_status has the last word
  refusals: [2, 3, 6, 14],
  signCodes: [1],
  resendCodes: [5],
  resendCodesInDoubt: [9],
  // An abort removes an open document
  absentWhenAborted: "refused",
  // A document that a gateway lost sight of, and said 5 or 44 of, may not be open yet
  absentsAfterMs: onItsWayMs,
  print: { code: 15, route: "/check_copy", key: "documentID" },
} as const;

/**
 * Cash: a success says all, except with docStatus 0, which is polled (Errors, recovery behavior). After code 5 the document is asked about,
 * for the contract has only /sale and /refund resent after it. A document that is gone was rolled back (States and transitions).
 */
const fiscalCash = {
  ...fiscalDocument,
  success: "closed",
  resendCodes: [],
  absentWhenAccepted: "refused",
} as const;

/** qr.md, States and Flow rules. Code 1 says nothing of its own. */
const qrPayment = { ...none, success: "followed", ends: { "": "approved" }, learns: "trans" } as const;

/**
 * Flow rule 3: neither polled nor sent again; a lost request stays unknown, and so does one answered with an error. The one code stands for
 * a missing field as for a payment system that failed midway, and no question tells them apart.
 */
const qrOnce = { ...qrPayment, ownKey: false, success: "approved", resendsMax: 0, learns: undefined } as const;

/** Endpoints, responses: on success data.rrn. A success without it is the answer of a payment in progress. */
const qrGivingBack = { ...qrOnce, successShowsEnd: true, isByAmount: true } as const;

/** Every operation that can be followed, by service. */
export const settlingRules: Readonly<Record<ContractName, readonly SettlingRules[]>> = {
  fiscal: [
    { ...fiscalDocument, route: "/sale", counts: "sold" },
    // A refund may have the order's number as well, by some tills, under which /check_status would find the sale
    { ...fiscalDocument, route: "/refund", counts: "refunded", baseline: [9] },
    { ...fiscalCash, route: "/deposit" },
    { ...fiscalCash, route: "/withdraw" },
  ],
  bank: [
    { ...bankOperation, route: "/sale", counts: "sold" },
    { ...bankOperation, route: "/preauth" },
    { ...bankOnce, route: "/confirm", counts: "sold" },
    { ...bankOnce, route: "/cancel", counts: "refunded", takesBack: true },
    // A refund refers to an original as well, whose pay_id some tills send again; otherwise it is resent as a sale is
    { ...bankLinked, route: "/refund", counts: "refunded" },
    { ...bankOperation, route: "/xreport" },
    { ...bankOperation, route: "/close-shift" },
  ],
  qr: [
    { ...qrPayment, route: "/showqrcode", counts: "sold" },
    { ...qrGivingBack, route: "/cancel", counts: "refunded" },
    { ...qrGivingBack, route: "/refund", counts: "refunded" },
    { ...qrOnce, route: "/final_confirm" },
  ],
};

/**
 * Routes that close a batch or a shift. Of earlier operations the terminal may know nothing any more, so that its "there is none" proves
 * nothing (bank.md and fiscal.md say for how long operations are kept: not shown).
 */
export const closingRoutes: ReadonlySet<string> = new Set(["/close-shift", "/close_shift"]);

/** The rules of a route, or undefined if it is not an operation that can be followed. */
export function settlingRulesOf(service: ContractName, route: string): SettlingRules | undefined {
  return settlingRules[service].find((rules) => rules.route === route);
}

/** True if a result is what was wanted of the operation. */
export function isDone(result: string | undefined, rules: SettlingRules | undefined): boolean {
  return isGoodEnd(result) || (result === "reversed" && rules?.takesBack === true);
}

/**
 * Advice to look at the terminal, where no question would surely tell of this operation; undefined where one does.
 * @param key The sender's name of the operation, if known.
 */
export function adviceToLook(service: ContractName, route: Route, key: string | undefined): string | undefined {
  // /close_shift and the like have no name; nor has a sale whose till gave it none.
  if (route.key === undefined || (key === undefined && route.effect === "money")) return checkByEye;
  return settlingRulesOf(service, route.path)?.resendsMax === 0 ? checkOriginal : undefined;
}

/**
 * Advice after an answer with status "error", in a sentence for people.
 * @param key The sender's name of the operation, if known.
 */
export function adviceAfter(service: ContractName, route: Route, code: number | undefined, key: string | undefined): string {
  const rules = settlingRulesOf(service, route.path);
  if (rules === undefined || code === undefined) return advice[service].other;
  if (rules.refusals.includes(code)) return "nothing was started: fix what the code says, then send it again";
  if (rules.signCodes.includes(code)) return "nothing was started: rebuild the sign and send it once more";
  const look = adviceToLook(service, route, key);
  if (look !== undefined) return look;
  if (rules.resendCodes.includes(code)) return "send the same request again with the same documentExtID";
  if (rules.print?.code === code) return "query /check_status; when docStatus is 1, print once by /check_copy";
  return advice[service].operation;
}

/** Errors of each contract: unknown codes aren't retried, and uncertain ones are asked about. */
const advice: Readonly<Record<ContractName, { readonly operation: string; readonly other: string }>> = {
  fiscal: {
    operation: "query /check_status with the same documentExtID before sending again",
    other: "do not send it again unchanged",
  },
  bank: { operation: "query /check with the same pay_id", other: "do not send it again unchanged" },
  qr: { operation: "query /check with the same pay_id and trans", other: "do not send it again unchanged" },
};
