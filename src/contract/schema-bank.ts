import { hear, inData, type RouteSchemas, say, whenSuccess } from "./schema-parts.ts";
import * as Type from "./typebox.ts";

/** The bank contract's bodies. "(Financial operation request)" and such name the section that a field comes from. */

const payId = () => say.text("Integrator operation id: the idempotency and recovery key (Financial operation request)");
const language = () => Type.Optional(say.text("Response localization hint (Financial operation request)"));

/** The fields that operations and reports share (Financial operation request, Report request). */
const common = {
  pay_id: Type.Optional(payId()),
  terminal: Type.Optional(
    say.int64("Terminal numeric id; else the selected, else the first one (Terminal and merchant resolution)"),
  ),
  merchant: Type.Optional(say.int64("Merchant numeric id; else the terminal's default (Terminal and merchant resolution)")),
  package_name: Type.Optional(say.text("Callback package identifier (Financial operation request)")),
  headless: Type.Optional(say.flag("Headless mode flag (Financial operation request)")),
  no_printing: Type.Optional(say.flag("Disables printing (Financial operation request)")),
  txn_config: Type.Optional(
    Type.Object({}, { description: "Additional transaction options, fields not shown (Financial operation request)" }),
  ),
  language: language(),
};

const positive = { type: "integer", exclusiveMinimum: 0 };

const financial = Type.Object(
  {
    ...common,
    amount: say.int64("Amount in minor units (Financial operation request)"),
    tips: Type.Optional(say.int64("Tip amount in minor units (Financial operation request)")),
    cashback: Type.Optional(say.int64("Cashback amount in minor units (Financial operation request)")),
    rrn: Type.Optional(say.text("Reference number; operation-dependent, for linked operations (Financial operation request)")),
    currency_name: say.text("Currency identifier that the deployment supports (Financial operation request)"),
    doc_number: Type.Optional(say.text("External document number (Financial operation request)")),
  },
  {
    description: "A card operation; tips and cashback are not both greater than zero (Financial operation request, validation)",
    not: { required: ["tips", "cashback"], properties: { tips: positive, cashback: positive } },
  },
);

const report = Type.Object(common, { description: "A report; every field is optional (Report request)" });

const statusQuery = Type.Object(
  {
    pay_id: payId(),
    language: language(),
    no_print_data: Type.Optional(say.flag("Omits print_data from the response (Status query request)")),
  },
  { description: "Names the operation asked about or to be stopped (Status query request, Abort request)" },
);

const envelope = {
  status: hear.status("'success' or 'error' (Response envelope)"),
  code: Type.Optional(hear.int32("Present on errors, typically negative; may be omitted or null (Response envelope)")),
  message: Type.Optional(hear.text("For people, not for logic (Response envelope)")),
};

const dataWords = "Route-specific; may be omitted or null (Response envelope)";
const anyData = Type.Optional(Type.Union([Type.Object({}), Type.Null()], { description: dataWords }));
const operationsWords = "Route names without slash; depends on the terminal's configuration (Endpoints)";

const supportedOperationsReply = Type.Object(
  {
    ...envelope,
    data: Type.Optional(
      Type.Union(
        [Type.Object({ operations: Type.Optional(Type.Array(Type.String(), { description: operationsWords })) }), Type.Null()],
        { description: dataWords },
      ),
    ),
    operations: Type.Optional(
      Type.Array(Type.String(), { description: `${operationsWords}; at the top level, as some write it` }),
    ),
  },
  whenSuccess({ anyOf: [inData("operations"), { required: ["operations"] }] }),
);

const terminal = Type.Object(
  {
    terminal: Type.Optional(hear.int64("Internal numeric terminal id (Terminal object)")),
    terminalId: Type.Optional(hear.text("External/acquirer terminal id (Terminal object)")),
    name: Type.Optional(hear.text("Terminal name (Terminal object)")),
    merchant: Type.Optional(hear.int64("Internal numeric merchant id (Terminal object)")),
    merchantId: Type.Optional(hear.text("External/acquirer merchant id (Terminal object)")),
    merchantName: Type.Optional(hear.text("Merchant display name (Terminal object)")),
    mcc: Type.Optional(hear.text("Merchant category code (Terminal object)")),
    fiscalId: Type.Optional(hear.text("Fiscal identifier (Terminal object)")),
  },
  { description: "One valid pair of terminal and merchant (Terminal object)" },
);

const terminalsReply = Type.Object(
  {
    ...envelope,
    data: Type.Optional(
      Type.Union(
        [
          Type.Object({
            terminals: Type.Array(terminal, { description: "The authoritative source of routing pairs (Terminal object)" }),
          }),
          Type.Null(),
        ],
        { description: dataWords },
      ),
    ),
  },
  whenSuccess(inData("terminals")),
);

const startReply = Type.Object({ ...envelope, data: anyData }, { description: "Usually success without data (Endpoints)" });

const transactionResult = Type.Object(
  {
    txn_id: Type.Optional(hear.text("Transaction id (Transaction result)")),
    status: Type.Optional(hear.text("APPROVED, ERROR or REVERSED; never IN_PROGRESS (Transaction result)")),
    card_num: Type.Optional(hear.text("Card number, masked (Transaction result)")),
    rrn: Type.Optional(hear.text("Reference number (Transaction result)")),
    auth: Type.Optional(hear.text("Authorization code, on approved (Transaction result)")),
    error: Type.Optional(hear.text("On error (Transaction result)")),
    data: Type.Optional(
      Type.Union([Type.Object({}), Type.Null()], { description: "Inner structure not shown (Transaction result)" }),
    ),
    print_data: Type.Optional(
      Type.Union([Type.Object({}), Type.Null()], { description: "Inner structure not shown (Transaction result)" }),
    ),
  },
  { description: "How an operation ended (Transaction result)" },
);

const resultReply = Type.Object(
  { ...envelope, data: Type.Optional(Type.Union([transactionResult, Type.Null()], { description: dataWords })) },
  { description: "Success without data while in progress (States and transitions)" },
);

export const bankSchemas = {
  "/supported_operations": { request: undefined, reply: supportedOperationsReply },
  "/terminals": { request: undefined, reply: terminalsReply },
  "/sale": { request: financial, reply: startReply },
  "/preauth": { request: financial, reply: startReply },
  "/confirm": { request: financial, reply: startReply },
  "/cancel": { request: financial, reply: startReply },
  "/refund": { request: financial, reply: startReply },
  "/xreport": { request: report, reply: startReply },
  "/close-shift": { request: report, reply: startReply },
  "/terminate": { request: undefined, reply: startReply },
  "/abort": { request: statusQuery, reply: resultReply },
  "/check": { request: statusQuery, reply: resultReply },
} as const satisfies Readonly<Record<string, RouteSchemas>>;

export type BankTransactionResult = Type.Static<typeof transactionResult>;
