import {
  type Ids,
  isIds,
  isOperationEnd,
  type OperationEnd,
  type OperationResult,
  operationResults,
} from "../core/followed.ts";
import { isObject } from "../core/json-object.ts";

/**
 * What is known of an operation is a list of facts, in the order in which they came: small, serialisable, each with its time. The client's
 * token holds it, and the bridge has it from its journal and what it heard since. What the list proves, `judge.ts` says.
 */

/**
 * What one answer says, by the contract's tables. `nothing`: no answer, or one that is about something else. `none`: there is no such operation.
 * `going`: the service has it. `end`: how it ended. `failed`: the service's own word that it came to nothing. `refused`: an error from before
 * anything can begin; `sign`: so, for its sign. `resend`: the contract has the same request sent again. `error`: any other, which leaves all
 * open.
 */
const sayings = ["nothing", "none", "going", "end", "failed", "refused", "sign", "resend", "error"] as const;

export interface Said {
  readonly says: (typeof sayings)[number];
  /** Of `end`. */
  readonly end?: OperationEnd | undefined;
  /** What tells the transaction or document from others; undefined where no answer showed it. */
  readonly ids?: Ids | undefined;
  /** The name that only this answer gives (qr: `trans`). */
  readonly name?: string | undefined;
  /** The document's print is missing. */
  readonly unprinted?: true | undefined;
  /** An error's code and words. */
  readonly code?: number | undefined;
  readonly message?: string | undefined;
}

/** `atMs`: milliseconds, on one clock within a list; of an answer to a question, when that was asked. */
export type Fact = { readonly atMs: number } & (
  | {
      /** A start goes out. */
      readonly is: "sent";
      /**
       * What the query said before it: `{}` for nothing, null for what isn't known; undefined where that is in the list, or the key is the
       * operation's own.
       */
      readonly before?: Ids | null | undefined;
    }
  /** What came back to the last start. */
  | { readonly is: "answered"; readonly said: Said }
  /** It didn't leave after all. `passing`: waiting helps. */
  | {
      readonly is: "unsent";
      readonly passing: boolean;
      readonly isSign?: true | undefined;
      readonly code?: number | undefined;
      readonly message?: string | undefined;
    }
  /** An answer to a question about it. `name`: by which name it was asked (qr). */
  | { readonly is: "told"; readonly said: Said; readonly name?: string | undefined }
  /** A copy of its document is asked for; and what came of that. */
  | { readonly is: "copied"; readonly ok: boolean }
  /** The word of a bridge that follows it. `isGuarded`: it recognises the same call. */
  | { readonly is: "word"; readonly word: OperationResult; readonly isGuarded: boolean; readonly trans?: string | undefined }
  /** Its end as it was recorded, by proof or by a person, who may correct it. */
  | { readonly is: "ended"; readonly end: OperationEnd; readonly by?: "answer" | "operator" | undefined }
  /**
   * `new`: its key was made for it. `copy`: a copy is asked for; `uncopied`: that didn't leave. `aborted`: it was aborted at the terminal.
   * `stopped`: nothing is sent any more that could begin it. `left`: others follow it on, who may send it and print. `resumed`: a process
   * took it up; what was heard right before may not be in the list. `earlier`: another sending of it may be out.
   */
  | { readonly is: (typeof plain)[number] }
);

const plain = ["new", "copy", "uncopied", "aborted", "stopped", "left", "resumed", "earlier"] as const;

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isEnd: Check = (value) => isOperationEnd(value);
const orNot =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const ofShape =
  (shape: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(shape).every(([name, check]) => check(value[name]));

const code = orNot(Number.isSafeInteger);
const message = orNot(isText);
const name = orNot(isText);

const isSaid: Check = (value) =>
  ofShape({
    says: (says) => sayings.some((each) => each === says) && (says === "end") === (isObject(value) && isEnd(value["end"])),
    ...{ ids: orNot(isIds), name, unprinted: orNot((flag) => flag === true), code, message },
  })(value);

/** What each kind of fact has beside its time. */
const shapes: Readonly<Record<Fact["is"], Check>> = {
  sent: ofShape({ before: (value) => value === null || orNot(isIds)(value) }),
  answered: ofShape({ said: isSaid }),
  unsent: ofShape({ passing: isFlag, isSign: orNot(isFlag), code, message }),
  told: ofShape({ said: isSaid, name }),
  copied: ofShape({ ok: isFlag }),
  word: ofShape({ word: (word) => operationResults.some((each) => each === word), isGuarded: isFlag, trans: name }),
  ended: ofShape({ end: isEnd, by: orNot((by) => by === "answer" || by === "operator") }),
  // Written out, so that a kind that is added is missed here by the compiler
  ...{ new: isObject, copy: isObject, uncopied: isObject, aborted: isObject },
  ...{ stopped: isObject, left: isObject, resumed: isObject, earlier: isObject },
};

/** As it is once it was kept: without fields that are undefined. */
// The JSON of a fact is one
export const plainFact = (fact: Fact): Fact => JSON.parse(JSON.stringify(fact)) as Fact;

/** Whether it is a list of facts, wherever it was kept. */
export function areFacts(value: unknown): value is readonly Fact[] {
  return Array.isArray(value) && value.every(isFact);
}

const isFact = (value: unknown) =>
  isObject(value) &&
  Number.isFinite(value["atMs"]) &&
  Object.entries(shapes).some(([kind, check]) => kind === value["is"] && check(value));
