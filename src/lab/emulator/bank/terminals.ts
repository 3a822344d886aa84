import type { JsonObject } from "../../../core/json-object.ts";
import type { EmulatedEnd } from "../operations.ts";
import type { RequestReader } from "../request-reader.ts";

/** The set-up of the emulated bank: terminals, their merchants, and currencies. Sections named are the bank contract's. */

export interface BankWorld {
  /** The first pair of a terminal holds its default merchant; the first of all is the terminal for requests that name none. */
  readonly terminals: readonly ConfiguredTerminal[];
  /** What else each currency may be called, by its name. */
  readonly currencies: ReadonlyMap<string, readonly string[]>;
  /** Names without slash; the others are refused with -80. */
  readonly operations: readonly string[];
  /** The code of each end. */
  readonly codes: Readonly<Record<Exclude<EmulatedEnd, "approved">, number>>;
}

/** A terminal with one of its merchants (Terminal object); without `merchant`, a terminal that has no valid one. */
export interface ConfiguredTerminal extends JsonObject {
  readonly terminal: bigint;
  readonly merchant?: bigint;
  readonly merchantName?: string;
}

/** A valid pair of terminal and merchant. */
export interface TerminalPair extends ConfiguredTerminal {
  readonly merchant: bigint;
}

const isPair = (configured: ConfiguredTerminal): configured is TerminalPair => configured.merchant !== undefined;

/** The numbers of the terminals, each once. */
export const terminalsOf = ({ terminals }: BankWorld): readonly bigint[] => [
  ...new Set(terminals.map(({ terminal }) => terminal)),
];

export const terminalPairs = ({ terminals }: BankWorld): readonly TerminalPair[] => terminals.filter(isPair);

/**
 * The pair that a request is for (Terminal and merchant resolution, rules 1 to 3).
 * @param selected The terminal of the last operation that named one.
 */
export function pairFor(request: RequestReader, world: BankWorld, selected: bigint | undefined): TerminalPair {
  const terminal = request.optionalInteger("terminal") ?? selected ?? world.terminals[0]?.terminal;
  const merchant = request.optionalInteger("merchant");
  if (terminal === undefined) return request.refuse("no terminal is configured", "name one in bank.terminals of the world");
  if (!terminalsOf(world).includes(terminal))
    return request.refuse(`there is no terminal ${terminal}`, "choose one that /terminals lists");
  const ofTerminal = terminalPairs(world).filter((each) => each.terminal === terminal);
  const found = ofTerminal.find((each) => each.merchant === (merchant ?? each.merchant));
  const which = merchant === undefined ? "valid merchant" : `merchant ${merchant}`;
  return found ?? request.refuse(`terminal ${terminal} has no ${which}`, "choose a pair that /terminals lists");
}

/** The pair of an operation, by its ids. */
export function pairOf(
  world: BankWorld,
  ids: { readonly terminal: bigint; readonly merchant: bigint },
): TerminalPair | undefined {
  return terminalPairs(world).find((each) => each.terminal === ids.terminal && each.merchant === ids.merchant);
}

/** The supported currency that is called so. Case counts: a deployment's names are its own. */
export function currencyOf({ currencies }: BankWorld, name: string): string | undefined {
  if (currencies.has(name)) return name;
  const [currency] = [...currencies].find(([, others]) => others.includes(name)) ?? [];
  return currency;
}
