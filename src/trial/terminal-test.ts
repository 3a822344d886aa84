import { type Capabilities, readCapabilities } from "../admin/capabilities.ts";
import type { Client } from "../client/client.ts";
import { CallError } from "../client/errors.ts";
import { methodName } from "../client/remote-service.ts";
import { contracts } from "../contract/contracts.ts";
import type { ContractName, ServiceName } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { loggedSentence } from "../core/log-text.ts";

/** The test of a terminal: the contract's own harmless question, asked as a till asks it, and what the answer says. */

/** The good answer to it. */
export interface TerminalReply {
  readonly service: ServiceName;
  readonly outcome: "answered";
  /** Milliseconds from the question to its answer. */
  readonly ms: number;
  /** Operations or payment systems, if the answer names any. */
  readonly offer: Capabilities | undefined;
}

/** What came of it, also if that isn't a good answer. */
export type TestedTerminal =
  | TerminalReply
  | {
      readonly service: ServiceName;
      readonly outcome: Outcome;
      /** Why there is no good answer, and what to do. */
      readonly error: string;
    };

/**
 * Asks a service of a client, which was made with it.
 * @throws CallError
 */
export async function testTerminal(client: Client, { name, contract }: TestedService): Promise<TerminalReply> {
  // Made of the same table whose routes these are.
  const methods = Object.entries(client).find(([each]) => each === name)?.[1] as
    | Readonly<Record<string, (() => Promise<JsonObject>) | undefined>>
    | undefined;
  const ask = methods?.[methodName(contracts[contract].probe.route)];
  if (ask === undefined) throw new Error(`the client was made without ${name}`);
  const beganMs = performance.now();
  const reply = await ask();
  const ms = Math.round((performance.now() - beganMs) * 100) / 100;
  return { service: name, outcome: "answered", ms, offer: readCapabilities(reply) };
}

interface TestedService {
  readonly name: ServiceName;
  readonly contract: ContractName;
}

/** The same, of which a failed call is an outcome. */
export async function testedTerminal(client: Client, service: TestedService): Promise<TestedTerminal> {
  try {
    return await testTerminal(client, service);
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    const { outcome, message, advice } = error;
    return { service: service.name, outcome, error: loggedSentence(`${message}: ${advice}`) };
  }
}

/** The names of a service's operations, or of its payment systems with theirs. */
export function offerText(offer: Capabilities | undefined): string {
  if (offer === undefined) return "";
  if ("operations" in offer) return offer.operations.join(", ");
  return offer.systems.map(({ name, operations }) => `${name} (${operations.join(", ")})`).join(", ");
}
