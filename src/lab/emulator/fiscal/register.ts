import type { JsonObject } from "../../../core/json-object.ts";
import { writeExact } from "../exact-json.ts";
import { rememberedBytesMax, rememberedMax } from "../service-context.ts";
import { type DocumentDraft, type FiscalDocument, fiscalIdOf } from "./document.ts";
import type { DocumentKeys } from "./request.ts";
import { addToTotals, cashOf, noTotals, type ShiftTotals } from "./shift.ts";

/** What is remembered of documents. */
export interface SavedRegister extends JsonObject {
  readonly lastId: bigint;
  readonly lastNum: bigint;
  readonly forgottenCash: bigint;
  readonly forgotten: { readonly shift: bigint; readonly totals: ShiftTotals };
  readonly documents: readonly FiscalDocument[];
}

/**
 * The documents that are remembered, the oldest first. Every sum is computed from them on demand, so that none can drift away; only the
 * amounts of forgotten ones are carried on, in the drawer and in the shift they counted in.
 */
export class DocumentRegister {
  readonly #documents = new Map<bigint, FiscalDocument>();
  readonly #byExtId = new Map<string, FiscalDocument>();
  readonly #bytes = new Map<bigint, number>();
  #bytesTotal = 0;
  /** The last documentID that was assigned. */
  #lastId = 0n;
  /** The last fiscal number. */
  #lastNum = 0n;
  /** Cash in the drawer before the first document that is remembered. */
  #cashBefore: bigint;
  /** Totals of forgotten documents in the latest shift that has any. */
  #forgotten: SavedRegister["forgotten"] = { shift: 0n, totals: noTotals };

  constructor(drawer: bigint) {
    this.#cashBefore = drawer;
  }

  /**
   * The document that is meant: documentExtID takes precedence, and a document with another documentExtID isn't found by its documentID.
   */
  find({ extId, id }: DocumentKeys): FiscalDocument | undefined {
    const named = extId === undefined ? undefined : this.#byExtId.get(extId);
    if (named !== undefined || id === undefined) return named;
    const numbered = this.#documents.get(id);
    return extId === undefined || numbered?.extId === undefined ? numbered : undefined;
  }

  has(id: bigint): boolean {
    return this.#documents.has(id);
  }

  all(): Iterable<FiscalDocument> {
    return this.#documents.values();
  }

  /** Documents that aren't closed yet. */
  processing(): readonly FiscalDocument[] {
    return [...this.#documents.values()].filter(({ closed }) => closed === undefined);
  }

  /** The document that a refund refers to: by documentID or fiscalID, or by fiscalNum. */
  referred(parentDocId: string | undefined, parentDocNum: string | undefined): FiscalDocument | undefined {
    for (const document of this.#documents.values()) {
      const { id, closed } = document;
      const ids = closed === undefined ? [String(id)] : [String(id), fiscalIdOf(closed.num)];
      const nums = closed === undefined ? [] : [String(closed.num)];
      const fitsId = parentDocId === undefined || ids.includes(parentDocId);
      if (fitsId && (parentDocNum === undefined || nums.includes(parentDocNum))) return document;
    }
    return undefined;
  }

  /** The sum given back of a sale, or about to be. */
  refundedOf({ closed }: FiscalDocument): bigint {
    let refunded = 0n;
    if (closed === undefined) return refunded;
    for (const { parent, sum } of this.#documents.values()) if (parent === closed.num) refunded += sum;
    return refunded;
  }

  /** The cash in the drawer. */
  get drawer(): bigint {
    let cash = this.#cashBefore;
    for (const document of this.#documents.values()) if (document.closed !== undefined) cash += cashOf(document);
    return cash;
  }

  /** The sum of all documents of a shift, with those that may still close in it: no other sum of the shift is larger. */
  turnoverOf(shift: bigint): bigint {
    let turnover = 0n;
    if (this.#forgotten.shift === shift) {
      for (const { sum } of Object.values(this.#forgotten.totals)) turnover += sum;
    }
    for (const { closed, sum } of this.#documents.values()) {
      if (closed === undefined || closed.shift === shift) turnover += sum;
    }
    return turnover;
  }

  totalsOf(shift: bigint): ShiftTotals {
    const documents = [...this.#documents.values()].filter(({ closed }) => closed?.shift === shift);
    return addToTotals(this.#forgotten.shift === shift ? this.#forgotten.totals : noTotals, documents);
  }

  /**
   * Begins a document. An id that the till sent and nobody has becomes its documentID: otherwise a till without documentExtID could never
   * find it again (Endpoints, rule 2: documentID is a retry key too).
   */
  begin(draft: DocumentDraft, id: bigint | undefined, checks: bigint): FiscalDocument {
    const document: FiscalDocument = { ...draft, id: id ?? this.#nextId(), checks, closed: undefined };
    this.#remember(document);
    for (const oldest of this.#documents.values()) {
      if (oldest === document) break;
      if (this.#documents.size <= rememberedMax && this.#bytesTotal <= rememberedBytesMax) break;
      this.#forget(oldest);
    }
    return document;
  }

  close(document: FiscalDocument, shift: bigint, printTime: string | undefined): void {
    this.#lastNum += 1n;
    document.closed = { num: this.#lastNum, shift, printTime };
  }

  remove(document: FiscalDocument): void {
    this.#documents.delete(document.id);
    if (document.extId !== undefined) this.#byExtId.delete(document.extId);
    this.#bytesTotal -= this.#bytes.get(document.id) ?? 0;
    this.#bytes.delete(document.id);
  }

  saved(): SavedRegister {
    return {
      lastId: this.#lastId,
      lastNum: this.#lastNum,
      forgottenCash: this.#cashBefore,
      forgotten: this.#forgotten,
      documents: [...this.#documents.values()],
    };
  }

  static restored({ lastId, lastNum, forgottenCash, forgotten, documents }: SavedRegister): DocumentRegister {
    const register = new DocumentRegister(forgottenCash);
    register.#lastId = lastId;
    register.#lastNum = lastNum;
    register.#forgotten = forgotten;
    for (const document of documents) register.#remember(document);
    return register;
  }

  #nextId(): bigint {
    do this.#lastId += 1n;
    while (this.#documents.has(this.#lastId));
    return this.#lastId;
  }

  #remember(document: FiscalDocument): void {
    this.#documents.set(document.id, document);
    if (document.extId !== undefined) this.#byExtId.set(document.extId, document);
    // The size is that at the document's beginning, so that a restored register forgets the same as the saved one.
    const bytes = Buffer.byteLength(writeExact({ ...document, checks: 0n, closed: undefined }));
    this.#bytes.set(document.id, bytes);
    this.#bytesTotal += bytes;
  }

  /** A document that is still processing is dropped as if it had never been begun. */
  #forget(document: FiscalDocument): void {
    this.remove(document);
    const { closed } = document;
    if (closed === undefined) return;
    this.#cashBefore += cashOf(document);
    // A shift before the latest one is over, and nobody asks for its totals any more.
    if (closed.shift < this.#forgotten.shift) return;
    const totals = closed.shift === this.#forgotten.shift ? this.#forgotten.totals : noTotals;
    this.#forgotten = { shift: closed.shift, totals: addToTotals(totals, [document]) };
  }
}
