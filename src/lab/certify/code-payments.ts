import { isObject, type JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { codeText, refused, shapeFinding } from "./answers.ts";
import { type AskedEnd, againRows } from "./asked-again.ts";
import { type Asker, CheckEnd, dataIn } from "./asker.ts";
import { type Row, type Sentence, sellingChecks } from "./check.ts";
import { ended, follow } from "./follow.ts";
import { having, type RightBody, wrongRows } from "./wrong-bodies.ts";

/** Payments by code. */

const qrEnds: Sentence =
  "Endpoints, flow rule 2: Continue while the response is success without data; stop on a final rrn or status error.";
const selector: Sentence =
  "Payment system selector: pay_system is a case-sensitive string and must be sent exactly as configured.";
const confirmed: Sentence = "Endpoints, responses: /final_confirm: on success status success, typically without data.";
const givenBack: Sentence = "Endpoints, responses: /cancel and /refund: on success data.rrn.";

const unknown: Sentence = "Errors: An error response has status 'error', code (typically 1) and message";
const stable: Sentence = "What the service does: Stable identifiers pay_id and trans are used for polling and recovery.";

const rows: readonly Row[] = [
  ["qr", "payment", "a payment, followed to its end", qrEnds, paymentEnds],
  ["qr", "trans", "a payment is shown again", stable, shownAgain],
  ...againRows("qr", "/check", "pay_id", askedPayment),
  ["qr", "final-confirm", "a payment is confirmed", confirmed, paymentConfirmed],
  ["qr", "refund", "a payment is given back by its trans", givenBack, (asker) => paymentGivenBack(asker, "/refund", "payment")],
  ["qr", "cancel", "another is cancelled", givenBack, (asker) => paymentGivenBack(asker, "/cancel", "cancel")],
];

/** Of the payment that was given back by then. */
const ofPayment =
  (fields: readonly string[]): RightBody =>
  async (asker) => {
    const { end, body } = await askedPayment(asker);
    if (end.status === "error") throw new CheckEnd(untested("The payment was not paid"));
    const all = { ...body, rrn: dataIn(end)["rrn"], amount: asker.sale.amount, currency: asker.sale.currency };
    return Object.fromEntries(Object.entries(all).filter(([name]) => fields.includes(name)));
  };

const ids = ["pay_id", "trans", "pay_system"];
const back = ofPayment([...ids, "rrn", "amount", "currency"]);

/** pay_system in another case, if it has one, and one that there is none of. */
const otherSystems = (body: JsonObject) => {
  const name = String(body["pay_system"]);
  const others = [name.toLowerCase(), name.toUpperCase(), "posline"].filter((each) => each !== name);
  return others.map((pay_system) => ({ ...body, pay_system }));
};

const wrongs = wrongRows(
  "qr",
  {
    "/showqrcode": async (asker, name) => showBody(asker, await systemOf(asker), name),
    "/check": ofPayment(ids),
    "/cancel": back,
    "/refund": back,
    "/final_confirm": ofPayment([...ids, "rrn"]),
  },
  [
    ["pay-system", "for another pay_system", selector, otherSystems],
    [
      "other-payment",
      "for a payment that there is none of",
      unknown,
      (body) => (body["trans"] ? having("pay_id", "posline")(body, []) : []),
    ],
  ],
);

export const codePayments = sellingChecks([...rows, ...wrongs]);

/** The first payment system that shows a code and can be asked about it. */
async function systemOf(asker: Asker): Promise<string> {
  const listed = dataIn(await asker.ask("/check_connection"))["systems"];
  const systems = Array.isArray(listed) ? listed.filter(isObject) : [];
  const usable = systems.find(
    ({ operations }) => Array.isArray(operations) && ["showqrcode", "check"].every((each) => operations.includes(each)),
  );
  if (typeof usable?.["name"] === "string") return usable["name"];
  throw new CheckEnd(untested("/check_connection lists no payment system with showqrcode and check"));
}

function showBody(asker: Asker, system: string, name: string): JsonObject {
  const { amount, currency } = asker.sale;
  return { pay_id: asker.key(name), amount, currency, currency_name: currency, pay_system: system };
}

const qrPayment = (asker: Asker, name = "payment") =>
  asker.once(name, async () => {
    const system = await systemOf(asker);
    const body = showBody(asker, system, name);
    return { system, body, ...(await follow(asker, { what: "payment", name, route: "/showqrcode", body })) };
  });

/** A payment's end, and the question about it. */
async function askedPayment(asker: Asker, name = "payment"): Promise<AskedEnd> {
  const { system, start, key, ...payment } = await qrPayment(asker, name);
  const end = ended(asker, { start, key, ...payment });
  return { end, body: { pay_id: key, trans: dataIn(start)["trans"] ?? key, pay_system: system } };
}

async function paymentEnds(asker: Asker): Promise<CaseResult> {
  const payment = await qrPayment(asker);
  const end = ended(asker, payment);
  const odd = payment.polls.find((answer) => answer !== end && (answer.json["data"] ?? null) !== null);
  if (odd !== undefined) return failed("In progress it answered with data, and without an rrn");
  const how = end.status === "error" ? `an error${codeText(end)}` : "an rrn";
  return shapeFinding(asker, "/check", end, `The payment ended with ${how}`);
}

async function shownAgain(asker: Asker): Promise<CaseResult> {
  const { start, body } = await qrPayment(asker);
  const again = await asker.ask("/showqrcode", body);
  const [first, second] = [start, again].map((answer) => dataIn(answer)["trans"]);
  if (first === undefined || again.status === "error")
    return untested("The payment system makes no trans, or shows none again");
  if (first === second) return passed(`Shown again under its pay_id, the payment has trans ${String(first)} still`);
  return failed(`Shown again under its pay_id, the payment has trans ${String(second)}, and had ${String(first)}`);
}

async function paymentConfirmed(asker: Asker): Promise<CaseResult> {
  const answer = await asker.ask("/final_confirm", await ofPayment([...ids, "rrn"])(asker, ""));
  if (answer.status === "error") return refused(asker, "/final_confirm", answer);
  return shapeFinding(asker, "/final_confirm", answer);
}

async function paymentGivenBack(asker: Asker, route: string, name: string): Promise<CaseResult> {
  const { amount, currency } = asker.sale;
  const { end, body } = await askedPayment(asker, name);
  if (end.status === "error") return untested("The payment was not paid");
  const answer = await asker.ask(route, { ...body, rrn: dataIn(end)["rrn"], amount, currency });
  if (answer.status === "error") return refused(asker, route, answer);
  const { rrn } = dataIn(answer);
  return rrn === undefined ? failed(`It answered ${route} without an rrn`) : passed(`It gave back with rrn ${String(rrn)}`);
}
