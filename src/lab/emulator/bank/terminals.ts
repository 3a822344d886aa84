import type { RequestReader } from "../request-reader.ts";
import type { WorldSettings } from "../world-schema.ts";

/** The set-up of the emulated bank: terminals, their merchants, and currencies. Sections named are the bank contract's. */

export type BankWorld = WorldSettings["bank"];

type ConfiguredTerminal = BankWorld["terminals"][number];

/** A valid pair of terminal and merchant (Terminal object). */
type TerminalPair = ConfiguredTerminal & { readonly merchant: number };

interface PairIds {
  readonly terminal: bigint;
  readonly merchant: bigint;
}

const isPair = (configured: ConfiguredTerminal): configured is TerminalPair => configured.merchant !== undefined;

export const terminalPairs = ({ terminals }: BankWorld): readonly TerminalPair[] => terminals.filter(isPair);

/**
 * The pair that a request is for (Terminal and merchant resolution, rules 1 to 3). A terminal's first merchant is its default, and the first
 * terminal is that of requests that name none.
 * @param selected The terminal of the last operation that named one.
 */
export function pairFor(request: RequestReader, { terminals: [first, ...others] }: BankWorld, selected?: bigint): PairIds {
  if (first === undefined) return request.refuse("no terminal is configured", "name one in bank.terminals of the world");
  const terminal = request.optionalInteger("terminal") ?? selected ?? BigInt(first.terminal);
  const merchant = request.optionalInteger("merchant");
  const ofTerminal = [first, ...others].filter((each) => BigInt(each.terminal) === terminal);
  if (ofTerminal.length === 0) return request.refuse(`there is no terminal ${terminal}`, "choose one that /terminals lists");
  const merchants = ofTerminal.filter(isPair).map((each) => BigInt(each.merchant));
  const found = merchants.find((each) => each === (merchant ?? each));
  if (found !== undefined) return { terminal, merchant: found };
  const which = merchant === undefined ? "valid merchant" : `merchant ${merchant}`;
  return request.refuse(`terminal ${terminal} has no ${which}`, "choose a pair that /terminals lists");
}

/** The pair of an operation, by its ids. */
export function pairOf(world: BankWorld, { terminal, merchant }: PairIds): TerminalPair | undefined {
  return terminalPairs(world).find((each) => BigInt(each.terminal) === terminal && BigInt(each.merchant) === merchant);
}

/** The supported currency that is called so. Case counts: a deployment's names are its own. */
export function currencyOf({ currencies }: BankWorld, name: string): string | undefined {
  if (Object.hasOwn(currencies, name)) return name;
  const [currency] = Object.entries(currencies).find(([, others]) => others.includes(name)) ?? [];
  return currency;
}
