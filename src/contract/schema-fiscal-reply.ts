import { hear } from "./schema-parts.ts";
import * as Type from "./typebox.ts";

/** The fiscal service's answers: documents, shifts, metrics. Lenient, as terminals are; bytes are relayed as they come. */

/** A raw JSON value of any kind, whose contents the contract doesn't show. */
export function whole(description: string) {
  return Type.Unknown({ description });
}

/** Response model: flat, in every reply. `code` is documented as required, but success answers without it are real. */
export const envelope = {
  status: hear.status("'success' or 'error': decide by this alone (Response model)"),
  code: Type.Optional(hear.int32("0 on success (Response model)")),
  message: Type.Optional(hear.text("For people, mainly on errors (Response model)")),
  printError: Type.Optional(hear.int32("Print error code (Document, Response model)")),
  documentExtID: Type.Optional(hear.text("External document id (Document, Response model)")),
};

/** An element of totalPayments. The contract doesn't show its fields; these are what terminals send. */
const paymentEntry = Type.Object(
  {
    code: Type.Optional(hear.text("Kind of payment, or `type` (not in the contract)")),
    type: Type.Optional(hear.text("Kind of payment, or `code` (not in the contract)")),
    amount: Type.Optional(hear.int64("Amount in minor units (not in the contract)")),
    rrn: Type.Optional(hear.text("Card terminal reference number (not in the contract)")),
    auth: Type.Optional(hear.text("Authorization code (not in the contract)")),
    cardNum: Type.Optional(hear.text("Masked card number (not in the contract)")),
    checkNum: Type.Optional(hear.text("Terminal check number (not in the contract)")),
  },
  { description: "One payment of a document (Document)" },
);

/** An item line of /check_copy. The contract doesn't show its fields; these are what terminals send. */
export const itemLine = Type.Object(
  {
    itemId: Type.Optional(hear.text("Item id (not in the contract)")),
    itemName: Type.Optional(hear.text("Item name (not in the contract)")),
    itemUnit: Type.Optional(hear.text("Unit name (not in the contract)")),
    itemQty: Type.Optional(hear.int32("Quantity x1000 (not in the contract)")),
    itemPrice: Type.Optional(hear.int64("Unit price in minor units (not in the contract)")),
    itemAmount: Type.Optional(hear.int64("Line amount in minor units (not in the contract)")),
    discount: Type.Optional(hear.int64("Discount in minor units (not in the contract)")),
  },
  { description: "One line of a receipt copy (Document)" },
);

/** Response fields for /sale, /refund, /check_status; printError and documentExtID are in the envelope already. */
export const documentReply = {
  documentID: Type.Optional(hear.int64("Internal document id; some terminals send it as a string (Document)")),
  fiscalID: Type.Optional(hear.text("Fiscal document id (Document)")),
  fiscalNum: Type.Optional(hear.text("Fiscal document number (Document)")),
  fiscalUrl: Type.Optional(hear.text("Fiscal URL (Document)")),
  docTime: Type.Optional(hear.text("Document time, yyyy-MM-dd HH:mm:ss (Document)")),
  printTime: Type.Optional(hear.text("Print time, yyyy-MM-dd HH:mm:ss (Document)")),
  docStatus: Type.Optional(hear.int32("0 open, 1 closed; -1 occurs and is not final (Document)")),
  rrn: Type.Optional(hear.text("Card terminal reference number (Document)")),
  auth: Type.Optional(hear.text("Authorization code (Document)")),
  cardNum: Type.Optional(hear.text("Masked card number (Document)")),
  checkNum: Type.Optional(hear.text("Terminal check number (Document)")),
  totalPayments: Type.Optional(
    Type.Union([Type.Array(paymentEntry), Type.Null()], { description: "Payment breakdown (Document)" }),
  ),
  currency_name: Type.Optional(hear.text("Currency (Document)")),
};

export const shift = {
  shiftID: Type.Optional(hear.int32("Shift id (Shift)")),
  fiscalID: Type.Optional(hear.text("Fiscal shift id (Shift)")),
  shiftOpenAt: Type.Optional(hear.text("When the shift opened; yyyy-MM-dd HH:mm:ss in practice (Shift)")),
  isShiftOpen: Type.Optional(hear.flagText("'true' or 'false' as a string (Shift)")),
  shiftStatus: Type.Optional(hear.int32("1 open, 2 closed (Shift)")),
  cash: Type.Optional(hear.int64("Cash balance in minor units (Shift)")),
};

const vat = Type.Object(
  {
    vatPercent: hear.int32("Percent x100 (VAT entry)"),
    vatAmount: hear.int64("VAT amount in minor units (VAT entry)"),
    currency_name: Type.Optional(hear.text("Currency (VAT entry)")),
  },
  { description: "VAT at one rate (VAT entry)" },
);

const count = (description: string) => Type.Optional(hear.int32(`${description} (Shift metrics)`));
const sum = (description: string) => Type.Optional(hear.int64(`${description} in minor units (Shift metrics)`));
const vatAmounts = (description: string) =>
  Type.Optional(Type.Union([Type.Array(vat), Type.Null()], { description: `${description} (Shift metrics)` }));

/** Returned by /x_report and, with two fields more, by /close_shift (Shift metrics). */
export const shiftMetrics = {
  shiftID: count("Shift id"),
  shiftOpenAt: Type.Optional(hear.text("When the shift opened (Shift metrics)")),
  cash: sum("Cash balance"),
  saleCount: count("Number of sales"),
  saleSum: sum("Sales"),
  saleCashSum: sum("Sales paid in cash"),
  saleCashlessSum: sum("Sales paid cashless"),
  saleCreditSum: sum("Sales on credit"),
  saleBonusSum: sum("Sales paid by bonuses"),
  saleVatAmounts: vatAmounts("VAT of the sales"),
  depositCount: count("Number of cash deposits"),
  depositSum: sum("Cash deposits"),
  withdrawCount: count("Number of cash withdrawals"),
  withdrawSum: sum("Cash withdrawals"),
  moneyBackCount: count("Number of refunds"),
  moneyBackSum: sum("Refunds"),
  moneyBackCashSum: sum("Refunds in cash"),
  moneyBackCashlessSum: sum("Cashless refunds"),
  moneyBackCreditSum: sum("Refunds of credit"),
  moneyBackBonusSum: sum("Refunds of bonuses"),
  moneyBackVatAmounts: vatAmounts("VAT of the refunds"),
  currency_name: Type.Optional(hear.text("Currency (Shift metrics)")),
};

/** The two metrics that only /close_shift returns (Shift metrics). */
export const metricsClose = {
  fiscalShiftID: Type.Optional(hear.text("Fiscal shift id (Shift, Shift metrics)")),
  fiscalShiftNum: Type.Optional(hear.text("Fiscal shift number (Shift, Shift metrics)")),
};
