import type { SettlingRules } from "../contract/settling.ts";
import { isElsewhere } from "../core/device-mark.ts";
import { isSameOperation } from "../journal/record.ts";
import { knownOf, standingOf } from "./known.ts";
import { endOfOne, type Sending } from "./sending.ts";

/**
 * Whose an answer is that names a key: an operation's own, or why not. docs/settling.md has the three cases: alone, follow-up, shared.
 */

/** What stands under the key of an operation. */
export interface WhoseOptions {
  /** The operation's last sending. */
  readonly sending: Sending;
  /** All that its service sent under the key within a day, in its order. */
  readonly under: readonly Sending[];
  readonly rules: SettlingRules;
  /** What the terminal had under its key right before it was sent: "" for nothing, undefined where that isn't known. */
  readonly before: string | undefined;
  /** The mark of the device that the answer came over, where it is known. */
  readonly device: string | undefined;
  /** Another service sent something under the key over that device within a day. */
  readonly hasOthers: boolean;
  /** Records are lost since: what they were about may stand under the key as well. */
  readonly lacks: boolean;
}

/** `all`: whatever the answer proves. `good`: only a good end, and that the terminal has it. Else why nothing counts, in words. */
export type Whose = { readonly counts: "all" | "good" } | { readonly why: string };

export function whose({ sending, under, rules, before, device, hasOthers, lacks }: WhoseOptions): Whose {
  const { sent } = sending;
  if (lacks)
    return because("records are missing from the journal since it was sent, and another operation may stand under its key");
  if (isElsewhere(sent.device, device))
    return because("it was sent over another device, or by another contract, than its service has now");
  if (hasOthers) return because("another service sent an operation under its key over the device that is asked");
  const isOwn = (each: Sending) => isSameOperation(each.sent, sent);
  const own = under.filter(isOwn).filter((each) => each === sending || endOfOne(each) !== "failed");
  const others = standingOf(under).filter((each) => !isOwn(each));
  if (own.some(({ endedMs }) => endedMs === undefined)) return because("its own answer is still awaited");
  if (before === undefined)
    return because(`what is known under the key may be another operation's, which ${sent.route} refers to`);
  if (others.length === 0) return { counts: own.length > 1 ? "good" : "all" };
  const isFollowUp =
    rules.baseline && before !== "" && own.length === 1 && others.every((each) => hadEnded(each, others, sending));
  if (isFollowUp) return { counts: "all" };
  return because("another operation was sent under its key, and an answer would not say which one it is about");
}

/** Whether it had ended before a later one was sent, which only one that was sent once surely has. */
function hadEnded(each: Sending, others: readonly Sending[], { order }: Sending): boolean {
  const same = others.filter(({ sent }) => isSameOperation(sent, each.sent));
  return each.order < order && same.length === 1 && knownOf(same).end !== undefined;
}

const because = (why: string): Whose => ({ why });
