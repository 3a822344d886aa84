import { isUtf8 } from "node:buffer";
import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { type SettlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { Fault, type FaultReason, nothingSent } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { bodyDigest } from "../envelope/body-digest.ts";
import { bodyBytes } from "../envelope/body-text.ts";
import { amountIn, amountOf } from "../journal/body-fields.ts";
import { storedKey } from "../journal/record.ts";
import { isInexact, parseExactObject } from "../settle/exact-json.ts";
import { type JudgedOperation, judgedOperation } from "../settle/judge.ts";
import type { AskedService } from "./hearing.ts";
import type { Sending } from "./sending.ts";

/** A call that is to be followed, with what says which operation it is. */
export interface AskedCall {
  readonly call: Call;
  readonly contract: Contract;
  readonly route: Route;
  readonly rules: SettlingRules;
  /** The key as the journal stores it. */
  readonly key: string;
  readonly digest: string;
  /** The amount, if it names the operation beside its key. */
  readonly amount: number | undefined;
  /** The fields of the body that name the operation in a question, to the digit. */
  readonly names: JsonObject;
  readonly operation: JudgedOperation;
}

/**
 * Reads a call; undefined if there is nothing to follow, so that it is answered as if nobody waited: of a route without an end, or without a
 * key that its contract doesn't require and whose own answer says how it ended.
 * @throws Fault if the call can't be followed: then it must not be sent as one that is.
 */
export function askedCall(call: Call, { contract, merchantId }: AskedService): AskedCall | undefined {
  const route = routeOf(contract, call.route);
  const rules = settlingRulesOf(contract.service, call.route);
  if (call.contract !== contract.service) throw configurationChanged(call.route);
  if (route === undefined || rules === undefined) return undefined;
  const refused = (kind: "missing" | "malformed" | "unavailable", state: string, reason?: FaultReason) =>
    new Fault(kind, `Cannot follow ${route.path}: ${state}. ${nothingSent}`, reason === undefined ? {} : { reason });
  const { key } = call;
  // Its own answer is all that there is to learn.
  if (key === undefined && rules.success !== "followed") return undefined;
  if (key === undefined)
    throw refused("missing", `the body has no ${route.key}, and without one nothing can be asked: add ${route.key}`);
  if (contract.envelope === "form" && merchantId === undefined)
    throw refused(
      "unavailable",
      "posline can't sign its questions: set merchantId of the service in its configuration",
      "not-configured",
    );
  const bytes = bodyBytes(contract, call.body);
  // An operation asked about by other characters or another key than it was sent by would not be found, and be reported as failed.
  if (!isUtf8(bytes)) throw refused("malformed", "its JSON is not UTF-8: encode it as UTF-8, or send it without Prefer: wait");
  const text = bytes.toString("utf8");
  const json = parseExactObject(text);
  if (json === undefined)
    throw refused("malformed", "its body is not a JSON object, or has a field twice: send one object, each field once");
  const fields = [route.key, rules.learns, ...(route.polling?.keys ?? [])].filter((name) => name !== undefined);
  const inexact = fields.find((name) => isInexact(json[name]));
  if (inexact !== undefined)
    throw refused("malformed", `its ${inexact}, by which it is asked about, is a number beyond 2^53: send it as a string`);
  const amount = rules.isByAmount ? amountOf(amountIn(text)) : undefined;
  if (rules.isByAmount && amount === undefined)
    throw refused(
      "missing",
      "the body has no amount that is a number, and several of one payment are told apart by it: add amount",
    );
  const names = Object.fromEntries(Object.entries(json).filter(([name]) => fields.includes(name)));
  const operation = judgedOperation(contract, route.path, "bridge", (name) => names[name]);
  if (operation === undefined) return undefined;
  return { call, contract, route, rules, key: storedKey(key), digest: bodyDigest(call.body), amount, names, operation };
}

/** True if the sending has the same route, and the same amount if that names the operation. */
export function isOfRoute({ route, amount }: AskedCall, { sent }: Sending): boolean {
  const other = amountOf(sent.amount);
  return sent.route === route.path && (amount === undefined || other === undefined || other === amount);
}

/** True if an operation may come under a key that another one has: it refers to a sale, or gives a payment back. */
export const isFollowUp = ({ rules: { baseline, ownKey } }: Pick<AskedCall, "rules">) => baseline !== undefined || !ownKey;

/** The fault of a call whose service got another line or contract by a reload while it waited. */
export function configurationChanged(path: string): Fault {
  const message = `Cannot send ${path}: its service's configuration has changed. ${nothingSent}`;
  return new Fault("unavailable", message, { reason: "stopping" });
}

/**
 * The fault of a call whose key belongs to another operation. Its answer has no word: "failed" would let a till that reads the word alone
 * sell once more, while the first operation may go on.
 */
export function keyReused({ route, rules, key, amount }: AskedCall, other: Sending): Fault {
  const { sent } = other;
  const isOfRoute = sent.route === route.path;
  const same = `the ${route.key} ${JSON.stringify(key)}${amount === undefined || !isOfRoute ? "" : " and this amount"}`;
  const which = isOfRoute ? "another body" : `another operation (${sent.route})`;
  const by = `by service ${sent.service} at ${new Date(sent.timeMs).toISOString()}`;
  // A call with another key would be about another payment.
  const advice = rules.ownKey
    ? `ask how that one ended, and use a new ${route.key} for another operation`
    : `its ${route.key} is the payment's: make sure how that one ended, and send another operation without Prefer: wait`;
  return new Fault("reused", `Cannot send ${route.path}: ${which} with ${same} was sent ${by}: ${advice}. Nothing was sent`);
}
