import { isObject, isTexts, type JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { rightRefused } from "./answers.ts";
import { type Asker, CheckEnd, dataIn } from "./asker.ts";
import type { Row, Sentence, Sentences } from "./check.ts";
import { againRows, ended, endFinding, type FollowedToEnd, follow, type RightBody, wrongRows } from "./operations.ts";

/** Payments by code. */

/** Each is for qr alone. */
const of = (qr: Sentence): Sentences => ({ qr });

const back = of("Endpoints, responses: /cancel and /refund: on success data.rrn.");

const rows: readonly Row[] = [
  ["payment", "a payment, to its end", of("Endpoints: stop on a final rrn"), (asker) => endFinding(asker, qrPayment(asker))],
  ["trans", "a payment is shown again", of("What the service does: Stable identifiers pay_id and trans"), shownAgain],
  ["cancel", "another is cancelled", back, (asker) => givenBack(asker, "/cancel", "cancel")],
  // While nothing was given back of it, and another came after it.
  ...againRows(qrPayment),
  ["final-confirm", "a payment is confirmed", of("Endpoints: /final_confirm: on success status success"), paymentConfirmed],
];

const ids = ["pay_id", "trans", "pay_system"];

/** Fields of the payment. */
const ofPayment = (...more: readonly string[]): RightBody => {
  return async (asker) => {
    const fields = await paid(asker, "payment");
    return Object.fromEntries(Object.entries(fields).filter(([name]) => [...ids, ...more].includes(name)));
  };
};

const all = ofPayment("rrn", "amount", "currency");
const confirm = ofPayment("rrn");
const show: RightBody = async (asker, name) => {
  const { amount, currency } = asker.sale;
  return { pay_id: asker.key(name), amount, currency, currency_name: currency, pay_system: await systemOf(asker) };
};

/** pay_system in another case, if it has one, and one that there is none of. */
const otherSystems = (body: JsonObject) => {
  const name = String(body["pay_system"]);
  const others = [name.toLowerCase(), name.toUpperCase(), "posline"].filter((each) => each !== name);
  return others.map((pay_system) => ({ ...body, pay_system }));
};

const rights = { "/showqrcode": show, "/check": ofPayment(), "/cancel": all, "/refund": all, "/final_confirm": confirm };

export const codePayments: readonly Row[] = [
  ...rows,
  ...wrongRows(rights, [
    [
      "pay-system",
      "for another pay_system",
      of("Payment system selector: pay_system is a case-sensitive string"),
      otherSystems,
    ],
  ]),
  // At last, since what is given back already is refused for that.
  ["refund", "a payment is given back by its trans", back, (asker) => givenBack(asker, "/refund", "payment")],
];

/** The first payment system that shows a code and can be asked about it. */
async function systemOf(asker: Asker): Promise<string> {
  const { systems } = dataIn(await asker.ask("/check_connection"));
  const usable = (Array.isArray(systems) ? systems.filter(isObject) : []).find(
    ({ operations }) => isTexts(operations) && ["showqrcode", "check"].every((each) => operations.includes(each)),
  );
  if (usable !== undefined) return String(usable["name"]);
  throw new CheckEnd(untested("/check_connection lists no payment system with showqrcode and check"));
}

async function qrPayment(asker: Asker, name = "payment"): Promise<FollowedToEnd> {
  const body = await show(asker, name);
  return asker.once(name, () => follow(asker, [name, "/showqrcode", body]));
}

/** What names a payment that was paid, and what it was. @throws CheckEnd for one that wasn't. */
async function paid(asker: Asker, name: string): Promise<JsonObject> {
  const payment = await qrPayment(asker, name);
  const end = ended(asker, payment);
  if (end.status === "error") throw new CheckEnd(untested("The payment was not paid"));
  const { amount, currency } = asker.sale;
  return { ...payment.question[1], rrn: dataIn(end)["rrn"], amount, currency };
}

async function shownAgain(asker: Asker): Promise<CaseResult> {
  const { start } = await qrPayment(asker);
  const again = await asker.ask("/showqrcode", await show(asker, "payment"));
  const [first, second] = [start, again].map((answer) => dataIn(answer)["trans"]);
  if (first === undefined || again.status === "error")
    return untested("The payment system makes no trans, or shows none again");
  if (first === second) return passed(`Shown again under its pay_id, the payment has trans ${String(first)} still`);
  return failed(`Shown again under its pay_id, the payment has trans ${String(second)}, and had ${String(first)}`);
}

async function paymentConfirmed(asker: Asker): Promise<CaseResult> {
  const body = await confirm(asker, "");
  const answer = await asker.ask("/final_confirm", body);
  const fiscal = { fiscal_id: "1", fiscal_num: "1", fiscal_url: "https://posline.invalid" };
  const whole =
    answer.status === "error" && (await asker.ask("/final_confirm", { ...body, ...fiscal, amount: asker.sale.amount }));
  if (whole && whole.status === "success")
    return failed("It confirms a payment with the optional fields, and refuses to without");
  return answer.status === "error" ? rightRefused(asker, "/final_confirm", answer) : passed("It confirmed the payment");
}

async function givenBack(asker: Asker, route: string, name: string): Promise<CaseResult> {
  const answer = await asker.ask(route, await paid(asker, name));
  if (answer.status === "error") return rightRefused(asker, route, answer);
  const { rrn } = dataIn(answer);
  return rrn === undefined ? failed(`It answered ${route} without an rrn`) : passed(`It gave back with rrn ${String(rrn)}`);
}
