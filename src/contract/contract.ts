import type { ContractName } from "../core/call.ts";
import type { FaultKind, FaultOutcome } from "../core/fault.ts";
import type { Framing } from "../wire/decoded.ts";

/**
 * The shape of a contract. The three services are data of this shape and nothing else: the HTTP server, the line, the
 * emulator, validation and the tests all read these tables, and no room knows a route by heart.
 *
 * The tables hold no schema, so that a bridge that only relays needn't load a schema library; `schema.ts` has them, by the
 * same routes.
 */

/**
 * A route's effect in the world. `none`: it only reads, so it may be sent twice. `money`: it moves money or registers that money moved.
 * `print`: it prints without moving money. `state`: it changes the state of the terminal, of a shift or of an operation. If several hold,
 * the gravest stands: money, state, print. A route that isn't surely read-only is never `none`.
 */
export type Effect = "none" | "money" | "print" | "state";

/** How an operation is followed to its end after it was started (bank: rule 1; qr: flow rule 2; fiscal: recovery). */
export interface Polling {
  /** The route to ask. */
  readonly route: string;
  /** The fields that carry over to the question, each from the operation's request or, if that has none, its reply. */
  readonly keys: readonly string[];
  /** A field with the service's own number of an operation, if there is one: a question that has it may be about another operation. */
  readonly ownNumber?: string;
  /** Recommended milliseconds between two questions. */
  readonly intervalMs: { readonly min: number; readonly max: number };
}

/**
 * A fault's word in its body, for tills that read the body alone. `error`: the contract's error envelope. `in progress`: as the service
 * answers while it can't tell the end yet; never of a request that is wrong itself (4xx), which gets `none`. `none`: no word of the contract,
 * since each would be taken for an end.
 */
export type FaultWord = "error" | "in progress" | "none";

export interface Route {
  /** The route's path, with its leading slash. */
  readonly path: string;
  readonly methods: readonly ("GET" | "POST")[];
  /** Whether the route takes a body. `none` routes tolerate one, which is relayed as it came. */
  readonly body: "none" | "required";
  readonly effect: Effect;
  /** Milliseconds from the request's last byte to the reply's first, unless configured otherwise. */
  readonly replyTimeoutMs: number;
  /** True if the route goes before all that waits: /abort, /terminate. */
  readonly urgent: boolean;
  /** The field that names the operation, for logs and recovery. */
  readonly key: "pay_id" | "documentExtID" | undefined;
  readonly polling: Polling | undefined;
  /** The request's fields in minor units, which are whole numbers: each by the names that lead to it, `items.itemAmount`. */
  readonly amounts: readonly string[];
  /** Of a receipt, by the same kind of names: its sum, the parts of it that no drawer took, and the payment that it names. */
  readonly receipt: { readonly sum: string; readonly cashless: readonly string[]; readonly rrn: string } | undefined;
  /** By a fault's outcome, the word that lets nobody take for an end, or send again, what isn't proven to allow it. */
  readonly faultWords: Readonly<Record<FaultOutcome, FaultWord>>;
  /**
   * The highest HTTP status with which the error envelope is the service's own word. Above it, the envelope may as well be a framework's or
   * a proxy's, and the outcome is unknown.
   */
  readonly errorStatusMax: 299 | 499 | 599;
}

/** A code a service answers with. */
export interface Code {
  readonly code: number;
  /** The contract's own name, if it gives one. */
  readonly name: string | undefined;
  readonly meaning: string;
}

/** A read-only request without a body, whose answer has a shape that no other answer of the service has. */
export interface Probe {
  readonly route: string;
  /** True if this parsed reply can only be the answer to the probe. */
  isAnswer(reply: Readonly<Record<string, unknown>>): boolean;
}

/** Another read-only request, whose answer never has the probe's shape, not even an error: it tells present answers from older ones. */
export interface SecondProbe extends Probe {
  /** The request's body, as JSON; undefined if it has none. */
  readonly body: string | undefined;
  /** Other routes whose replies may look like this answer. */
  readonly alikeRoutes: readonly string[];
}

/** The place of an operation's final states in a reply of its polling route. */
export interface Finals {
  /** Path in the reply, by keys. */
  readonly field: readonly string[];
  /** Values that are final; empty if the presence of the field is. */
  readonly values: readonly (string | number)[];
  /** Codes that mean "still in progress", whatever the status. */
  readonly pendingCodes: readonly number[];
  /** Whether status "error" alone ends the operation (qr), or says nothing about it without the field (fiscal, bank). */
  readonly errorIsFinal: boolean;
  /** Codes by which the polling route says that it knows no such operation: the operation never arrived or was rolled back. */
  readonly absentCodes: readonly number[];
}

export interface Contract {
  readonly service: ContractName;
  /** The TCP port that the contract gives. */
  readonly port: number;
  readonly framing: Framing;
  /** The text before the route in a payload on a line, which selects the service there: `:8887` for qr. */
  readonly linePrefix: string;
  /** How route and body are written: bank and qr as text, fiscal as a signed form. */
  readonly envelope: "text" | "form";
  readonly replyContentType: string;
  readonly routes: readonly Route[];
  /**
   * The fields at the top of a request that say which operation it is, by whom, and over how much money. A field that is there twice is
   * refused: the till's parser may read the first of them and the terminal's the last.
   */
  readonly decisive: readonly string[];
  readonly codes: readonly Code[];
  /** The code in the body of each kind of fault that posline itself answers. */
  readonly faultCodes: Readonly<Record<FaultKind, number>>;
  /** The kinds that travel in HTTP 200, as the service itself would send them. */
  readonly faultsInOk: readonly FaultKind[];
  /** How the service says "in progress": its envelope's status, and its code if there is one. */
  readonly inProgress: { readonly status: "success" | "error"; readonly code: number | undefined };
  readonly probe: Probe;
  readonly secondProbe: SecondProbe;
  readonly finals: Finals;
}
