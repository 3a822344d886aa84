import type { ContractName } from "../../src/core/call.ts";

/**
 * How a till understands an answer that reads the body alone, as one on a line must and many over HTTP do. Written from the text of
 * the contracts, sentence by sentence, and from nothing in src: it is what posline's faults are held against.
 */

/**
 * `done`: what it asked for is carried out. `ended`: the operation has ended in nothing. `refused`: the request is wrong and began
 * nothing. `open`: the operation goes on or may; ask about it. `resend`: the same once more, with the same key. `none`: that was no
 * answer, as if none had come. `nothing`: the question or the side errand failed, which says nothing of any operation.
 */
export type Reading = "done" | "ended" | "refused" | "open" | "resend" | "none" | "nothing";

interface Body {
  readonly status: "success" | "error";
  readonly code: unknown;
  readonly data: Readonly<Record<string, unknown>>;
  readonly docStatus: unknown;
}

/** @param text What came; undefined when nothing did. */
export function readingOf(service: ContractName, route: string, text: string | undefined): Reading {
  const body = text === undefined ? undefined : bodyOf(text);
  return body === undefined ? "none" : readers[service](route, body);
}

/** Response envelope (bank, qr), response model (fiscal): status is 'success' or 'error', always. */
function bodyOf(text: string): Body | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  const fields = new Map<string, unknown>(Object.entries(json));
  const status = fields.get("status");
  if (status !== "success" && status !== "error") return undefined;
  const data = fields.get("data");
  return {
    status,
    code: fields.get("code"),
    data: typeof data === "object" && data !== null ? { ...data } : {},
    docStatus: fields.get("docStatus"),
  };
}

function readQr(route: string, { status, data }: Body): Reading {
  switch (route) {
    case "/check":
      // "Continue while the response is success without data; stop on a final rrn or status error"
      if (status === "error") return "ended";
      return data["rrn"] === undefined ? "open" : "done";
    case "/showqrcode":
      // "accepted: response is status success, optionally with data.trans", then /check; an error is no payment
      return status === "error" ? "ended" : "open";
    case "/cancel":
    case "/refund":
    case "/final_confirm":
      // Not polled: "on success data.rrn", "on success status success, typically without data". "Parse by status first"
      return status === "error" ? "ended" : "done";
    default:
      return status === "error" ? "nothing" : "done";
  }
}

const bankOperations = ["/sale", "/preauth", "/confirm", "/cancel", "/refund", "/xreport", "/close-shift"];

function readBank(route: string, { status, code, data }: Body): Reading {
  const isStart = bankOperations.includes(route);
  if (!isStart && route !== "/check") return status === "error" ? "nothing" : "done";
  // Rule 1: "Stop polling only on a final transaction result in data"; rule 2: a failure comes "with populated data"
  if (status === "success") return data["status"] === "APPROVED" ? "done" : "open";
  if (data["status"] === "ERROR" || data["status"] === "REVERSED") return "ended";
  if (!isStart) return code === -15 ? "ended" : "open";
  // The codes by which a start is refused; -3, and what isn't known: "recover it via /check"
  if ([-80, -29, -16, -47, -100, -101].includes(Number(code))) return "refused";
  return [-20, -21, -54].includes(Number(code)) ? "ended" : "open";
}

function readFiscal(route: string, { status, code, docStatus }: Body): Reading {
  const isDocument = ["/sale", "/refund", "/deposit", "/withdraw"].includes(route);
  if (!isDocument && route !== "/check_status") return status === "error" ? "nothing" : "done";
  // "Code 44, or docStatus 0: do not resend; poll /check_status until docStatus 1"
  if (code === 44 || docStatus === 0) return "open";
  if (status === "success") return "done";
  // "Codes 1, 2, 3: do not retry the same request unchanged"
  if ([1, 2, 3].includes(Number(code))) return "refused";
  if (!isDocument) return code === 9 ? "ended" : "open";
  // "Code 5 on /sale or /refund: resend with the same documentExtID". On cash it says no such thing: a failure rolls back
  if (code === 5 && (route === "/sale" || route === "/refund")) return "resend";
  return "ended";
}

const readers = { qr: readQr, bank: readBank, fiscal: readFiscal };

/** Questions about an operation: it goes on whatever becomes of them. */
const questions: Readonly<Record<ContractName, string>> = { qr: "/check", bank: "/check", fiscal: "/check_status" };

/** What of these readings is true of a fault with that outcome. */
export function trueReadings(service: ContractName, route: string, outcome: "not-sent" | "unknown"): readonly Reading[] {
  // Where nothing is known, nothing has ended, and only what is harmless may be sent again
  const doubts: readonly Reading[] = ["open", "resend", "none", "nothing"];
  if (outcome === "unknown") return doubts;
  // A question that wasn't put may be refused, and tells of no end
  if (questions[service] === route) return [...doubts, "refused"];
  // Of what wasn't sent an end in nothing is the truth. One that bank's -3 leaves open is asked about, and there is none
  return service === "bank" ? [...doubts, "ended", "refused"] : ["ended", "refused", "resend", "nothing"];
}
