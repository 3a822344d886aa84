import type { Route } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName } from "../../src/core/call.ts";
import { Presence } from "../../src/core/presence.ts";
import type { UnknownOperation } from "../../src/journal/record.ts";
import type { JournalReport, SettledOperation } from "../../src/journal/recorder.ts";
import type { Operations } from "../../src/operations/operations.ts";
import type { Sending } from "../../src/operations/sending.ts";

export const outcomes = ["answered", "unknown", "not-sent"] as const;

export const folder = "/var/lib/posline";
export const bytes = 64 * 1024;

/** A call for money. */
export function callOf(key: string, { service = "bank", body = `{"pay_id":"${key}","amount":100}` }: CallSettings = {}): Call {
  return {
    service,
    contract: service,
    route: "/sale",
    body: [Buffer.from(body)],
    requestId: `r-${key}`,
    key,
    caller: new Presence(),
  };
}

type CallSettings = { readonly service?: ContractName; readonly body?: string };

export function routeTo(path = "/sale", service: ContractName = "bank"): Route {
  const route = contracts[service].routes.find((each) => each.path === path);
  if (route === undefined) throw new Error(`${service} has no ${path}`);
  return route;
}

/** What a journal told of itself. */
export class Told implements JournalReport {
  readonly failures: string[] = [];
  readonly recoveries: string[] = [];
  readonly notices: string[] = [];
  readonly finds: { readonly recent: readonly UnknownOperation[]; readonly older: number }[] = [];
  failed(reason: string): void {
    this.failures.push(reason);
  }
  recovered(message: string): void {
    this.recoveries.push(message);
  }
  noticed(message: string): void {
    this.notices.push(message);
  }
  readonly settlings: string[] = [];
  onSettled({ service, route, key, result, by }: SettledOperation): void {
    this.settlings.push(`${service} ${route} ${key} ${result} ${by}`);
  }
  found(recent: readonly UnknownOperation[], older: number): void {
    this.finds.push({ recent, older });
  }
}

/** What was sent last of a route under a key. */
export function lastSent(operations: Operations, key: string, route = "/sale", service = "bank"): Sending | undefined {
  return operations.under(service, key).findLast(({ sent }) => sent.route === route);
}
