/**
 * What an emulated terminal has done, as a person would read it in its report: the truth beside which a till's word, and a bridge's journal,
 * are judged.
 */

/** An operation that the terminal carried out, or carries out. */
export interface LedgerEntry {
  /** Tells the operation from all others of its service, and stays. */
  readonly id: string;
  /** The route that began it: `/sale`. */
  readonly route: string;
  /** pay_id or documentExtID; undefined if the till sent none. */
  readonly key: string | undefined;
  /** Minor units. */
  readonly amount: bigint;
  /**
   * How it stands. Card and QR: `in progress`, `approved`, or the end that it came to. Documents: `in progress`, `closed`, or `unprinted`,
   * which is closed without its paper.
   */
  readonly end: string;
  /** The id of the entry that it gives back, if it names one. */
  readonly of?: string;
  /** Of a document: what of its amount is booked as cash. */
  readonly cash?: bigint;
  /** Of a receipt: what its lines name, with the quantities in thousandths; undefined for one that the till left out. */
  readonly articles?: readonly { readonly name: string | undefined; readonly quantity: bigint | undefined }[];
}
