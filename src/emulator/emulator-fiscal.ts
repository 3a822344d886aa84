import { fiscal } from "../contract/fiscal.ts";
import type { JsonObject } from "../envelope/json.ts";
import { type Answer, amountOf, type EmulatedService, idOf, Memory, reference, refusal } from "./answer.ts";
import { currency, type DocumentKind, documentOf, type FiscalDocument, timestamp } from "./fiscal-document.ts";
import { FiscalShift } from "./fiscal-shift.ts";

const missingParams = 3;
const shiftNotOpen = 6;
const documentNotFound = 9;
const invalidDate = 14;

type Route = (body: JsonObject) => Answer;

/**
 * The fiscal service: every document closes at once, and the shift is open from the start so that a first sale needs nothing
 * else. documentExtID, or documentID where that was sent alone, finds the document again instead of making a second one.
 */
export function emulatedFiscal(clock: () => Date): EmulatedService {
  const byExtId = new Memory<FiscalDocument>();
  const byId = new Memory<FiscalDocument>();
  const shift = new FiscalShift(clock());
  let documents = 0;

  const find = (body: JsonObject) => byExtId.find(idOf(body["documentExtID"])) ?? byId.find(idOf(body["documentID"]));

  /** The same id and kind is a retry of a receipt (Endpoints, rule 3); of cash, where the amount is the same too (rule 2). */
  function issue(kind: DocumentKind, body: JsonObject): Answer {
    if (!shift.open) {
      return refusal(shiftNotOpen, "Cannot issue the document: the shift is not open");
    }
    const known = find(body);
    const issued = documentOf(kind, documents + 1, body, clock());
    const receipt = kind === "sale" || kind === "refund";
    if (known !== undefined && known.kind === kind && (receipt || known.sum === issued.sum)) {
      return success(known.reply);
    }
    documents += 1;
    byId.remember(String(documents), issued);
    const extId = idOf(body["documentExtID"]);
    if (extId !== undefined) {
      byExtId.remember(extId, issued);
    }
    shift.count(issued);
    return success(issued.reply);
  }

  function receipt(kind: "sale" | "refund"): Route {
    return (body) =>
      Array.isArray(body["items"]) && body["items"].length > 0
        ? issue(kind, body)
        : refusal(missingParams, "Cannot issue the document: items is missing or empty");
  }

  function cash(kind: "deposit" | "withdraw"): Route {
    return (body) =>
      amountOf(body["amount"]) > 0
        ? issue(kind, body)
        : refusal(missingParams, "Cannot issue the document: amount is missing or not greater than 0");
  }

  function found(names: readonly string[], then: (document: FiscalDocument) => Answer): Route {
    return (body) => {
      if (names.every((name) => idOf(body[name]) === undefined)) {
        return refusal(missingParams, `Cannot find the document: ${names.join(" or ")} is missing`);
      }
      const document = find(body);
      return document === undefined ? refusal(documentNotFound, "Cannot find the document: no such id") : then(document);
    };
  }

  function inShift(then: () => JsonObject): Route {
    return () => (shift.open ? success(then()) : refusal(shiftNotOpen, "Cannot report on the shift: it is not open"));
  }

  return new Map<string, Route>([
    ["/supported_operations", () => success({ operations: fiscal.routes.map((route) => route.path.slice(1)) })],
    ["/sale", receipt("sale")],
    ["/refund", receipt("refund")],
    ["/check_status", found(["documentID", "documentExtID"], (document) => success(document.reply))],
    ["/check_copy", found(["documentID"], (document) => success(document.copy))],
    // Every document has closed already, so there is nothing left to stop
    ["/abort", found(["documentExtID"], () => success({}))],
    ["/open_shift", () => success(shift.begin(clock()))],
    ["/close_shift", inShift(() => shift.end())],
    ["/check_shift", () => success(shift.state())],
    ["/x_report", inShift(() => shift.metrics())],
    ["/deposit", cash("deposit")],
    ["/withdraw", cash("withdraw")],
    ["/dates_report", datesReport],
    [
      "/get_info",
      () => success({ fiscalData: { emulated: true, fiscalID: `EMU${reference(0, 8)}`, currency_name: currency } }),
    ],
  ]);

  function datesReport(body: JsonObject): Answer {
    const wrong = ["dateFrom", "dateFor"].find((name) => body[name] !== undefined && !isDate(body[name]));
    return wrong === undefined
      ? success({ printTime: timestamp(clock()) })
      : refusal(invalidDate, `Cannot make the report: ${wrong} is no date of the form yyyy-MM-dd`);
  }
}

function success(fields: JsonObject): Answer {
  return { ...fields, status: "success", code: 0 };
}

function isDate(value: unknown): boolean {
  return typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value));
}
