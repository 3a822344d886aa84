import { contracts } from "../contract/contracts.ts";

/**
 * What is shown of the payloads on a line. It is a list of what is known to be harmless, since a list of secrets is never complete:
 * a terminal's next version has a field for a card's holder. What isn't here is masked.
 */

/** The fields of the contracts, and of those that devices are known to add (seen in the field): names of fields are shown, not values. */
export const fieldNames: ReadonlySet<string> = new Set(
  `
  status code message data operations systems name error
  pay_id terminal merchant amount tips cashback rrn currency currency_name package_name doc_number headless no_printing
  no_print_data txn_config language terminals terminalId merchantId merchantName mcc fiscalId txn_id card_num auth print_data
  trans pay_system fiscal_id fiscal_num fiscal_url
  documentID documentExtID docTime docNumber docStatus printTime printError fiscalID fiscalNum fiscalUrl cardNum checkNum
  totalPayments items itemId itemName itemUnit itemQty itemPrice itemAmount itemBarcode itemTaxes taxCode taxPrc taxName discount
  payments cashAmount cashlessAmount creditAmount bonusesAmount prepaymentAmount extraPayments trxParams cardNumber bankName type
  wsName departmentName departmentCode employeeName employeeFirstName employeeLastName parentDocID parentDocNum
  shiftID fiscalShiftID fiscalShiftNum shiftOpenAt isShiftOpen shiftStatus cash openOrdersOperation
  saleCount saleSum saleCashSum saleCashlessSum saleCreditSum saleBonusSum saleVatAmounts
  depositCount depositSum withdrawCount withdrawSum
  moneyBackCount moneyBackSum moneyBackCashSum moneyBackCashlessSum moneyBackCreditSum moneyBackBonusSum moneyBackVatAmounts
  vatPercent vatAmount skipReceipt skipReceiptPrint dateFrom dateFor fiscalData
  `
    .trim()
    .split(/\s+/),
);

/** The routes of all services, as they stand in requests. */
export const routePaths: ReadonlySet<string> = new Set(
  Object.values(contracts).flatMap(({ routes }) => routes.map(({ path }) => path)),
);

/** What may stand before a route: nothing, or the port that selects a service, `:8887`. */
export const isLinePrefix = (text: string) => /^(?::\d{1,5})?$/.test(text);

const words = (...all: string[]) => {
  const set: ReadonlySet<string> = new Set(all);
  return (text: string) => set.has(text);
};

const routeNames = new Set([...routePaths].map((path) => path.slice(1)));

/** Fields whose text is shown where it is one of these. */
export const shownTexts: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["status", words("success", "error", "APPROVED", "ERROR", "REVERSED", "IN_PROGRESS")],
  ["operations", (text: string) => routeNames.has(text) || routePaths.has(text)],
  ["currency", (text: string) => /^[A-Za-z]{3}$/.test(text)],
  ["currency_name", (text: string) => /^[A-Za-z]{3}$/.test(text)],
  ["language", (text: string) => /^[a-z]{2}$/.test(text)],
  ["isShiftOpen", words("true", "false")],
  ["openOrdersOperation", words("delete", "renew", "check")],
]);

/** Fields whose number is shown, if it has few digits: codes and states. */
export const shownNumbers: ReadonlySet<string> = new Set(["code", "docStatus", "shiftStatus", "printError"]);

/** Fields with a sentence for people, of which the words are shown and all that might be an id or a number isn't. */
export const sentences: ReadonlySet<string> = new Set(["message", "error"]);

/** Characters up to which letters are a word; more may be Base64. */
const wordCharsMax = 24;

/** Letters in one case, but for a capital in front, with punctuation around it. In mixed case it may be Base64. */
const plainWord =
  /^["'(«„“[]*(?:\p{Lu}?[\p{Ll}\p{M}]*|\p{Lu}+|\p{Lo}+)(?:['’/-](?:\p{Lu}?[\p{Ll}\p{M}]*|\p{Lu}+|\p{Lo}+))*["'»”)\]]*[.,:;!?…-]*$/u;

/** Whether a word of a sentence can be shown: no digit, no text that may be Base64, an id or a part of an escape. */
export function isPlainWord(word: string): boolean {
  const bare = word.replace(/[.,:;!?]+$/, "");
  return fieldNames.has(bare) || routePaths.has(bare) || (word.length <= wordCharsMax && plainWord.test(word));
}
