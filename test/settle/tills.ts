import fc from "fast-check";
import { createClientOver } from "../../src/client/client.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { faultOnLine } from "../../src/envelope/fault.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../../src/settle/transport.ts";
import type { Settled, SettleEvent } from "../../src/settle/types.ts";
import { merchantId, type TestClock } from "./scripted.ts";

/** A till whose requests and answers get lost, and whose process dies at any moment and is started again. */

/**
 * What befalls one request. `late`: nothing comes back, and it arrives after the next request has been answered. `delayed`: the
 * same, and it arrives just before the time-out of the contract is over.
 */
export const mishaps = ["none", "not-sent", "lost-before", "lost-after", "late", "dies-before", "dies-after"] as const;

type Mishap = (typeof mishaps)[number] | "delayed";

const scheduleOf = (each: readonly Mishap[]) =>
  fc.array(
    fc.oneof({ weight: 2, arbitrary: fc.constant<Mishap>("none") }, { weight: 3, arbitrary: fc.constantFrom(...each) }),
    { maxLength: 14 },
  );

/** Mostly nothing befalls, so that operations come to an end. */
export const schedule = scheduleOf(mishaps);

/** For bank and qr, whose contracts say how long a start may take (Limits); fiscal's doesn't. */
export const scheduleWithDelays = scheduleOf([...mishaps, "delayed", "delayed"]);

/** Milliseconds: initial command response time-out, 30 s (bank.md and qr.md, Limits). */
const delayMs = 30_000 - 1;

type Carry = (request: TransportRequest) => Answer;

const lostAnswer = failedAnswer("unknown", "lost");

/** What comes of a request whose answer is lost: nothing, */
const nothing: Carry = () => lostAnswer;

/** or a gateway's word for it, which looks like the service's own; some routes have none. */
export const gatewaysWord: Carry = ({ contract, route }) => {
  const [word] = faultOnLine(contracts[contract], route, new Fault("timeout", "No valid answer: the upstream's is lost"));
  return word === undefined
    ? failedAnswer("unknown", "silence")
    : { ...lostAnswer, outcome: "answered", text: word.toString() };
};

/** Carries requests to a service, and has befall them what the schedule says; after its end nothing does. */
export class Fateful implements Transport {
  readonly requests: TransportRequest[] = [];
  died = false;
  readonly #carry: Carry;
  readonly #schedule: readonly Mishap[];
  readonly #whenLost: Carry;
  readonly #clock: TestClock | undefined;
  #late: TransportRequest | undefined;
  #delayed: readonly { readonly dueMs: number; readonly request: TransportRequest }[] = [];
  #leave: () => void = () => {};
  #count = 0;

  /** @param clock For a schedule with delays. */
  constructor(carry: Carry, given: readonly Mishap[], clock?: TestClock, whenLost = nothing) {
    this.#whenLost = whenLost;
    this.#carry = carry;
    this.#schedule = given;
    this.#clock = clock;
  }

  /** What was delayed until now, or to the very last, arrives. */
  arrive(untilMs: number): void {
    const due = this.#delayed.filter(({ dueMs }) => dueMs <= untilMs);
    this.#delayed = this.#delayed.filter(({ dueMs }) => dueMs > untilMs);
    for (const { request } of due) this.#carry(request);
  }

  /** A new process begins. */
  lives(leave: () => void): void {
    this.died = false;
    this.#leave = leave;
  }

  async send(request: TransportRequest): Promise<Answer> {
    this.requests.push(request);
    this.arrive(this.#clock?.nowMs() ?? 0);
    const mishap = this.#schedule[this.#count++] ?? "none";
    const late = this.#late;
    this.#late = undefined;
    const answer = this.#befall(mishap, request);
    if (late !== undefined) this.#carry(late);
    return answer;
  }

  async close(): Promise<void> {}

  #befall(mishap: Mishap, request: TransportRequest): Answer {
    if (mishap === "none") return this.#carry(request);
    if (mishap === "not-sent") return failedAnswer("not-sent", "busy");
    if (mishap === "lost-after" || mishap === "dies-after") this.#carry(request);
    if (mishap === "late") this.#late = request;
    if (mishap === "delayed") this.#delayed = [...this.#delayed, { dueMs: (this.#clock?.nowMs() ?? 0) + delayMs, request }];
    if (mishap === "dies-before" || mishap === "dies-after") {
      this.died = true;
      this.#leave();
    }
    return this.#whenLost(request);
  }
}

export interface TillOptions {
  readonly transport: Fateful;
  readonly clock: TestClock;
  /** The operation: `bank`, `sale`, its body. */
  readonly service: "fiscal" | "bank" | "qr";
  readonly operation: string;
  readonly body: object;
}

/** Follows an operation over as many processes as die on the way. What a process stored is what its events told while it lived. */
export async function follow({ transport, clock, service, operation, body }: TillOptions): Promise<Settled> {
  const client = createClientOver(transport, { fiscal: { merchantId } });
  let stored = "";
  const options = () => {
    const gone = new AbortController();
    transport.lives(() => gone.abort());
    const onProgress = ({ token }: SettleEvent) => {
      if (!transport.died) stored = JSON.stringify(token);
    };
    return { clock, signal: gone.signal, onProgress, windowMs: 120_000 };
  };
  // Any operation of any service: the types hold them apart, and this law is about all of them
  const settle = client[service].settle as (...given: readonly unknown[]) => Promise<Settled>;
  let settled = await settle(operation, body, options());
  while (transport.died) settled = await client.resume(JSON.parse(stored), options());
  return settled;
}
