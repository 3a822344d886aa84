import { adviceWhenUnknown } from "../contract/contracts.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import { Presence } from "../core/presence.ts";
import { toldOf } from "./answer.ts";
import { type AskedCall, askedCall, configurationChanged, isFollowUp, isOfRoute, keyReused } from "./asked-call.ts";
import { type Asking, type EndedQuestion, tried } from "./asking.ts";
import { Before } from "./before.ts";
import type { Hearing } from "./hearing.ts";
import type { Operations } from "./operations.ts";
import { subjectOf } from "./question.ts";
import { isRecorded, mayHaveBegun, recorded, type Sending, unfailed } from "./sending.ts";
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

/** Milliseconds after its wait in which a caller is still told that its call isn't sent; and the shortest wait, so that a call can be sent. */
const graceMs = 500;

/** A call that is about to be sent, or out. */
interface Start {
  readonly digest: string;
  /** Present while anybody waits: a call that nobody waits for any more isn't sent. */
  readonly caller: Presence;
  polls: number;
  /** True once sent; false if the start ended before its turn came. */
  isSent: boolean;
  readonly ended: Promise<unknown>;
  ending: Reply | Fault | undefined;
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
    const untilMs = this.#waiting.nowMs + Math.max(call.followMs ?? 0, graceMs);
    const present = this.#asking.serviceOf(call.service);
    if (present === undefined) throw configurationChanged(call.route);
    const asked = askedCall(call, present);
    if (asked === undefined) return handler({ ...call, followMs: undefined });
    const name = [call.service, asked.route.path, asked.key, asked.amount ?? ""].join("\n");
    let there = this.#starts.get(name);
    // One whose callers have left comes to its own end, and may have left something behind.
    while (there?.digest === asked.digest && there.caller.gone) {
      await this.#waiting.until(there.ended, untilMs);
      if (there.ending === undefined) throw this.#awaited(asked);
      there = this.#starts.get(name);
    }
    if (there !== undefined && there.digest !== asked.digest) throw otherBody(asked);
    if (there !== undefined) return this.#ends(there, asked, untilMs);
    const sending = this.#formerOf(asked).findLast(({ sent }) => sent.digest === asked.digest);
    if (sending !== undefined) return this.#waitFor(sending, asked, untilMs, undefined);
    const under = this.#operations.under(call.service, asked.key);
    // One that failed may be found nonetheless, and would then be told as this one's end.
    const other = under.find((each) => isOfRoute(asked, each) && each.sent.digest !== asked.digest && mayHaveBegun(each));
    if (other !== undefined) throw keyReused(asked, other);
    const starting = [...this.#starts.keys()].filter((each) => each.startsWith(`${call.service}\n`)).length;
    if (starting + this.#asking.watched(call.service) >= followedMax) throw tooMany(asked);
    this.#refuseShared(asked, present.device);
    const caller = new Presence();
    const ended = Promise.resolve().then(async () => {
      start.ending = await this.#start(asked, start);
    });
    const start: Start = { digest: asked.digest, caller, polls: 0, isSent: false, ended, ending: undefined };
    this.#starts.set(name, start);
    void ended.finally(() => this.#starts.delete(name));
    const answer = this.#ends(start, asked, untilMs);
    caller.leave();
    return answer;
  }

  /** Earlier sendings of the operation, unless all are proven to have come to nothing. */
  #formerOf(asked: AskedCall): readonly Sending[] {
    return unfailed(this.#operations.under(asked.call.service, asked.key)).filter((each) => isOfRoute(asked, each));
  }

  /** All sendings of the same call. */
  #sendingOf({ call, key, digest, route }: AskedCall): Sending | undefined {
    const same = this.#operations
      .under(call.service, key)
      .filter(({ sent }) => sent.digest === digest && sent.route === route.path);
    return unfailed(same).at(-1) ?? same.at(-1);
  }

  /** Waits for a start as one of its callers, each until a moment of its own. */
  async #ends(start: Start, asked: AskedCall, untilMs: number): Promise<Reply> {
    const caller = new Presence();
    asked.call.caller.onLeave(() => caller.leave());
    if (asked.call.caller.gone) caller.leave();
    start.caller.join(caller);
    await this.#waiting.until(start.ended, untilMs);
    caller.leave();
    // Nobody waits any more: what isn't out comes back now.
    if (start.caller.gone) await this.#waiting.until(start.ended, this.#waiting.nowMs + graceMs);
    const { ending } = start;
    if (ending === undefined) throw this.#awaited(asked);
    const sending = this.#sendingOf(asked);
    const isUnsent = !start.isSent || (ending instanceof Fault && ending.outcome === "not-sent");
    if (sending === undefined || isUnsent) return this.#unsent(ending, asked, start);
    return this.#waitFor(sending, asked, untilMs, ending, start.polls);
  }

  /** The fault of a call that may be out, or go out for another caller: its answer says more of it than any question would. */
  #awaited(asked: AskedCall): Fault {
    const sending = this.#sendingOf(asked);
    return stillAwaited(asked, this.#operations.isWhole && isRecorded(sending));
  }

  /**
   * The ending of a call that wasn't sent, or was refused at once. That proves nothing of an earlier sending, if there was one or nobody
   * could look for one.
   */
  #unsent(ending: Reply | Fault, asked: AskedCall, { polls, caller }: Start): Reply {
    const { route } = asked;
    const isGuarded = this.#operations.isWhole;
    const isThere = this.#formerOf(asked).length > 0;
    const result = !isGuarded || isThere ? ("unknown" as const) : ("failed" as const);
    const followed = { result, answerOf: undefined, polls, isGuarded };
    if (!(ending instanceof Fault)) return { ...ending, followed };
    // Its key is another operation's, of which no word must be said.
    if (ending.kind === "reused") throw ending;
    const isLate = ending.reason === "caller-left" && caller.gone;
    const now = isLate ? `Cannot send ${route.path}: ${turnMissed}. ${nothingSent}` : ending.message;
    // That this call wasn't sent would be taken for the operation's end.
    const earlier = `Nothing was sent now. ${adviceWhenUnknown(asked.contract, route, asked.key)}`;
    const message = result === "unknown" ? now.replace(nothingSent, earlier) : now;
    throw new Fault(ending.kind, message, {
      ...ending.details,
      ...(isLate && { reason: "waited-too-long" }),
      followed,
    });
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
    await this.#waiting.flightEnded(sending, () => this.#waiting.nowMs >= untilMs);
    if (sending.endedMs === undefined) throw this.#awaited(asked);
    // The terminal's words for an end that is known already.
    let last: EndedQuestion | undefined;
    let asks = 0;
    if (start === undefined && this.#operations.togetherOf(sending).end !== undefined) {
      const asker = new Presence();
      const answered = this.#asking.ask(sending, requestId, asker).then((each) => {
        last = each;
      });
      await this.#waiting.until(answered, untilMs);
      asker.leave();
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
    return toldOf({
      asked,
      together: this.#operations.togetherOf(sending),
      known: this.#hearing.knownOf(sending),
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
    if (isFollowUp(asked)) {
      // Both may give the same payment back.
      const open =
        asked.rules.isByAmount && this.#operations.under(service, asked.key).find((each) => this.#mayGiveBack(asked, each));
      if (open) throw keyReused(asked, open);
      return;
    }
    const [other] = [
      ...unfailed(this.#operations.under(service, asked.key)),
      ...this.#operations.underByOthers({ service, key: asked.key }, device),
    ];
    if (other !== undefined) throw keyReused(asked, other);
  }

  /** True if it isn't known whether another route has given the payment back. */
  #mayGiveBack({ contract, route }: AskedCall, sending: Sending): boolean {
    const { route: other } = sending.sent;
    const isBack = other !== route.path && settlingRulesOf(contract.service, other)?.isByAmount === true;
    return isBack && this.#operations.togetherOf(sending).end === undefined;
  }

  /** Sends the operation, once all that has to be known before is known. */
  async #start(asked: AskedCall, start: Start): Promise<Reply | Fault> {
    const { call, contract, rules, key, names } = asked;
    try {
      const device = this.#asking.serviceOf(call.service)?.device;
      if (rules.baseline !== undefined) await this.#before.ended(asked, start);
      // A refund of a payment in parts stands beside the other parts.
      const standing = () =>
        rules.ownKey || rules.baseline !== undefined
          ? unfailed(this.#operations.under(call.service, key))
          : this.#formerOf(asked);
      const under = standing();
      const before = rules.baseline === undefined ? {} : await this.#before.known(asked, start);
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

const turnMissed =
  "its turn on the line did not come within the wait, or its till left: send the same call again, or with a longer wait";

function otherBody({ route }: AskedCall): Fault {
  const state = `another body with its ${route.key} is being followed: ask how that one ended, and use a new ${route.key}`;
  return new Fault("reused", `Cannot send ${route.path}: ${state}. Nothing was sent`);
}

function stillAwaited({ route: { path } }: AskedCall, isGuarded: boolean): Fault {
  const followed = { result: "unknown", answerOf: undefined, polls: 0, isGuarded } as const;
  const message = `Cannot show an answer to ${path} yet: it is out, or waits to be sent for another caller: send the same call again`;
  return new Fault("broken", message, { reason: "no-reply", followed });
}

function tooMany({ call }: AskedCall): Fault {
  const state = `${followedMax} operations of ${call.service} are followed, which is the limit`;
  return new Fault("unavailable", `Cannot follow ${call.route}: ${state}. ${nothingSent}`, { reason: "too-many-followed" });
}
