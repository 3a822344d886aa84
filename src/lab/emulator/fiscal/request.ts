import { int64Max, type RefusalCodes, type RequestReader } from "../request-reader.ts";

/** The codes that the emulated service answers, under the contract's own names (Errors). Signs (1) are checked before. */
export const fiscalCodes = {
  invalidJson: 2,
  missingParams: 3,
  amountMismatch: 4,
  internalError: 5,
  shiftNotOpen: 6,
  paymentTypeNotSupported: 7,
  documentNotPaid: 8,
  documentNotFound: 9,
  documentNotFiscalized: 10,
  changeOnlyForCash: 11,
  docTimeBeforeShift: 12,
  creditSinglePayment: 13,
  invalidDateFormat: 14,
  documentNotPrinted: 15,
  bankTerminalNotConnected: 23,
  documentStillProcessing: 44,
} as const;

export const refusalCodes: RefusalCodes = {
  // The contract has no code of its own for a value of another type, and 2 is what it gives a payload that can't be parsed.
  wrong: fiscalCodes.invalidJson,
  missing: fiscalCodes.missingParams,
  amount: fiscalCodes.amountMismatch,
};

/** The keys by which a till names a document. */
export interface DocumentKeys {
  readonly extId: string | undefined;
  readonly id: bigint | undefined;
}

export function documentKeysOf(fields: RequestReader): DocumentKeys {
  return { extId: fields.optionalId("documentExtID"), id: documentIdOf(fields) };
}

/** documentID, an int64 that may come as a string. 0 is what tills send that have none yet. */
function documentIdOf(fields: RequestReader): bigint | undefined {
  const text = fields.optionalId("documentID");
  if (text === undefined || text === "0") return undefined;
  const id = /^\d{1,19}$/.test(text) ? BigInt(text) : 0n;
  if (id > 0n && id <= int64Max) return id;
  return fields.refuse("documentID is not an integer greater than 0 of 64 bits", "send the service's own, or none");
}
