import type { Node } from "../config/check.ts";
import { checkObject } from "../config/check-object.ts";
import type { ContractName } from "../core/call.ts";
import type { OperationEnd } from "../core/followed.ts";
import type { JsonObject } from "../core/json-object.ts";
import { JournalError } from "../journal/errors.ts";
import { isKeyOf, isSameOperation, type SentRecord, storedKey } from "../journal/record.ts";

/**
 * The settling of an operation by the person who looked at the terminal: which operation is meant, and what is recorded. The running
 * posline and the command itself both use it.
 */

/** A person's word on an operation. */
export interface OperatorSettle {
  /** pay_id or documentExtID; if the operation has none, or is one of several under one key, the id of its request. */
  readonly key: string;
  readonly as: "done" | "not-done";
  readonly note: string;
  /** The service, if several have the key. */
  readonly service?: string | undefined;
  readonly route?: string | undefined;
}

/**
 * Reads a person's word from JSON.
 * @throws JournalError naming what is wrong with it.
 */
export function readOperatorSettle(text: string): OperatorSettle & { readonly folder: string | undefined } {
  const value = parsed(text);
  const word = (name: string) => {
    const found = value[name];
    return typeof found === "string" && found !== "" ? found : undefined;
  };
  const [key, as, note] = [word("key"), word("as"), word("note")];
  if (key === undefined)
    throw new JournalError("Cannot settle: key is missing: name the operation by its pay_id or documentExtID");
  if (as !== "done" && as !== "not-done") throw new JournalError(`Cannot settle ${key}: as must be "done" or "not-done"`);
  if (note === undefined) throw new JournalError(`Cannot settle ${key}: note is missing: say how you know`);
  return { key, as, note, service: word("service"), route: word("route"), folder: word("folder") };
}

/** Each field's own rules follow, with the operation's name; a field that isn't known is nothing to refuse a settling for. */
const anyFields: Node = { type: "object", properties: { key: {}, as: {}, note: {} }, additionalProperties: {} };

function parsed(text: string): JsonObject {
  const problems: string[] = [];
  const value = checkObject(anyFields, text, problems);
  if (problems.length === 0) return value;
  const example = '{"key":"A-77","as":"done","note":"..."}';
  throw new JournalError(`Cannot settle: the body must be a JSON object such as ${example} (${problems.join("; ")})`);
}

/**
 * The sendings of the operation that is meant, in order: of unknown outcome, or else settled by a person before, who corrects that.
 * @throws JournalError if there is none, or if there are several to choose from.
 */
export function chosenBy<T extends { readonly sent: SentRecord }>(
  unknown: readonly T[],
  wanted: OperatorSettle,
  settled: readonly T[] = [],
): readonly T[] {
  const { key, service, route } = wanted;
  const stored = storedKey(key);
  const open = [unknown, settled].find((each) => namedBy(each, key).length > 0) ?? [];
  const named = namedBy(open, key);
  const chosen = named.filter(({ sent }) => sent.service === (service ?? sent.service) && sent.route === (route ?? sent.route));
  const names = new Set(chosen.map(({ sent }) => `${sent.service} ${sent.route}`));
  if (names.size === 1) {
    const [first] = chosen;
    // A key doesn't say which of two refunds of one payment was carried out, or of two sales by mistake under one key.
    if (first === undefined || chosen.every(({ sent }) => isOneOperation(sent, first.sent))) return chosen;
    throw new JournalError(
      `Cannot settle "${stored}": it names several operations (${waysToName(chosen, open)}): name one by that, in place of the key`,
    );
  }
  if (names.size > 1) {
    const which = [...names].join(", ");
    throw new JournalError(
      `Cannot settle "${stored}": it names several operations (${which}): choose with --service and --route`,
    );
  }
  if (named.length === 0) {
    throw new JournalError(`Cannot settle "${stored}": no operation of this key is unknown: see posline journal --unknown`);
  }
  const there = [...new Set(named.map(({ sent }) => `${sent.service} ${sent.route}`))].join(", ");
  throw new JournalError(
    `Cannot settle "${stored}": its unknown operation is another one (${there}): check --service and --route`,
  );
}

/** Sendings with that key, or else with an id that names one of several operations under one key: of that operation all sendings. */
function namedBy<T extends { readonly sent: SentRecord }>(open: readonly T[], key: string): readonly T[] {
  const byKey = open.filter(({ sent }) => isKeyOf(sent.key ?? sent.requestId, key));
  if (byKey.length > 0) return byKey;
  const byOther = open.filter(({ sent }) => sent.requestId === key || sent.digest === key);
  return open.filter(({ sent }) => byOther.some((each) => isOneOperation(each.sent, sent)));
}

/** Ways to name an operation. The ids of requests come from tills, and may be all the same, or another operation's key. */
function waysToName(
  operations: readonly { readonly sent: SentRecord }[],
  open: readonly { readonly sent: SentRecord }[],
): string {
  const areUnique = operations.every(({ sent }) =>
    namedBy(open, sent.requestId).every((each) => isOneOperation(each.sent, sent)),
  );
  const named = operations.map(({ sent }) => {
    const name = areUnique ? sent.requestId : sent.digest;
    return sent.amount === undefined ? name : `${name} of ${sent.amount}`;
  });
  return `${areUnique ? "requests" : "digests"} ${[...new Set(named)].join(", ")}`;
}

/** True if both are one operation. A sending without a key is known by its request alone. */
function isOneOperation(one: SentRecord, other: SentRecord): boolean {
  if (one.key !== undefined || other.key !== undefined) return isSameOperation(one, other);
  return one.service === other.service && one.route === other.route && one.requestId === other.requestId;
}

/** The result to record: the contract's good end, or that nothing was carried out. */
export function endBy(as: OperatorSettle["as"], contract: ContractName | undefined): OperationEnd {
  if (as === "not-done") return "failed";
  return contract === "fiscal" ? "closed" : "approved";
}
