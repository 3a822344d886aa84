import { bank } from "../contract/bank.ts";
import type { JsonObject } from "../envelope/json.ts";
import { type Answer, amountOf, type EmulatedService, idOf, Memory, missingField, reference, refusal } from "./answer.ts";

/** An operation that was started, and the transaction that it ended with. */
interface Operation {
  readonly route: string;
  readonly result: JsonObject;
}

const invalidRequest = -29;
const transactionNotFound = -15;

/** What a receipt needs of a card; the number is masked, and a well-known test number besides. */
const maskedCard = "411111******1111";

/** The bank service: every operation is accepted, and approved by the time that /check asks for it. */
export function emulatedBank(): EmulatedService {
  const operations = new Memory<Operation>();
  let transactions = 0;

  /** pay_id is the idempotency key: the same one on the same route starts nothing new. */
  function start(route: string, body: JsonObject, card: boolean): Answer {
    const payId = idOf(body["pay_id"]);
    if (payId !== undefined && operations.find(payId)?.route !== route) {
      transactions += 1;
      operations.remember(payId, { route, result: transactionOf(transactions, body, card) });
    }
    return { status: "success" };
  }

  function startFinancial(route: string, body: JsonObject): Answer {
    const missing = missingField(body, ["amount", "currency_name"]);
    if (missing !== undefined) {
      return refusal(invalidRequest, `Cannot start ${route}: ${missing} is missing`);
    }
    if (amountOf(body["tips"]) > 0 && amountOf(body["cashback"]) > 0) {
      return refusal(invalidRequest, `Cannot start ${route}: tips and cashback are both greater than 0`);
    }
    return start(route, body, true);
  }

  /** Everything is approved at once, so /abort finds the operation approved and says so, as /check does. */
  function result(body: JsonObject): Answer {
    const payId = idOf(body["pay_id"]);
    if (payId === undefined) {
      return refusal(invalidRequest, "Cannot look up the operation: pay_id is missing");
    }
    const operation = operations.find(payId);
    if (operation === undefined) {
      return refusal(transactionNotFound, "Cannot look up the operation: no operation has this pay_id");
    }
    const { print_data, ...withoutPrint } = operation.result;
    return { status: "success", data: body["no_print_data"] === true ? withoutPrint : { ...withoutPrint, print_data } };
  }

  const financial = ["/sale", "/preauth", "/confirm", "/cancel", "/refund"] as const;
  return new Map([
    [
      "/supported_operations",
      () => ({ status: "success", data: { operations: bank.routes.map((route) => route.path.slice(1)) } }),
    ],
    ["/terminals", () => ({ status: "success", data: { terminals: [terminal] } })],
    ...financial.map((route) => [route, (body: JsonObject) => startFinancial(route, body)] as const),
    ["/xreport", (body) => start("/xreport", body, false)],
    ["/close-shift", (body) => start("/close-shift", body, false)],
    ["/terminate", () => ({ status: "success" })],
    ["/abort", result],
    ["/check", result],
  ]);
}

const terminal = {
  terminal: 1,
  terminalId: "EMU00001",
  name: "Emulated terminal",
  merchant: 1,
  merchantId: "EMU000000000001",
  merchantName: "Emulated merchant",
  mcc: "5999",
  fiscalId: "EMU1",
};

function transactionOf(number: number, body: JsonObject, card: boolean): JsonObject {
  const common = { txn_id: `EMU${number}`, status: "APPROVED", data: {}, print_data: {} };
  const rrn = idOf(body["rrn"]) ?? reference(number, 12);
  return card ? { ...common, card_num: maskedCard, rrn, auth: reference(number % 1_000_000, 6) } : common;
}
