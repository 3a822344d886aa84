import { isObject, type JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { codeText, shapeFinding } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";
import { type Row, type Sentence, sellingChecks } from "./check.ts";
import { ended, type FollowedToEnd, follow } from "./follow.ts";

/** Payments by code. */

const qrEnds: Sentence =
  "Endpoints, flow rule 2: Continue while the response is success without data; stop on a final rrn or status error.";
const trans: Sentence =
  "Endpoints, responses: data.trans carries it, and it must be saved and used in later /check, /cancel, /refund and /final_confirm requests.";
const selector: Sentence =
  "Payment system selector: pay_system is a case-sensitive string and must be sent exactly as configured.";
const confirmed: Sentence = "Endpoints, responses: /final_confirm: on success status success, typically without data.";
const givenBack: Sentence = "Endpoints, responses: /cancel and /refund: on success data.rrn.";

const rows: readonly Row[] = [
  ["qr", "payment", "a payment, followed to its end", qrEnds, paymentEnds],
  ["qr", "trans", "a payment's trans", trans, paymentsTrans],
  ["qr", "pay-system", "pay_system in another case", selector, systemInOtherCase],
  ["qr", "final-confirm", "a payment is confirmed", confirmed, paymentConfirmed],
  ["qr", "refund", "a payment is given back by its trans", givenBack, paymentGivenBack],
];

export const codePayments = sellingChecks(rows);

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

const qrPayment = (asker: Asker) =>
  asker.once("payment", async () => {
    const system = await systemOf(asker);
    const body = showBody(asker, system, "payment");
    return { system, ...(await follow(asker, { what: "payment", name: "payment", route: "/showqrcode", body })) };
  });

const endOfPayment = (payment: FollowedToEnd) => ended(payment, `It refused to show a payment${codeText(payment.start)}`);

async function paymentEnds(asker: Asker): Promise<CaseResult> {
  const payment = await qrPayment(asker);
  const end = endOfPayment(payment);
  const odd = payment.polls.find((answer) => answer !== end && (answer.json["data"] ?? null) !== null);
  if (odd !== undefined) return failed("In progress it answered with data, and without an rrn");
  const how = end.status === "error" ? `an error${codeText(end)}` : "an rrn";
  return shapeFinding(asker, "/check", end, `The payment ended with ${how}`);
}

async function paymentsTrans(asker: Asker): Promise<CaseResult> {
  const payment = await qrPayment(asker);
  const end = endOfPayment(payment);
  const { trans } = dataIn(payment.start);
  if (trans === undefined) return untested("The payment system makes no trans");
  if (end.status === "error") return untested("The payment was not paid");
  const again = await asker.ask("/check", { pay_id: payment.key, trans, pay_system: payment.system });
  const [first, second] = [dataIn(end)["rrn"], dataIn(again)["rrn"]];
  if (first === second) return passed(`Asked by its trans, the payment has rrn ${String(first)} each time`);
  return failed(`Asked by its trans once more, the payment has rrn ${String(second)}, and had ${String(first)}`);
}

/** Asks about the payment that was paid, by a route that its payment system lists. */
async function ofPayment(asker: Asker, route: string, more: (end: TerminalAnswer) => JsonObject): Promise<TerminalAnswer> {
  const payment = await qrPayment(asker);
  const end = endOfPayment(payment);
  if (end.status === "error") throw new CheckEnd(untested("The payment was not paid"));
  const { trans } = dataIn(payment.start);
  const answer = await asker.ask(route, {
    pay_system: payment.system,
    pay_id: payment.key,
    trans: trans ?? payment.key,
    ...more(end),
  });
  if (answer.status === "error") throw new CheckEnd(untested(`It refused ${route}${codeText(answer)}`));
  return answer;
}

async function paymentConfirmed(asker: Asker): Promise<CaseResult> {
  return shapeFinding(asker, "/final_confirm", await ofPayment(asker, "/final_confirm", () => ({})));
}

async function paymentGivenBack(asker: Asker): Promise<CaseResult> {
  const { amount, currency } = asker.sale;
  const back = await ofPayment(asker, "/refund", (end) => ({ rrn: dataIn(end)["rrn"], amount, currency }));
  const { rrn } = dataIn(back);
  return rrn === undefined ? failed("It gave back without an rrn") : passed(`It gave back with rrn ${String(rrn)}`);
}

async function systemInOtherCase(asker: Asker): Promise<CaseResult> {
  const system = await systemOf(asker);
  const other = system === system.toLowerCase() ? system.toUpperCase() : system.toLowerCase();
  if (other === system) return untested(`${system} has no upper or lower case`);
  const answer = await asker.ask("/showqrcode", showBody(asker, other, "case"));
  if (answer.status !== "error") return failed(`It took pay_system ${other} for ${system}`);
  return passed(`It refused pay_system ${other} for ${system}`);
}
