import { documentReply, envelope, itemLine, metricsClose, shift, shiftMetrics, whole } from "./schema-fiscal-reply.ts";
import { type RouteSchemas, say, whenSuccess } from "./schema-parts.ts";
import * as Type from "./typebox.ts";

/** The fiscal contract's requests, and every route with both its sides. "(Item object)" and such name the source section. */

const documentId = () => say.int64("Internal document id, assigned by the service (Document)");
const documentExtId = () => say.text("External document id: the key of first sends, retries and recovery (Document)");
const employeeName = () => Type.Optional(say.text("Name of the cashier (Endpoints)"));

const tax = Type.Object(
  {
    taxCode: Type.Optional(say.text("Symbolic tax code (Tax object)")),
    taxPrc: Type.Optional(say.int32("Tax in percent x100: 1800 is 18 % (Tax object)")),
  },
  { description: "One tax line (Tax object)" },
);

const item = Type.Object(
  {
    itemId: Type.Optional(say.text("Item id (Item object)")),
    itemName: Type.Optional(say.text("Item name (Item object)")),
    itemUnit: Type.Optional(say.text("Unit name (Item object)")),
    itemQty: Type.Optional(say.int32("Quantity x1000, default 1000: 1000 is 1.000 (Item object)")),
    itemAmount: Type.Optional(say.int64("Line amount in minor units (Item object)")),
    itemTaxes: Type.Optional(Type.Array(tax, { description: "Tax lines (Item object)" })),
  },
  { description: "One line of a receipt (Item object)" },
);

const paymentSplit = Type.Object(
  {
    cashAmount: Type.Optional(say.int64("Cash in minor units, default 0 (Payment split object)")),
    cashlessAmount: Type.Optional(say.int64("Cashless in minor units, default 0 (Payment split object)")),
    creditAmount: Type.Optional(say.int64("Credit in minor units, default 0 (Payment split object)")),
    bonusesAmount: Type.Optional(say.int64("Bonuses in minor units, default 0 (Payment split object)")),
    prepaymentAmount: Type.Optional(say.int64("Prepayment in minor units, default 0 (Payment split object)")),
  },
  { description: "How the sum is split by kind of payment (Payment split object)" },
);

const trxParams = Type.Object(
  {
    rrn: Type.Optional(say.text("Card terminal reference number (trxParams)")),
    cardNumber: Type.Optional(say.text("Card number, masked (trxParams)")),
    bankName: Type.Optional(say.text("Bank name (trxParams)")),
  },
  { description: "Parameters of the card transaction (Extra payment object)" },
);

const extraPayment = Type.Object(
  {
    code: Type.Optional(say.text("Kind of payment (Extra payment object)")),
    amount: Type.Optional(say.int64("Amount in minor units, default 0 (Extra payment object)")),
    trxParams: Type.Optional(trxParams),
  },
  { description: "A payment beside the split (Extra payment object)" },
);

/** The fields that /sale and /refund share (Endpoints). */
const receipt = {
  documentID: Type.Optional(documentId()),
  documentExtID: Type.Optional(documentExtId()),
  docTime: Type.Optional(say.docTime("Document time, yyyy-MM-dd HH:mm:ss (What the service does, rule 7)")),
  docNumber: Type.Optional(say.text("Document number (Endpoints)")),
  employeeName: employeeName(),
  employeeFirstName: Type.Optional(say.text("Used when employeeName is empty (Endpoints)")),
  employeeLastName: Type.Optional(say.text("Used when employeeName is empty (Endpoints)")),
  items: Type.Array(item, { minItems: 1, description: "Receipt lines, non-empty (Limits)" }),
  payments: Type.Optional(paymentSplit),
  extraPayments: Type.Optional(Type.Array(extraPayment, { description: "Payments beside the split (Endpoints)" })),
};

const sale = Type.Object(
  {
    ...receipt,
    wsName: Type.Optional(say.text("Name of the workstation (Endpoints)")),
    departmentName: Type.Optional(say.text("Department name (Endpoints)")),
    departmentCode: Type.Optional(say.text("Department code (Endpoints)")),
  },
  { description: "Fiscalises a sale (Endpoints)" },
);

const refund = Type.Object(
  {
    ...receipt,
    parentDocID: Type.Optional(say.text("Original sale reference (Endpoints)")),
    parentDocNum: Type.Optional(say.text("Original sale number (Endpoints)")),
  },
  { description: "Fiscalises a refund (Endpoints)" },
);

const checkStatus = Type.Object(
  { documentID: Type.Optional(documentId()), documentExtID: Type.Optional(documentExtId()) },
  {
    description: "Names a document by at least one of its ids (Endpoints)",
    anyOf: [{ required: ["documentID"] }, { required: ["documentExtID"] }],
  },
);

const checkCopy = Type.Object({ documentID: documentId() }, { description: "Asks for a receipt copy (Endpoints, rule 4)" });

const abort = Type.Object(
  {
    documentExtID: documentExtId(),
    docTime: Type.Optional(say.docTime("Document time, yyyy-MM-dd HH:mm:ss (What the service does, rule 7)")),
    docNumber: Type.Optional(say.text("Document number (Endpoints)")),
    amount: Type.Optional(say.int64("Amount in minor units (Endpoints)")),
  },
  { description: "Aborts a document by external id (Endpoints)" },
);

const openShift = Type.Object({ employeeName: employeeName() }, { description: "Opens the shift (Endpoints)" });

const closeShift = Type.Object(
  {
    employeeName: employeeName(),
    // A text and not an enum: "missing or any other value behaves as check"
    openOrdersOperation: Type.Optional(say.text("delete, renew or check; any other value behaves as check (Endpoints)")),
  },
  { description: "Closes the shift (Endpoints)" },
);

const empty = Type.Object({}, { description: "An empty JSON object is accepted (Endpoints)" });

const xReport = Type.Object(
  {
    employeeName: employeeName(),
    skipReceipt: Type.Optional(say.flag("True skips the print/report output step (Endpoints, rule 1)")),
    skipReceiptPrint: Type.Optional(say.flag("Alias of skipReceipt (Endpoints)")),
  },
  { description: "Makes an X report (Endpoints)" },
);

const cash = Type.Object(
  {
    documentID: Type.Optional(documentId()),
    documentExtID: Type.Optional(documentExtId()),
    amount: say.int64Positive("Amount in minor units, greater than 0 (Limits)"),
    employeeName: employeeName(),
  },
  { description: "Cash into or out of the drawer; documentExtID or documentID is the retry key (Endpoints, rule 2)" },
);

const datesReport = Type.Object(
  {
    employeeName: employeeName(),
    dateFrom: Type.Optional(say.date("First day, yyyy-MM-dd (Endpoints)")),
    dateFor: Type.Optional(say.date("Last day, yyyy-MM-dd (Endpoints)")),
  },
  { description: "Makes a report over a range of dates (Endpoints)" },
);

function reply<Fields extends Type.TProperties>(fields: Fields) {
  return Type.Object({ ...envelope, ...fields });
}

const { fiscalShiftID, fiscalShiftNum } = metricsClose;
const { shiftID, fiscalID, shiftOpenAt, isShiftOpen, shiftStatus, cash: shiftCash } = shift;
const { documentID, fiscalNum, fiscalUrl, docStatus, printTime, totalPayments, currency_name } = documentReply;

const supportedOperationsReply = Type.Object(
  {
    ...envelope,
    operations: Type.Optional(Type.Array(Type.String(), { description: "Route names without leading slash (Endpoints)" })),
  },
  whenSuccess({ required: ["operations"] }),
);
const documentReplySchema = reply(documentReply);
const copyReply = reply({
  documentID,
  fiscalID: documentReply.fiscalID,
  fiscalNum,
  docStatus,
  printTime,
  items: Type.Optional(Type.Array(itemLine, { description: "Lines of the copy (Document)" })),
  totalPayments,
  currency_name,
});
const cashReply = reply({ documentID, fiscalID: documentReply.fiscalID, fiscalNum, fiscalUrl });
const shiftReply = reply({ shiftID, isShiftOpen, shiftStatus, shiftOpenAt, cash: shiftCash });

export const fiscalSchemas = {
  "/supported_operations": { request: undefined, reply: supportedOperationsReply },
  "/sale": { request: sale, reply: documentReplySchema },
  "/refund": { request: refund, reply: documentReplySchema },
  "/check_status": { request: checkStatus, reply: documentReplySchema },
  "/check_copy": { request: checkCopy, reply: copyReply },
  "/abort": { request: abort, reply: reply({}) },
  "/open_shift": { request: openShift, reply: reply({ shiftID, fiscalID, shiftOpenAt }) },
  "/close_shift": { request: closeShift, reply: reply({ ...shiftMetrics, fiscalShiftID, fiscalShiftNum }) },
  "/check_shift": { request: empty, reply: shiftReply },
  "/x_report": { request: xReport, reply: reply(shiftMetrics) },
  "/deposit": { request: cash, reply: cashReply },
  "/withdraw": { request: cash, reply: cashReply },
  "/dates_report": { request: datesReport, reply: reply({}) },
  "/get_info": { request: empty, reply: reply({ fiscalData: Type.Optional(whole("Raw JSON value (Endpoints)")) }) },
} as const satisfies Readonly<Record<string, RouteSchemas>>;

export type FiscalDocumentReply = Type.Static<typeof documentReplySchema>;
