import { setTimeout as pause } from "node:timers/promises";
import { bank } from "../contract/bank.ts";
import { isObject, type JsonObject, looseInteger } from "../core/json-object.ts";
import { codeText, refusalCheck, shapeFinding } from "./answers.ts";
import { type Answer, type Asker, dataOf } from "./asker.ts";
import { broken, type Check, CheckEnd, type Finding, held, ruleOf, type Sale, unseen } from "./check.ts";

/** What a terminal is asked with an amount: this moves money, and prints. One operation of a kind is judged by several checks. */

/** An operation that was started, and what was answered about it until its end. */
interface Followed {
  readonly key: string;
  readonly start: Answer;
  readonly polls: readonly Answer[];
  /** The answer with the end; undefined if none came while it was followed. */
  readonly end: Answer | undefined;
}

function saleOf({ sale }: Asker): Sale {
  if (sale === undefined) throw new CheckEnd(unseen("It needs an amount: --with-sales"));
  return sale;
}

/** Asks again and again until an answer ends it. */
async function follow(
  asker: Asker,
  ask: () => Promise<Answer>,
  isEnd: (answer: Answer) => boolean,
): Promise<Pick<Followed, "polls" | "end">> {
  const polls: Answer[] = [];
  const { pollMs, followMs } = asker.pace;
  for (let waitedMs = 0; waitedMs < followMs; waitedMs += pollMs) {
    const answer = await ask();
    polls.push(answer);
    if (isEnd(answer)) return { polls, end: answer };
    await pause(pollMs);
  }
  return { polls, end: undefined };
}

function ended(followed: Followed, what: string): Answer {
  const { end, start, polls, key } = followed;
  if (end !== undefined) return end;
  if (start.status === "error") throw new CheckEnd(unseen(`It refused the ${what}${codeText(start)}`));
  throw new CheckEnd(unseen(`The ${what} of key ${key} had not ended after ${polls.length} questions: look at the terminal`));
}

const onBank = { service: "bank", sells: true } as const;
const key = ruleOf("bank", "What the service does", "pay_id is the idempotency key and the state-recovery key.");

const bankBody = (asker: Asker, name: string): JsonObject => {
  const { amount, currency } = saleOf(asker);
  return { pay_id: asker.key(name), amount, currency_name: currency };
};

const isBankEnd = (answer: Answer) => (bank.finals.values as readonly unknown[]).includes(dataOf(answer)["status"]);

/** After a refusal there is nothing to follow. */
const isAbsent = ({ status, code }: Answer) => status === "error" && bank.finals.absentCodes.includes(code ?? 0);

function followBank(asker: Asker, payId: unknown): Promise<Pick<Followed, "polls" | "end">> {
  return follow(
    asker,
    () => asker.ask("/check", { pay_id: payId }),
    (answer) => isBankEnd(answer) || isAbsent(answer),
  );
}

async function startedBank(asker: Asker, name: string, between?: (body: JsonObject) => Promise<void>): Promise<Followed> {
  const body = bankBody(asker, name);
  const start = await asker.ask("/sale", body);
  await between?.(body);
  const { polls, end } = await followBank(asker, body["pay_id"]);
  return { key: asker.key(name), start, polls, end: end !== undefined && isAbsent(end) ? undefined : end };
}

const bankSale = (asker: Asker) => asker.once("bank sale", () => startedBank(asker, "sale"));

/** What names a bank's operation in its result. */
const bankIdentity = (answer: Answer) => [dataOf(answer)["txn_id"], dataOf(answer)["rrn"]].map(String).join(", rrn ");

const bankStatus = (answer: Answer) => String(dataOf(answer)["status"]);

/** The result as /check gives it with more fields in the question. */
const checkedAgain = (asker: Asker, { key }: Followed, fields: JsonObject = {}) =>
  asker.ask("/check", { pay_id: key, ...fields });

const bankChecks: readonly Check[] = [
  {
    ...onBank,
    name: "bank-sale",
    title: "bank: a sale, followed to its end",
    rule: ruleOf(
      "bank",
      "Endpoints, rule 1",
      "status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.",
    ),
    run: async (asker) => {
      const end = ended(await bankSale(asker), "sale");
      const status = bankStatus(end);
      const fitting = status === "APPROVED" ? "success" : "error";
      if (end.status !== fitting) return broken(`It answered data.status ${status} with status ${String(end.status)}`);
      const shape = shapeFinding(asker, "/check", end);
      return shape.verdict === "held" ? held(`The sale ended ${status}`) : shape;
    },
  },
  {
    ...onBank,
    name: "bank-in-progress",
    title: "bank: a sale in progress",
    rule: ruleOf("bank", "States and transitions", "IN_PROGRESS is never returned as data.status."),
    run: async (asker) => {
      const followed = await bankSale(asker);
      ended(followed, "sale");
      const open = [followed.start, ...followed.polls].filter((answer) => !isBankEnd(answer));
      const named = open.find((answer) => dataOf(answer)["status"] !== undefined);
      if (named !== undefined) return broken(`It answered data.status ${bankStatus(named)}, which is no end`);
      const refused = open.find(({ status }) => status !== "success");
      if (refused !== undefined) return broken(`It answered about a sale in progress with an error${codeText(refused)}`);
      return held(`In ${open.length} answers before the end data.status was in none`);
    },
  },
  {
    ...onBank,
    name: "bank-same-key",
    title: "bank: the same pay_id twice",
    rule: key,
    run: async (asker) => {
      const followed = await bankSale(asker);
      const end = ended(followed, "sale");
      await asker.ask("/sale", bankBody(asker, "sale"));
      const { end: again } = await followBank(asker, followed.key);
      if (again === undefined) return unseen("The sale that was sent twice had not ended");
      const { txn_id, rrn } = dataOf(end);
      if (txn_id === undefined && rrn === undefined)
        return unseen("Its results have no txn_id and no rrn to tell one sale from two");
      if (bankIdentity(again) !== bankIdentity(end)) {
        return broken(
          `Sent twice under one pay_id, it made two operations: txn_id ${bankIdentity(end)}, and txn_id ${bankIdentity(again)}`,
        );
      }
      return held(`Sent twice under one pay_id, it is one operation: txn_id ${bankIdentity(end)}`);
    },
  },
  {
    ...onBank,
    name: "bank-no-print-data",
    title: "bank: no_print_data",
    rule: ruleOf("bank", "Status query request", "omits print_data from the response when transaction data is returned"),
    run: async (asker) => {
      const followed = await bankSale(asker);
      const end = ended(followed, "sale");
      const without = await checkedAgain(asker, followed, { no_print_data: true });
      if (!isBankEnd(without)) return broken("Asked with no_print_data, it no longer tells the end");
      if (isObject(dataOf(without)["print_data"])) return broken("Asked with no_print_data, it answered with print_data");
      if (!isObject(dataOf(end)["print_data"])) return unseen("It has no print_data to leave out");
      return held("With no_print_data it leaves print_data out");
    },
  },
  {
    ...onBank,
    name: "bank-language",
    title: "bank: language",
    rule: ruleOf("bank", "Status query request", "language (string, optional)"),
    run: async (asker) => {
      const followed = await bankSale(asker);
      const end = ended(followed, "sale");
      for (const language of ["en", "ru", "xx"]) {
        const answer = await checkedAgain(asker, followed, { language });
        if (bankStatus(answer) === bankStatus(end) && answer.status === end.status) continue;
        return broken(
          `Asked in language ${language}, it answered ${bankStatus(answer)}; without a language ${bankStatus(end)}`,
        );
      }
      return held(`Asked in en, ru and xx, it answered ${bankStatus(end)}`);
    },
  },
  {
    ...onBank,
    name: "bank-abort",
    title: "bank: a sale is aborted",
    rule: ruleOf("bank", "Endpoints", "attempts to stop the operation of pay_id; may return final transaction data"),
    run: async (asker) => {
      let abort: Answer | undefined;
      const followed = await startedBank(asker, "abort", async ({ pay_id }) => {
        abort = await asker.ask("/abort", { pay_id });
      });
      const end = ended(followed, "sale");
      if (abort?.status === "error" && !isBankEnd(abort)) return unseen(`It refused /abort${codeText(abort)}`);
      if (abort !== undefined && isBankEnd(abort) && bankStatus(abort) !== bankStatus(end)) {
        return broken(`/abort said ${bankStatus(abort)}, and /check ${bankStatus(end)}`);
      }
      return held(`After /abort the sale ended ${bankStatus(end)}`);
    },
  },
  {
    ...onBank,
    name: "bank-abort-after-end",
    title: "bank: an ended sale is aborted",
    rule: ruleOf(
      "bank",
      "States and transitions",
      "operation already approved | APPROVED | response may carry final transaction data",
    ),
    run: async (asker) => {
      const followed = await bankSale(asker);
      const end = ended(followed, "sale");
      if (bankStatus(end) !== "APPROVED") return unseen(`The sale ended ${bankStatus(end)}`);
      await asker.ask("/abort", { pay_id: followed.key });
      const after = await checkedAgain(asker, followed);
      if (bankStatus(after) !== "APPROVED") return broken(`After /abort of an approved sale /check said ${bankStatus(after)}`);
      return held("After /abort of an approved sale it is still APPROVED");
    },
  },
  refusalCheck({
    ...onBank,
    name: "tips-and-cashback",
    title: "Tips and cashback",
    says: ["Financial operation request", "tips and cashback must not both be greater than zero."],
    ask: (asker) => refusedSale(asker, "tips", { tips: 1, cashback: 1 }),
    what: "with tips and cashback",
  }),
  refusalCheck({
    ...onBank,
    name: "unknown-currency",
    title: "A currency that there is none of",
    says: ["Errors", "-47 | unsupported currency"],
    ask: (asker) => refusedSale(asker, "currency", { currency_name: "POSLINE" }),
    what: "in a currency that there is none of",
    code: -47,
  }),
];

/** A sale that must be refused. One that isn't is stopped again, as far as it can be. */
async function refusedSale(asker: Asker, name: string, fields: JsonObject): Promise<Answer> {
  const body = { ...bankBody(asker, name), ...fields };
  const answer = await asker.ask("/sale", body);
  if (answer.status !== "error") await asker.ask("/abort", { pay_id: body["pay_id"] });
  return answer;
}

const onFiscal = { service: "fiscal", sells: true } as const;

const receiptBody = (asker: Asker): JsonObject => {
  const { amount } = saleOf(asker);
  const items = [{ itemId: "1", itemName: "posline certify", itemUnit: "pc", itemQty: 1000, itemAmount: amount }];
  return { documentExtID: asker.key("receipt"), items, payments: { cashAmount: amount } };
};

const documentOf = ({ json }: Answer) => (json["documentID"] === undefined ? undefined : String(json["documentID"]));

const isClosed = ({ json }: Answer) => looseInteger(json["docStatus"]) === 1;

const stillProcessing = 44;

/** The receipt as it was answered, and asked about while it was processed. */
const receipt = (asker: Asker) =>
  asker.once("receipt", async (): Promise<Followed> => {
    const start = await asker.ask("/sale", receiptBody(asker));
    if (start.status === "error" && start.code !== stillProcessing && start.code !== 15) {
      throw new CheckEnd(unseen(`It refused the receipt${codeText(start)}: ${String(start.json["message"] ?? "")}`));
    }
    const ask = () => asker.ask("/check_status", { documentExtID: asker.key("receipt") });
    return { key: asker.key("receipt"), start, ...(await follow(asker, ask, isClosed)) };
  });

const fiscalChecks: readonly Check[] = [
  {
    ...onFiscal,
    name: "fiscal-check-status",
    title: "fiscal: a receipt, followed to docStatus 1",
    rule: ruleOf("fiscal", "Errors, recovery", "do not resend; poll /check_status until docStatus 1."),
    run: async (asker) => {
      const followed = await receipt(asker);
      const end = ended(followed, "receipt");
      const { start } = followed;
      if (documentOf(start) !== undefined && documentOf(end) !== documentOf(start)) {
        return broken(`/sale made document ${documentOf(start)}, and /check_status says ${documentOf(end)}`);
      }
      const shape = shapeFinding(asker, "/check_status", end);
      return shape.verdict === "held" ? held(`Document ${documentOf(end) ?? "without a number"} has docStatus 1`) : shape;
    },
  },
  {
    ...onFiscal,
    name: "fiscal-same-key",
    title: "fiscal: a receipt twice by its documentExtID",
    rule: ruleOf(
      "fiscal",
      "Endpoints, rule 3",
      "resending the same request with the same documentExtID returns the existing result or continues processing the same operation.",
    ),
    run: async (asker) => {
      const end = ended(await receipt(asker), "receipt");
      const again = await asker.ask("/sale", receiptBody(asker));
      return sameDocument(end, again, "receipt");
    },
  },
  {
    ...onFiscal,
    name: "fiscal-check-copy",
    title: "fiscal: a copy of the receipt",
    rule: ruleOf("fiscal", "Endpoints", "/check_copy requires documentID."),
    run: async (asker) => {
      const end = ended(await receipt(asker), "receipt");
      const id = end.json["documentID"];
      if (id === undefined) return unseen("The receipt has no documentID to ask by");
      const copy = await asker.ask("/check_copy", { documentID: id });
      if (copy.status === "error") return broken(`It has no copy of its own document ${documentOf(end)}${codeText(copy)}`);
      const shape = shapeFinding(asker, "/check_copy", copy);
      if (shape.verdict !== "held") return shape;
      const other = documentOf(copy);
      if (other !== undefined && other !== documentOf(end))
        return broken(`Asked for document ${documentOf(end)}, it copied ${other}`);
      return held(`It gave a copy of document ${documentOf(end)}`);
    },
  },
  {
    ...onFiscal,
    name: "fiscal-deposit-twice",
    title: "fiscal: a deposit twice by its documentExtID",
    rule: ruleOf("fiscal", "Endpoints, rule 2", "is the retry key to find and reuse the same document."),
    run: async (asker) => {
      const { amount } = saleOf(asker);
      const body = { documentExtID: asker.key("deposit"), amount };
      const before = await cashIn(asker);
      const made = await asker.ask("/deposit", body);
      if (made.status === "error") return unseen(`It refused the deposit${codeText(made)}`);
      const again = await asker.ask("/deposit", body);
      const after = await cashIn(asker);
      if (before !== undefined && after !== undefined && after - before !== amount) {
        return broken(`Two times the same deposit of ${amount} made the cash grow by ${after - before}`);
      }
      const finding = sameDocument(made, again, "deposit");
      const isCounted = before !== undefined && after !== undefined;
      return finding.verdict === "not seen" && isCounted ? held(`The cash grew by ${amount} once`) : finding;
    },
  },
  refusalCheck({
    ...onFiscal,
    name: "deposit-of-nothing",
    title: "A deposit of 0",
    says: ["Limits", "amount in /deposit and /withdraw | greater than 0"],
    ask: (asker) => asker.ask("/deposit", { documentExtID: asker.key("nothing"), amount: 0 }),
    what: "to deposit 0",
  }),
  refusalCheck({
    ...onFiscal,
    name: "receipt-of-nothing",
    title: "A receipt without items",
    says: ["Limits", "items in /sale and /refund | non-empty"],
    ask: (asker) => asker.ask("/sale", { documentExtID: asker.key("empty"), items: [] }),
    what: "for a receipt without items",
  }),
];

function sameDocument(made: Answer, again: Answer, what: string): Finding {
  if (again.status === "error" && again.code !== stillProcessing && again.code !== 15) {
    return broken(`Sent once more under its documentExtID, the ${what} was refused${codeText(again)}`);
  }
  const [first, second] = [documentOf(made), documentOf(again)];
  if (first === undefined || second === undefined) return unseen(`The answers have no documentID to tell one ${what} from two`);
  if (first !== second) return broken(`Two times the same ${what} made documents ${first} and ${second}`);
  return held(`Sent once more under its documentExtID, the ${what} is document ${first} still`);
}

/** The drawer's cash, if the terminal tells it. */
async function cashIn(asker: Asker): Promise<number | undefined> {
  const { json } = await asker.ask("/check_shift");
  return looseInteger(json["cash"]);
}

const onQr = { service: "qr", sells: true } as const;

interface QrPayment extends Followed {
  readonly system: string;
  readonly trans: unknown;
}

/** The first payment system that shows a code and can be asked about it. */
async function systemOf(asker: Asker): Promise<string> {
  const listed = dataOf(await asker.ask("/check_connection"))["systems"];
  const systems = Array.isArray(listed) ? listed.filter(isObject) : [];
  const usable = systems.find(
    ({ operations }) => Array.isArray(operations) && ["showqrcode", "check"].every((each) => operations.includes(each)),
  );
  if (typeof usable?.["name"] === "string") return usable["name"];
  throw new CheckEnd(unseen("/check_connection lists no payment system with showqrcode and check"));
}

const showBody = (asker: Asker, system: string, name: string): JsonObject => {
  const { amount, currency } = saleOf(asker);
  return { pay_id: asker.key(name), amount, currency, currency_name: currency, pay_system: system };
};

const isQrEnd = (answer: Answer) => answer.status === "error" || dataOf(answer)["rrn"] !== undefined;

const qrPayment = (asker: Asker) =>
  asker.once("payment", async (): Promise<QrPayment> => {
    const system = await systemOf(asker);
    const start = await asker.ask("/showqrcode", showBody(asker, system, "payment"));
    if (start.status === "error") throw new CheckEnd(unseen(`It refused to show a payment${codeText(start)}`));
    const key = asker.key("payment");
    const trans = dataOf(start)["trans"] ?? key;
    const ask = () => asker.ask("/check", { pay_id: key, trans, pay_system: system });
    return { key, system, trans, start, ...(await follow(asker, ask, isQrEnd)) };
  });

const qrChecks: readonly Check[] = [
  {
    ...onQr,
    name: "qr-payment",
    title: "qr: a payment, followed to its end",
    rule: ruleOf(
      "qr",
      "Endpoints, flow rule 2",
      "Continue while the response is success without data; stop on a final rrn or status error.",
    ),
    run: async (asker) => {
      const followed = await qrPayment(asker);
      const end = ended(followed, "payment");
      const open = followed.polls.filter((answer) => !isQrEnd(answer));
      const odd = open.find(({ json }) => (json["data"] ?? null) !== null);
      if (odd !== undefined) return broken("In progress it answered with data, and without an rrn");
      const shape = shapeFinding(asker, "/check", end);
      if (shape.verdict !== "held") return shape;
      return held(end.status === "error" ? `The payment ended with an error${codeText(end)}` : "The payment ended with an rrn");
    },
  },
  {
    ...onQr,
    name: "qr-trans",
    title: "qr: a payment's trans",
    rule: ruleOf(
      "qr",
      "Endpoints, responses",
      "data.trans carries it, and it must be saved and used in later /check, /cancel, /refund and /final_confirm requests.",
    ),
    run: async (asker) => {
      const followed = await qrPayment(asker);
      const end = ended(followed, "payment");
      if (dataOf(followed.start)["trans"] === undefined) return unseen("The payment system makes no trans");
      if (end.status === "error") return unseen("The payment was not paid");
      const { key, trans, system } = followed;
      const again = await asker.ask("/check", { pay_id: key, trans, pay_system: system });
      const [first, second] = [dataOf(end)["rrn"], dataOf(again)["rrn"]];
      if (first !== second)
        return broken(`Asked by its trans once more, the payment has rrn ${String(second)}, and had ${String(first)}`);
      return held(`Asked by its trans, the payment has rrn ${String(first)} each time`);
    },
  },
  {
    ...onQr,
    name: "qr-pay-system",
    title: "qr: pay_system in another case",
    rule: ruleOf(
      "qr",
      "Payment system selector",
      "pay_system is a case-sensitive string and must be sent exactly as configured.",
    ),
    run: async (asker) => {
      const system = await systemOf(asker);
      const other = system === system.toLowerCase() ? system.toUpperCase() : system.toLowerCase();
      if (other === system) return unseen(`${system} has no upper or lower case`);
      const answer = await asker.ask("/showqrcode", showBody(asker, other, "case"));
      if (answer.status !== "error") return broken(`It took pay_system ${other} for ${system}`);
      return held(`It refused pay_system ${other} for ${system}`);
    },
  },
];

/** The checks that sell. */
export const saleChecks: readonly Check[] = [...bankChecks, ...qrChecks, ...fiscalChecks];
