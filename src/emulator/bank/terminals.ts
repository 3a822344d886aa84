import type { JsonObject } from "../../core/json-object.ts";
import type { RequestReader } from "../request-reader.ts";

/** The set-up of the emulated bank: terminals, their merchants, and currencies. Sections named are the bank contract's. */

/** A valid pair of terminal and merchant (Terminal object). */
interface TerminalPair extends JsonObject {
  readonly terminal: bigint;
  readonly merchant: bigint;
  readonly name: string;
  readonly merchantName: string;
}

const pair = (terminal: bigint, merchant: bigint, name: string, merchantName: string, mcc: string): TerminalPair => ({
  terminal,
  terminalId: `EMU0000${terminal}`,
  name,
  merchant,
  merchantId: `EMU00000000000${merchant}`,
  merchantName,
  mcc,
  fiscalId: `EMU-FISCAL-${merchant}`,
});

/** The first pair of a terminal holds its default merchant; the first of all is the terminal for requests that name none. */
export const pairs: readonly TerminalPair[] = [
  pair(1n, 1n, "Emulated till", "Emulated shop", "5999"),
  pair(1n, 2n, "Emulated till", "Emulated café", "5812"),
  pair(2n, 3n, "Emulated kiosk", "Emulated cinema", "7832"),
];

export const terminals: readonly bigint[] = [...new Set(pairs.map(({ terminal }) => terminal))];

/**
 * The pair that a request is for (Terminal and merchant resolution, rules 1 to 3).
 * @param selected The terminal of the last operation that named one.
 */
export function pairFor(request: RequestReader, selected: bigint | undefined): TerminalPair {
  const terminal = request.optionalInt64("terminal") ?? selected ?? terminals[0];
  const merchant = request.optionalInt64("merchant");
  const ofTerminal = pairs.filter((each) => each.terminal === terminal);
  if (ofTerminal.length === 0) return request.refuse(`there is no terminal ${terminal}`, "choose one that /terminals lists");
  const found = ofTerminal.find((each) => each.merchant === (merchant ?? each.merchant));
  return found ?? request.refuse(`terminal ${terminal} has no merchant ${merchant}`, "choose a pair that /terminals lists");
}

/** The pair of an operation, by its ids. */
export function pairOf(ids: { readonly terminal: bigint; readonly merchant: bigint }): TerminalPair | undefined {
  return pairs.find((each) => each.terminal === ids.terminal && each.merchant === ids.merchant);
}

/** ISO 4217: the codes that tills write, and the numbers that acquirers do. XTS is there for tests. */
const currencyNumbers: ReadonlyMap<string, string> = new Map([
  ["EUR", "978"],
  ["USD", "840"],
  ["GBP", "826"],
  ["TRY", "949"],
  ["AZN", "944"],
  ["UZS", "860"],
  ["KZT", "398"],
  ["KGS", "417"],
  ["RUB", "643"],
  ["AMD", "051"],
  ["GEL", "981"],
  ["XTS", "963"],
]);

export const currencies: readonly string[] = [...currencyNumbers.keys()];

const byNumber = new Map([...currencyNumbers].map(([code, number]) => [number, code]));

/** The supported currency that a name or number means. Exact upper case: a deployment's names are its own. */
export function currencyOf(name: string): string | undefined {
  return currencyNumbers.has(name) ? name : byNumber.get(name);
}
