import { qr } from "../contract/qr.ts";
import type { JsonObject } from "../envelope/json.ts";
import { type Answer, type EmulatedService, idOf, Memory, missingField, reference, refusal } from "./answer.ts";

/** A payment that was shown, and how it was paid. */
interface Payment {
  readonly trans: string;
  readonly rrn: string;
}

/** Errors: code is typically 1, and the contract has no other. */
const failed = 1;

/** The one system on offer. Others are taken too: a till that is set up for a real system can be tried as it is. */
const systemName = "EMULATED";

/** The qr service: every payment is paid by the time that /check asks for it. */
export function emulatedQr(): EmulatedService {
  const payments = new Memory<Payment>();
  let transactions = 0;

  function demanding(names: readonly string[], then: (body: JsonObject) => Answer) {
    return (body: JsonObject): Answer => {
      const missing = missingField(body, names);
      return missing === undefined ? then(body) : refusal(failed, `Cannot accept the request: ${missing} is missing`);
    };
  }

  /** The same pay_id shows the same payment again. */
  function show(body: JsonObject): Answer {
    const payId = idOf(body["pay_id"]) ?? "";
    let payment = payments.find(payId);
    if (payment === undefined) {
      transactions += 1;
      payment = { trans: `EMU${transactions}`, rrn: reference(transactions, 12) };
      payments.remember(payId, payment);
    }
    return { status: "success", data: { trans: payment.trans } };
  }

  /** A payment is known by both its ids: the trans of another payment finds nothing. */
  function withPayment(body: JsonObject, then: (payment: Payment) => Answer): Answer {
    const payment = payments.find(idOf(body["pay_id"]));
    return payment === undefined || payment.trans !== idOf(body["trans"])
      ? refusal(failed, "Cannot find the payment: no payment has this pay_id and trans")
      : then(payment);
  }

  const paid = (body: JsonObject) => withPayment(body, (payment) => ({ status: "success", data: { rrn: payment.rrn } }));

  /** Giving back has a reference number of its own. */
  const givenBack = (body: JsonObject) =>
    withPayment(body, () => {
      transactions += 1;
      return { status: "success", data: { rrn: reference(transactions, 12) } };
    });

  const backFields = ["trans", "pay_id", "rrn", "amount", "currency", "pay_system"];
  return new Map([
    ["/check_connection", () => ({ status: "success", data: { systems: [system] } })],
    ["/showqrcode", demanding(["pay_id", "amount", "currency", "currency_name", "pay_system"], show)],
    ["/check", demanding(["pay_id", "trans", "pay_system"], paid)],
    ["/cancel", demanding(backFields, givenBack)],
    ["/refund", demanding(backFields, givenBack)],
    ["/final_confirm", demanding(["pay_system"], () => ({ status: "success" }))],
  ]);
}

const system = {
  name: systemName,
  operations: qr.routes.filter((route) => route.body !== "none").map((route) => route.path.slice(1)),
};
