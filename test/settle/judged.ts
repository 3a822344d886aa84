import assert from "node:assert/strict";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import { settlingRulesOf } from "../../src/contract/settling.ts";
import type { ContractName } from "../../src/core/call.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { looseInteger } from "../../src/core/json-object.ts";
import type { CallResult } from "../../src/settle/call-result.ts";
import { scalarText } from "../../src/settle/exact-json.ts";
import type { JudgedOperation } from "../../src/settle/judge.ts";
import type { AnsweredCall } from "../../src/settle/proof.ts";

/** Operations and answers for what is judged without a clock and without sending. */

export function operationOf(service: ContractName, path: string, key: unknown = "K-1"): JudgedOperation {
  const contract = contracts[service];
  const route = routeOf(contract, path);
  const rules = settlingRulesOf(service, path);
  assert.ok(route?.key !== undefined && rules !== undefined);
  const followed = { contract, rules, keyField: route.key, key, asks: route.polling !== undefined };
  const ownName = rules.learns && String(key);
  return { ...followed, ownName, isSentOnce: false, asksFirst: true, intervalMs: 0 };
}

function answered(reply: JsonObject): AnsweredCall {
  const summary = {
    code: looseInteger(reply["code"]),
    message: scalarText(reply["message"]),
    httpStatus: 200,
    reason: undefined,
  };
  return { outcome: "answered", success: reply["status"] === "success", reply, summary };
}

export const good = (more: object = {}) => answered({ status: "success", ...more });
export const bad = (code: number | undefined, more: object = {}) => answered({ status: "error", code, ...more });

const summaryOf = (message: string, code: number | undefined) => ({ code, message, httpStatus: undefined, reason: undefined });

/** Turned away: for now where `passing`, else for good. */
export const unsentCall = (passing: boolean, code?: number): CallResult => ({
  outcome: "not-sent",
  passing,
  retryAfterMs: passing ? 700 : undefined,
  summary: summaryOf("turned away", code),
});
