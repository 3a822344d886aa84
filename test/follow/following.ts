import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import type { OperationEnd, OperationHistory, OthersOperation, PastOperation } from "../../src/core/followed.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { Presence } from "../../src/core/presence.ts";
import { bodyDigest } from "../../src/envelope/body-digest.ts";
import { Follower, type FollowerOptions } from "../../src/follow/follower.ts";
import { Turns } from "../../src/follow/turns.ts";
import { showExactObject } from "../../src/settle/exact-json.ts";

/** A follower over a terminal that answers as a test says, and a journal in memory. */

/** What a call is answered: the JSON of a reply, or a fault. */
export type Answered = object | Fault;

export const replyOf = (json: object): Reply => {
  const { status, code } = json as { readonly status?: string; readonly code?: number };
  return { payload: [Buffer.from(showExactObject(json as JsonObject))], status, code, queueMs: 0, lineMs: 10 };
};

export const lost = new Fault("timeout", "No valid reply from line till", { reason: "no-reply" });
export const down = new Fault("unavailable", "Cannot send to line till: it is down", { reason: "line-down", retryAfterS: 1 });
export const running = { status: "success" };
export const approved = { status: "success", data: { status: "APPROVED", txn_id: "T-1" } };
export const absent = { status: "error", code: -15 };

/** What a journal has of an operation whose answer is lost. */
export const unanswered = {
  isAccepted: false,
  isStopped: false,
  isInFlight: false,
  isRecorded: true,
  isUnprinted: false,
  learned: undefined,
  hasOtherNames: false,
  mayEndWell: false,
  ask: {},
  mayBeCleared: false,
} as const;

type Past = Pick<PastOperation, "sentMs" | "digest" | "isFresh" | "device"> & Partial<PastOperation>;

/** A journal as the follower sees it. */
export class History implements OperationHistory {
  isWhole = true;
  /** The device that another service has sent the same key over, and in which order. */
  othersKeyOver: string | undefined;
  othersOrder = 0;
  /** The device that another service has sent something over. */
  othersDevice: string | undefined;
  readonly past = new Map<string, PastOperation>();
  readonly ends: string[] = [];
  readonly #orders = new Map<string, number>();

  /** What was sent last under its key. @returns its order. */
  sent(service: string, route: string, key: string, operation: Past): number {
    for (const [name, past] of this.past) {
      if (name.startsWith(`${service} `) && name.endsWith(` ${key}`)) this.past.set(name, { ...past, isLast: false });
    }
    this.past.set(`${service} ${route} ${key}`, { ...unanswered, ...operation, end: undefined, isLast: true });
    const order = this.lastOrder(service, key) + 1;
    this.#orders.set(`${service} ${key}`, order);
    return order;
  }

  lastOrder(service: string, key: string): number {
    return this.#orders.get(`${service} ${key}`) ?? 0;
  }

  find(service: string, route: string, key: string): PastOperation | undefined {
    return this.past.get(`${service} ${route} ${key}`);
  }

  /** What is known, to be restored where a sending doesn't leave. */
  get state(): ReadonlyMap<string, PastOperation> {
    return new Map(this.past);
  }

  restore(before: ReadonlyMap<string, PastOperation>): void {
    this.past.clear();
    for (const [name, past] of before) this.past.set(name, past);
  }

  othersOpen(): undefined {}
  hadAny(): boolean {
    return false;
  }
  findOthers(_service: string, _key: string, device: string): OthersOperation | undefined {
    return device === this.othersKeyOver ? { service: "bank-2", sentMs: 0, order: this.othersOrder } : undefined;
  }
  mayHaveOthers(_service: string, device: string): boolean {
    return device === this.othersDevice;
  }

  followed(): void {}
  async recorded(): Promise<void> {}

  accepted(service: string, route: string, key: string, order: number): void {
    const past = this.find(service, route, key);
    if (past === undefined || this.lastOrder(service, key) !== order) return;
    this.past.set(`${service} ${route} ${key}`, { ...past, isAccepted: true });
  }

  settled(service: string, route: string, key: string, end: OperationEnd, order: number): void {
    const past = this.find(service, route, key);
    if (past?.end !== undefined || this.lastOrder(service, key) !== order) return;
    this.ends.push(`${service} ${route} ${key} ${end}`);
    if (past !== undefined) this.past.set(`${service} ${route} ${key}`, { ...past, end });
  }
}

export interface Following {
  readonly follower: Follower;
  readonly history: History;
  /** Each call that left for the terminal: its route and body. */
  readonly sent: { readonly route: string; readonly body: string; readonly background: boolean }[];
  /** What a call is answered, and how its caller learns that the operation stands. */
  ask(
    body: object,
    waitMs?: number,
    caller?: Presence,
  ): Promise<{ readonly json?: unknown; readonly fault?: Fault; stands: string; readonly trans?: string | undefined }>;
}

/** Milliseconds that the terminal takes for an answer. */
export const takesMs = 10;

/** @param answer What the terminal answers; undefined for never. */
export function following(
  answer: (route: string, body: string, count: number) => Answered | undefined | Promise<Answered>,
  more: Partial<FollowerOptions> & { readonly service?: ContractName; readonly route?: string } = {},
): Following {
  const { service = "bank", route = "/sale" } = more;
  const contract = contracts[service];
  const history = new History();
  const sent: Following["sent"][number][] = [];
  const handler = async (call: Call): Promise<Reply> => {
    const body = Buffer.concat(call.body).toString();
    sent.push({ route: call.route, body, background: call.background === true });
    const before = call.background === true ? undefined : history.state;
    // Without a journal nobody numbers what is sent.
    if (call.background !== true && call.key !== undefined && !("history" in more && more.history === undefined)) {
      const isFresh = call.isFresh === true;
      call.onSent?.(
        history.sent(service, call.route, call.key, { sentMs: Date.now(), digest: bodyDigest(call.body), isFresh }),
      );
    }
    const count = sent.filter((each) => each.route === call.route).length;
    const answered = await answer(call.route, body, count);
    await new Promise((resolve) => setTimeout(resolve, takesMs));
    if (answered === undefined) return new Promise(() => {});
    if (answered instanceof Fault) {
      if (answered.outcome === "not-sent" && before !== undefined) history.restore(before);
      throw answered;
    }
    return replyOf(answered);
  };
  const follower = new Follower({ contract, service, handler, merchantId: "MERCHANT-1", history, turns: new Turns(), ...more });
  const keyField = contract.routes.find(({ path }) => path === route)?.key ?? "";
  return {
    follower,
    history,
    sent,
    ask: async (body, waitMs = 60_000, caller = new Presence()) => {
      const json = JSON.stringify(body);
      const form = `data=${encodeURIComponent(Buffer.from(json).toString("base64"))}&sign=c2lnbg%3D%3D`;
      const key = (body as Readonly<Record<string, string>>)[keyField];
      const text = contract.envelope === "form" ? form : json;
      const call = {
        service,
        contract: service,
        route,
        body: [Buffer.from(text)],
        requestId: "r-1",
        key,
        caller,
        followMs: waitMs,
      };
      try {
        const { payload, followed } = await follower.follow(call);
        const json: unknown = JSON.parse(Buffer.concat(payload).toString());
        return { json, stands: standsOf(followed), trans: followed?.trans };
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault;
        return { fault, stands: standsOf(fault.details.followed), trans: fault.details.followed?.trans };
      }
    },
  };
}

/** "approved by /check after 2, guarded". */
function standsOf(followed: Reply["followed"]): string {
  if (followed === undefined) return "not followed";
  const { result, answerOf, polls, isGuarded } = followed;
  return `${result}${answerOf === undefined ? "" : ` by ${answerOf}`} after ${polls}${isGuarded ? "" : ", unguarded"}`;
}
