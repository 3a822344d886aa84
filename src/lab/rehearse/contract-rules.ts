import type { ContractName } from "../../core/call.ts";
import type { Rule } from "../report/judgement.ts";

/** The sentences of the contracts by which a till is judged. */

export const ofBank = (place: string, says: string): Rule => ({ from: `bank.md, ${place}`, says });
export const ofFiscal = (place: string, says: string): Rule => ({ from: `fiscal.md, ${place}`, says });
const ofQr = (place: string, says: string): Rule => ({ from: `qr.md, ${place}`, says });

export const key = ofBank("What the service does", "pay_id is the idempotency key and the state-recovery key.");
export const untilFinal = ofBank(
  "Endpoints, rule 3",
  "On timeout or unknown result, query /check with the same pay_id until a final status is obtained; do not assume failure.",
);
export const onlyFinal = ofBank(
  "Endpoints, rule 1",
  "Stop polling only on a final transaction result in data: status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.",
);
export const abortOnlyTries = ofBank(
  "Endpoints",
  "attempts to stop the operation of pay_id; may return final transaction data",
);
export const noBlindResend = ofBank("Endpoints, rule 4", "For /sale and /refund prefer /check-based recovery before retrying.");
export const sameExtId = ofFiscal(
  "Errors, recovery",
  "Timeout, disconnect or CRC failure on /sale or /refund: treat state as unknown, wait 1-2 s, resend with the same documentExtID. Never generate a new documentExtID for a retry of the same operation.",
);
export const unprinted = ofFiscal(
  "Errors, recovery",
  "Code 15: save documentExtID and response; call /check_status; if docStatus is 1 the operation is complete and only printing is recovered via /check_copy ...",
);
export const paymentSplit = ofFiscal(
  "Shared nested objects",
  "Payment split object (all optional int64, default 0): cashAmount, cashlessAmount, creditAmount",
);
export const saveTrans = ofQr(
  "Endpoints, responses",
  "data.trans carries it, and it must be saved and used in later /check, /cancel, /refund and /final_confirm requests.",
);

export const qrKeys = ofQr("What the service does", "Stable identifiers pay_id and trans are used for polling and recovery.");
export const qrNoResend = ofQr(
  "Endpoints, flow rule 3",
  "Do not blindly resend /cancel, /refund or /final_confirm after a timeout;",
);
export const shownUntilFinal = ofQr(
  "Endpoints, flow rule 2",
  "Continue while the response is success without data; stop on a final rrn or status error.",
);
export const askedByTrans = ofQr(
  "Endpoints, flow rule 3",
  "On timeout or unknown result, query /check with the same pay_id and trans until final.",
);
export const polledUntilClosed = ofFiscal(
  "Errors, recovery",
  "Code 44, or docStatus 0: do not resend; poll /check_status until docStatus 1.",
);

/** What a till breaks that begins an operation again, that says an end too early, or that doesn't find out the one that there is. */
export const brokenBy: Readonly<Record<ContractName, Readonly<Record<"again" | "early" | "blind", Rule>>>> = {
  bank: { again: key, early: onlyFinal, blind: untilFinal },
  fiscal: { again: sameExtId, early: polledUntilClosed, blind: sameExtId },
  qr: { again: qrNoResend, early: shownUntilFinal, blind: askedByTrans },
};
