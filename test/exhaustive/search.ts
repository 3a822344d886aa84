import { settlingRules } from "../../src/contract/settling.ts";
import { contractNames } from "../../src/core/call.ts";
import { isGoodEnd } from "../../src/core/followed.ts";
import { nothingBegun } from "../../src/settle/judge.ts";
import { operationOf } from "../settle/judged.ts";
import { abortedFor, actionIn, type Follower, followerOf, heard, restarted, stopped } from "./follower.ts";
import {
  aborted,
  aDayLater,
  type Happening,
  halfMinuteLater,
  happenings,
  type Is,
  type Kind,
  lateArrivals,
  stands,
  Terminal,
} from "./terminal.ts";

/**
 * Every history of one operation, breadth first, so that a law that breaks is shown by a shortest one: the follower does what the judge says,
 * and the terminal everything that it may. Two histories that lead to the same state are gone on with once.
 */

/** A moment of a history. */
interface World {
  readonly terminal: Terminal;
  readonly follower: Follower;
  /** What may still go wrong: answers lost, late or misleading; once a crash, or a till that asks again; and once a stop or an abort. */
  readonly faults: number;
  readonly crashes: number;
  readonly stops: number;
  /** Half a minute has passed since the last start, or since the follower took it up. */
  readonly isAged: boolean;
  /** How often it was sent, up to two. */
  readonly sent: number;
  /** The word that was said, which stays. */
  readonly said: Follower["word"];
  /** It was told by code 15 that the document isn't printed, or was told so just now. */
  readonly unprinted: "told" | "seen" | undefined;
  readonly isTwice: boolean;
}

/** Milliseconds since the last start, as bank.md lets its answer be awaited (Limits: 30 s), and one less. */
const [agedMs, freshMs] = [30_000, 29_999];

/** Questions after which a terminal that answers truly must have brought a word. */
const questionsMax = 14;

/** What must hold at each moment; a sentence for what doesn't. */
function brokenLaw(kind: Kind, { terminal, follower, sent, said, unprinted, isTwice }: World): string | undefined {
  const { word, by, isOver, known } = follower;
  const { begun, late, copies, isReached } = terminal;
  const has = (end: Is) => begun.some(({ is }) => is === end);
  if (isTwice) return "nothing is carried out twice";
  if (sent > 1 && (kind.isOnce || by === "bridge"))
    return "what the contract forbids to send again is sent once, as by the bridge";
  if (known.starts > 4) return "it is sent again three times at most";
  if (isGoodEnd(word) && !has("good")) return "what ended well has happened";
  if (word === "reversed" && !has("reversed")) return "what was taken back was";
  const isBad = word !== undefined && word !== "reversed" && !isGoodEnd(word);
  if (isBad && stands(kind, terminal)) return "what came to nothing has not happened, and can't any more";
  if (word === "not-sent" && (isReached || late > 0)) return "of what was not sent the terminal got nothing";
  if (!isOver && nothingBegun(known) && stands(kind, terminal)) return "what is taken for not begun has not begun";
  const isSilent = by === "client" && word === undefined;
  if (said !== undefined && said !== word && !isSilent) return "a word that was said is not contradicted later";
  if (!isOver && known.isStopped && actionIn(kind, follower) === "start") return "what is stopped is not sent any more";
  if (copies > 1) return "a copy is printed once";
  if (unprinted && word === "closed" && copies === 0) return "what is known to lack its print is not said to be whole";
  const [name, paid] = [known.isNameProven ? known.name : undefined, begun.find(({ is }) => is === "good")?.name];
  return name !== undefined && paid && paid !== name ? "the proven name is that of the payment" : undefined;
}

type Move = readonly [what: string, world: World];

/** What may come next, with a line for people. */
function* moves(kind: Kind, world: World): Generator<Move> {
  const { terminal, follower } = world;
  for (const { what, terminal: after, isTwice } of lateArrivals(kind, terminal))
    yield [what, { ...world, terminal: after, isTwice }];
  const again = (isLater = false) => ({ ...world, crashes: 0, isAged: false, follower: restarted(kind, follower, isLater) });
  const action = actionIn(kind, follower);
  if (action === undefined) {
    // The till asks again, at once or a day later; since then somebody may have sent a follow-up under the key
    if (world.crashes === 0 || !kind.followed.asks || follower.by === "bridge" || follower.word === undefined) return;
    yield ["the till asks again", again()];
    yield ["the terminal has forgotten it; the till asks again", { ...again(), terminal: aDayLater(terminal) }];
    if (!isGoodEnd(follower.word) || kind.followed.rules.learns !== undefined) return;
    yield ["somebody sends a follow-up; the till asks again", { ...again(), terminal: { ...terminal, later: "runs" } }];
    return;
  }
  const killed = world.crashes > 0 ? again() : undefined;
  for (const happening of happenings(kind, terminal, action, follower.known.name)) {
    const { what, terminal: after, result, faults, isTwice } = happening;
    if (faults > world.faults) continue;
    const sent = action === "start" && result.outcome !== "not-sent" ? Math.min(2, world.sent + 1) : world.sent;
    yield [what, { ...hears(kind, world, happening), sent }];
    if (world.stops > 0 && action === "start" && follower.by === "client" && !follower.known.isStopped)
      yield [`${what}; it was stopped meanwhile`, { ...hears(kind, world, happening, true), sent, stops: 0 }];
    if (killed && faults === 0)
      yield [`${what}; it is killed before that is kept`, { ...killed, terminal: after, isTwice, sent }];
  }
  if (killed) yield ["it is killed", killed];
  if (killed && terminal.isReached)
    yield ["it is killed, and begun again a day later", { ...again(true), terminal: aDayLater(terminal) }];
  // As where its batch was closed: what was seen there may be gone, and what came since. Of what was never seen nobody knows (docs/limits.md)
  const { isAccepted, isAborted } = follower.known;
  const isSeen = terminal.before !== undefined || (isAccepted && kind.service !== "qr" && !kind.isCash && !isAborted);
  if (isSeen && terminal.isReached && !terminal.hasForgotten)
    yield ["the terminal forgets all that", { ...world, terminal: aDayLater(terminal) }];
  if (!world.isAged) yield ["half a minute passes", { ...world, isAged: true, terminal: halfMinuteLater(terminal) }];
  if (world.stops > 0) yield* interventions(kind, world);
}

/** It is stopped, or aborted, or both. */
function* interventions(kind: Kind, world: World): Generator<Move> {
  const { terminal, follower } = world;
  const stop = stopped(kind, follower);
  if (stop !== undefined) yield ["it is stopped", { ...world, stops: 0, follower: stop, said: stop.word ?? world.said }];
  const abort =
    kind.service === "fiscal" && terminal.isReached && !terminal.hasForgotten ? abortedFor(kind, follower) : undefined;
  if (abort === undefined) return;
  const after = { ...world, stops: 0, terminal: aborted(kind, terminal) };
  yield ["an abort succeeds", { ...after, follower: abort }];
  const both = stopped(kind, abort);
  if (both !== undefined) yield ["an abort succeeds, and it is stopped", { ...after, follower: both }];
}

function hears(kind: Kind, world: World, { terminal, result, faults, isTwice }: Happening, isMeanwhile = false): World {
  const isStart = actionIn(kind, world.follower) === "start";
  const follower = heard(kind, world.follower, result, world.isAged ? agedMs : freshMs, isMeanwhile);
  const isTold = world.unprinted === "told" || (result.summary.code === 15 && world.said === undefined);
  const isSeen = result.outcome === "answered" && result.reply["printError"] !== undefined && world.said === undefined;
  return {
    ...{ ...world, terminal, follower, isTwice, faults: world.faults - faults, isAged: world.isAged && !isStart },
    ...(follower.by === "client" && follower.word !== undefined && { faults: 0, stops: 0 }),
    said: follower.word ?? world.said,
    unprinted: isTold ? "told" : isSeen ? "seen" : undefined,
  };
}

/** Numbers for what is equal. */
class Numbers {
  readonly #ofTexts = new Map<string, number>();
  readonly #ofObjects = new WeakMap<object, number>();

  of(value: object): number {
    const known = this.#ofObjects.get(value);
    if (known !== undefined) return known;
    const text = JSON.stringify(value);
    const number = this.#ofTexts.get(text) ?? this.#ofTexts.size;
    this.#ofTexts.set(text, number);
    this.#ofObjects.set(value, number);
    return number;
  }
}

/**
 * Whether a terminal that answers truly from now on brings a word.
 * @param end How what runs will end.
 * @param live From where it does, as was seen before.
 */
function comesToWord(kind: Kind, from: World, end: Is, numbers: Numbers, live: Set<string>): boolean {
  let { terminal, follower } = from;
  const passed: string[] = [];
  for (let asked = 0; asked < questionsMax && follower.word === undefined; asked++) {
    terminal = halfMinuteLater(terminal);
    const text = `${end} ${numbers.of(terminal)} ${numbers.of(follower)}`;
    if (live.has(text)) return true;
    passed.push(text);
    const [action, { begun }] = [actionIn(kind, follower), terminal];
    const isEnd = ({ terminal: { begun: then, before } }: Happening) =>
      before !== "runs" &&
      (begun.length > 1
        ? then.some(({ is }) => is === end)
        : then.every(({ is }) => is === (begun[0]?.is === "runs" ? end : is)));
    const all = happenings(kind, terminal, action, follower.known.name).filter(({ isTrue }) => isTrue);
    const happening = (action === "ask" ? all.find(isEnd) : undefined) ?? all[0];
    if (happening === undefined) break;
    ({ terminal } = happening);
    follower = heard(kind, follower, happening.result, agedMs);
  }
  const isLive = follower.word !== undefined || mayStayOpen(kind, terminal, follower);
  if (isLive) for (const text of passed) live.add(text);
  return isLive;
}

/** What may stay unknown: the contract has no words that would tell. */
function mayStayOpen(kind: Kind, { before, begun, hasForgotten }: Terminal, follower: Follower): boolean {
  const { followed, isCash } = kind;
  // docs/settling.md: qr has no question about /cancel, /refund and /final_confirm
  if (!followed.asks) return true;
  const { known } = follower;
  // After a day "there is none" proves nothing; nor any answer, once the bridge has forgotten what stood under a follow-up's key before
  if (follower.isOld || (follower.by === "bridge" && known.before === undefined)) return true;
  // What stands under the key is another's, or was, and ours may come yet
  if (hasForgotten || (before !== undefined && begun.length === 0)) return true;
  // A receipt that was accepted and is gone: fiscal.md shows no such move but for cash, and after an abort
  if (known.isAccepted && begun.length === 0 && !isCash && !known.isAborted) return true;
  if (followed.rules.learns === undefined || known.isNameProven) return false;
  // qr.md, Resources: only a start's answer names the payment. That one of two names has failed is no end, nor that a guess has
  const asked = begun.find(({ name }) => name === known.name);
  const mayResend = follower.by === "client" && !known.isStopped && known.starts <= followed.rules.resendsMax;
  const isNamedNoMore = !mayResend || known.isAccepted;
  return asked === undefined ? isNamedNoMore : asked.is === "bad";
}

/** A world, how it came from which earlier one. */
type Seen = readonly [world: World, what: string, from: Seen | undefined];

/** @returns how many states there are, and the first broken law with how it came to that. */
function search(
  kind: Kind,
  follower: Follower,
  before: Is | undefined,
  faults: number,
): readonly [states: number, broken: string | undefined] {
  const terminal = { ...new Terminal(), before };
  const budget = { faults, crashes: 1, stops: 1 };
  const start: World = {
    terminal,
    follower,
    ...budget,
    isAged: false,
    sent: 0,
    said: undefined,
    unprinted: undefined,
    isTwice: false,
  };
  const all: Seen[] = [[start, `${follower.by} ${kind.name}`, undefined]];
  const [numbers, live, known] = [new Numbers(), new Set<string>(), new Map<string, World[]>()];
  for (const from of all)
    for (const [what, world] of moves(kind, from[0])) {
      const { isAged, sent, said, unprinted } = world;
      const name = [numbers.of(world.terminal), numbers.of(world.follower), isAged, sent, said, unprinted].join();
      const same = known.get(name) ?? [];
      // What may go wrong from here may go wrong from there as well
      if (same.some((each) => each.faults >= world.faults && each.crashes >= world.crashes && each.stops >= world.stops))
        continue;
      known.set(name, [...same, world]);
      const seen: Seen = [world, what, from];
      all.push(seen);
      const isOpen = said === undefined && world.follower.word === undefined;
      const isLive = (end: Is) => !isOpen || comesToWord(kind, world, end, numbers, live);
      const law =
        brokenLaw(kind, world) ?? (isLive("good") && isLive("bad") ? undefined : "a terminal that answers truly brings a word");
      if (law !== undefined) return [all.length, `${law}\n${timeLine(kind, seen)}`];
    }
  return [all.length, undefined];
}

function timeLine(kind: Kind, [{ follower, terminal }, what, from]: Seen): string {
  const { isAccepted, refusal, doubt, nones, lastDoubt } = follower.known;
  const doubts = `${doubt ? ", in doubt" : ""}${lastDoubt ? ", an earlier one in doubt" : ""}`;
  const phase = isAccepted ? "accepted" : refusal === undefined ? "lost" : "refused";
  const known = follower.word ?? `${phase}${doubts}${nones > 0 ? `, ${nones} times none` : ""}`;
  const truth = [...terminal.begun.map(({ name, is }) => `${name} ${is}`), ...(terminal.late > 0 ? ["one on its way"] : [])];
  const line = `  ${what}. Known: ${known}. True: ${truth.join(", ") || "nothing"}`;
  return from === undefined ? line : `${timeLine(kind, from)}\n${line}`;
}

const once = new Set(["bank /confirm", "bank /cancel", "qr /cancel", "qr /refund", "qr /final_confirm"]);

/** Each kind of operation of the contracts; those that differ by their route alone are one. */
export function kinds(): readonly Kind[] {
  const found = new Map<string, Kind>();
  for (const service of contractNames)
    for (const { route, ...rules } of settlingRules[service]) {
      const name = `${service} ${route}`;
      const isRepeatedOften = service === "qr";
      const of = { service, isOnce: once.has(name), isCash: /deposit|withdraw/.test(route), isRepeatedOften };
      const like = JSON.stringify([of, rules]);
      const same = found.get(like);
      found.set(like, {
        ...of,
        followed: operationOf(service, route),
        name: same === undefined ? name : `${same.name} ${route}`,
      });
    }
  return [...found.values()];
}

/** Searches from all that an operation may begin with: each who follows it, and what may stand under its key. */
export function* searches(kind: Kind, faults = 2): Generator<ReturnType<typeof search>> {
  // One that runs ends in each way; a document that fails leaves nothing
  const withRuns: readonly (Is | undefined)[] = kind.service === "fiscal" ? ["runs"] : [undefined, "runs"];
  const befores = kind.followed.rules.baseline === undefined ? [undefined] : withRuns;
  for (const begin of [followerOf(kind, "bridge"), followerOf(kind, "client")])
    for (const before of befores) yield search(kind, begin, before, faults);
}
