import type { SettlingRules } from "../contract/settling.ts";
import { isElsewhere } from "../core/device-mark.ts";
import { type Ids, isNothing } from "../core/followed.ts";
import { isSameOperation } from "../journal/record.ts";
import { endOfOne, mayHaveBegun, type Sending, togetherOf } from "./sending.ts";

/** Whose an answer is that names a key: an operation's own, or why not. docs/keys.md says it in sentences. */

/** All that stands under the key of an operation. */
export interface WhoseOptions {
  /** The operation's last sending. */
  readonly sending: Sending;
  /** What stands under the key in its service, in order of sending. */
  readonly under: readonly Sending[];
  readonly rules: SettlingRules;
  /** What the terminal had under the key right before the sending: `{}` for nothing, undefined if not known. */
  readonly before: Ids | undefined;
  /** The mark of the device that the answer came over, if known. */
  readonly device: string | undefined;
  /** True if something of another service stands under the key over that device. */
  readonly hasOthers: boolean;
  /** True if records are lost since: their operations may stand under the key as well. */
  readonly lacks: boolean;
}

/** `all`: whatever the answer proves. `good`: only a good end, and that the terminal has it. Otherwise why nothing counts, in words. */
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
  const others = under.filter((each) => !isOwn(each) && mayHaveBegun(each));
  if (own.some(({ endedMs }) => endedMs === undefined)) return because("its own answer is still awaited");
  if (before === undefined)
    return because(`what is known under the key may be another operation's, which ${sent.route} refers to`);
  if (others.length === 0) return { counts: own.length > 1 ? "good" : "all" };
  const isFollowUp =
    rules.baseline !== undefined &&
    !isNothing(before) &&
    own.length === 1 &&
    others.every((each) => hadEnded(each, others, sending));
  if (isFollowUp) return { counts: "all" };
  return because("another operation was sent under its key, and an answer would not say which one it is about");
}

/** True if a sending had ended before the later one was sent, which is certain only of an operation that was sent once. */
function hadEnded(each: Sending, others: readonly Sending[], { order }: Sending): boolean {
  const same = others.filter(({ sent }) => isSameOperation(sent, each.sent));
  return each.order < order && same.length === 1 && togetherOf(same).end !== undefined;
}

const because = (why: string): Whose => ({ why });
