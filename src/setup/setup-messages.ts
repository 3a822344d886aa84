import type { SetupEnd } from "./setup.ts";

/** What a setup and a person in another process say to each other: a line of JSON each. */

/** From the setup. */
export type SetupMessage =
  | { readonly say: string }
  | SetupQuestion
  /** The question of this number is over: it was answered, or nobody needs to know any more. */
  | { readonly over: number }
  | { readonly end: SetupEnd["is"] }
  /** Why it can't go on, and whether anything was written. */
  | { readonly error: string };

/** A question, with its number. */
export type SetupQuestion = { readonly ask: number } & AskedOf;

export type AskedOf =
  /** Plug the terminal in, or name one of these: the answer is its path. */
  | { readonly for: "device"; readonly devices: readonly { readonly path: string; readonly words: string }[] }
  /** The answer is empty if it isn't known. */
  | { readonly for: "merchant-id"; readonly refused?: string }
  /** The answer is `yes`, or the file stays as it is. */
  | { readonly for: "write"; readonly diff: string };

/** To the setup: the answer to the question of this number. */
export interface SetupAnswer {
  readonly ask: number;
  readonly answer: string;
}
