import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import type { OperationEnd } from "../core/followed.ts";
import { Presence } from "../core/presence.ts";
import { freshState } from "../settle/state.ts";
import { toldOf } from "./answer.ts";
import { type AskedCall, askedCall, configurationChanged, isFollowUp, isOfRoute, keyReused } from "./asked-call.ts";
import { type Asking, type EndedQuestion, tried } from "./asking.ts";
import { Before } from "./before.ts";
import type { Hearing } from "./hearing.ts";
import { standingOf } from "./known.ts";
import type { Operations } from "./operations.ts";
import { subjectOf } from "./question.ts";
import { isRecorded, recorded, type Sending } from "./sending.ts";
import { Waiting } from "./waiting.ts";

/**
 * Calls that say how long they wait for the operation's end (`Prefer: wait`): each is sent once, as without the header, and waited for
 * while posline asks. The same call again isn't sent again: it is asked about, and ends as the first. This room knows no line and no HTTP:
 * calls come in as to any handler, and leave by one.
 */

/** Operations of one service that are followed at a time: a till has one or two, and each is asked about every second or two. */
const followedMax = 64;

/** The handler by which a service's calls leave for the terminal, and the device they go over. */
export interface Way {
  readonly handler: Handler;
  readonly device: string | undefined;
}

type WayOf = (service: ServiceName) => Way | undefined;

/** A call that is about to be sent, or out. */
interface Start {
  readonly digest: string;
  readonly caller: Presence;
  untilMs: number;
  polls: number;
  /** True once sent; false if the start ended before its turn came. */
  isSent: boolean;
  readonly ended: Promise<Reply | Fault>;
}

export class Following {
  readonly #operations: Operations;
  readonly #hearing: Hearing;
  readonly #asking: Asking;
  readonly #waiting = new Waiting();
  readonly #before: Before;
  readonly #wayOf: WayOf;
  /** Starts by service, route, key and amount. */
  readonly #starts = new Map<string, Start>();

  constructor(operations: Operations, hearing: Hearing, asking: Asking, wayOf: WayOf) {
    this.#operations = operations;
    this.#hearing = hearing;
    this.#asking = asking;
    this.#wayOf = wayOf;
    this.#before = new Before(operations, asking, this.#waiting);
  }

  /** Stops following: each caller that waits is answered what is known. */
  stop(): void {
    this.#waiting.stop();
  }

  /**
   * Sends a call and follows it, or asks about it if it was sent before.
   * @param handler Takes calls that can't be followed.
   * @throws Fault, which says how the operation stands.
   */
  async follow(call: Call, handler: Handler): Promise<Reply> {
    const { service, followMs = 0 } = call;
    const untilMs = this.#waiting.nowMs + followMs;
    const present = this.#asking.serviceOf(service);
    if (present === undefined) throw configurationChanged(call.route);
    const asked = askedCall(call, present);
    if (asked === undefined) return handler({ ...call, followMs: undefined });
    const name = [service, asked.route.path, asked.key, asked.amount ?? ""].join("\n");
    const there = this.#starts.get(name);
    if (there !== undefined) return this.#joins(there, asked, untilMs);
    const former = this.#formerOf(asked);
    const sending = former.findLast(({ sent }) => sent.digest === asked.digest);
    if (sending !== undefined) return this.#waitFor(sending, asked, untilMs, undefined);
    const [other] = former;
    if (other !== undefined) throw keyReused(asked, other);
    const starting = [...this.#starts.keys()].filter((each) => each.startsWith(`${service}\n`)).length;
    if (starting + this.#asking.watched(service) >= followedMax) throw tooMany(asked);
    this.#refuseShared(asked, present.device);
    const caller = new Presence();
    caller.join(call.caller);
    const ended = Promise.resolve().then(() => this.#start(asked, start));
    const start: Start = { digest: asked.digest, caller, untilMs, polls: 0, isSent: false, ended };
    this.#starts.set(name, start);
    // A start isn't sent any more once all of its callers have left.
    caller.leave();
    void start.ended.finally(() => this.#starts.delete(name));
    return this.#ends(start, asked, untilMs);
  }

  /** Earlier sendings of the operation, unless all are proven to have come to nothing. */
  #formerOf(asked: AskedCall): readonly Sending[] {
    return standingOf(this.#operations.under(asked.call.service, asked.key)).filter((each) => isOfRoute(asked, each));
  }

  /** Lets a second caller wait for what the first one sends. */
  #joins(start: Start, asked: AskedCall, untilMs: number): Promise<Reply> {
    if (start.digest !== asked.digest) {
      const state = `another body with its ${asked.route.key} is being followed: ask how that one ended, and use a new ${asked.route.key}`;
      throw new Fault("reused", `Cannot send ${asked.route.path}: ${state}. Nothing was sent`);
    }
    start.untilMs = Math.max(start.untilMs, untilMs);
    start.caller.join(asked.call.caller);
    return this.#ends(start, asked, untilMs);
  }

  async #ends(start: Start, asked: AskedCall, untilMs: number): Promise<Reply> {
    const ending = await start.ended;
    const { call, key, digest, route } = asked;
    const same = this.#operations
      .under(call.service, key)
      .filter(({ sent }) => sent.digest === digest && sent.route === route.path);
    const sending = standingOf(same).at(-1) ?? same.at(-1);
    const isUnsent = !start.isSent || (ending instanceof Fault && ending.outcome === "not-sent");
    if (sending === undefined || isUnsent) return this.#unsent(ending, asked, start);
    return this.#waitFor(sending, asked, untilMs, ending, start.polls);
  }

  /**
   * The ending of a call that wasn't sent, or was refused at once. That proves nothing of an earlier sending, if there was one or nobody
   * could look for one.
   */
  #unsent(ending: Reply | Fault, asked: AskedCall, { polls, isSent }: Start): Reply {
    const { rules, route } = asked;
    const isGuarded = this.#operations.isWhole;
    const isThere = this.#formerOf(asked).length > 0;
    const result = (end: OperationEnd) => (!isGuarded || isThere ? "unknown" : end);
    if (ending instanceof Fault) {
      throw new Fault(ending.kind, ending.message, {
        ...ending.details,
        followed: { result: result("failed"), answerOf: undefined, polls, isGuarded },
      });
    }
    const answerOf = isSent ? undefined : route.polling?.route;
    return { ...ending, followed: { result: result(rules.refused), answerOf, polls, isGuarded } };
  }

  /** Waits for an operation's end until `untilMs`, while it is asked about. */
  async #waitFor(
    sending: Sending,
    asked: AskedCall,
    untilMs: number,
    start: Reply | Fault | undefined,
    polls = 0,
  ): Promise<Reply> {
    const { requestId, service } = asked.call;
    this.#operations.followed(sending);
    await this.#waiting.flightEnded(sending, untilMs);
    if (sending.endedMs === undefined) throw stillAwaited(asked, this.#operations.isWhole && isRecorded(sending));
    // The terminal's words for an end that is known already.
    let last: EndedQuestion | undefined;
    let asks = 0;
    if (start === undefined && this.#operations.knownOf(sending).end !== undefined) {
      last = await this.#asking.ask(sending, requestId);
      asks = last === undefined ? 0 : 1;
    } else {
      if (start === undefined && this.#asking.watched(service) >= followedMax) throw tooMany(asked);
      const watch = this.#asking.watch(sending, requestId, start);
      await this.#waiting.until(watch.over, untilMs);
      this.#asking.unwatch(sending, watch);
      ({ last, polls: asks } = watch);
    }
    // An end is told only once it is recorded, since it must be so after a power cut as well.
    await recorded(sending);
    const subject = subjectOf(asked.contract, sending);
    const known = this.#operations.knownOf(sending);
    return toldOf({
      asked,
      known,
      state: subject === undefined ? freshState : this.#hearing.stateOf(sending, subject),
      start,
      last,
      polls: polls + asks,
      whyNot:
        subject === undefined ? undefined : this.#hearing.whyNot(sending, subject, this.#asking.serviceOf(service)?.device),
      cannotAsk: this.#asking.cannotAsk(sending),
      isGuarded: this.#operations.isWhole && isRecorded(sending),
    });
  }

  /** @throws Fault if something stands under its key whose end would be taken for its own. */
  #refuseShared(asked: AskedCall, device: string | undefined): void {
    const { service } = asked.call;
    if (isFollowUp(asked)) return;
    const [other] = [
      ...standingOf(this.#operations.under(service, asked.key)),
      ...this.#operations.underByOthers({ service, key: asked.key }, device),
    ];
    if (other !== undefined) throw keyReused(asked, other);
  }

  /** Sends the operation, once all that has to be known before is known. */
  async #start(asked: AskedCall, start: Start): Promise<Reply | Fault> {
    const { call, contract, rules, key, names } = asked;
    try {
      const device = this.#asking.serviceOf(call.service)?.device;
      if (rules.baseline) await this.#before.ended(asked, start);
      // A refund of a payment in parts stands beside the other parts.
      const standing = () =>
        rules.ownKey || rules.baseline ? standingOf(this.#operations.under(call.service, key)) : this.#formerOf(asked);
      const under = standing();
      const before = rules.baseline ? await this.#before.known(asked, start) : "";
      if (typeof before === "object") return before;
      const way = this.#wayOf(call.service);
      const isMoved = this.#asking.serviceOf(call.service)?.contract !== contract || way?.device !== device;
      if (way === undefined || isMoved) return configurationChanged(call.route);
      const stands = () => isSame(standing(), under);
      start.isSent = true;
      return await tried(way.handler, { ...call, caller: start.caller, decided: { before, names, stands } });
    } catch (error) {
      if (error instanceof Fault) return error;
      throw error;
    }
  }
}

const isSame = (one: readonly Sending[], other: readonly Sending[]) =>
  one.length === other.length && one.every((each, at) => each === other[at]);

/** The fault of a call whose copy without the header is out: the answer to that one says of it what no question would. */
function stillAwaited({ route: { path } }: AskedCall, isGuarded: boolean): Fault {
  const followed = { result: "unknown", answerOf: undefined, polls: 0, isGuarded } as const;
  const message = `Cannot show an answer to ${path}: it was sent before, and its answer is still awaited`;
  return new Fault("broken", message, { reason: "no-reply", followed });
}

function tooMany({ call }: AskedCall): Fault {
  const state = `${followedMax} operations of ${call.service} are followed, which is the limit`;
  return new Fault("unavailable", `Cannot follow ${call.route}: ${state}. ${nothingSent}`, { reason: "too-many-followed" });
}
