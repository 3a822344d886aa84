import type { ContractName } from "../../core/call.ts";
import type { Case } from "../report/judgement.ts";

/**
 * A rehearsal plays a shop: it asks a till to sell, to give back, to print, lets something go wrong while the till does so, and judges the
 * till by what the terminal did. This room owns what is asked, what goes wrong, and the verdict. A scenario is data.
 */

/** What a till can be asked to do. */
export type Deed = "sale" | "abort" | "refund" | "receipt" | "return" | "cash-in" | "qr" | "qr-refund";

/** How a deed is done: by which routes of which service, and in which words a person is asked for it. */
export const deeds: Readonly<
  Record<Deed, { readonly contract: ContractName; readonly routes: readonly string[]; readonly asks: string }>
> = {
  sale: { contract: "bank", routes: ["/sale"], asks: "Sell {amount} by card" },
  abort: {
    contract: "bank",
    routes: ["/sale"],
    asks: "Sell {amount} by card, and cancel it at your till while the customer is asked for the card",
  },
  refund: { contract: "bank", routes: ["/refund", "/cancel"], asks: "Give {amount} back to the card" },
  receipt: { contract: "fiscal", routes: ["/sale"], asks: "Print the receipt for {amount}" },
  return: { contract: "fiscal", routes: ["/refund"], asks: "Print the return receipt for {amount}" },
  "cash-in": { contract: "fiscal", routes: ["/deposit"], asks: "Put {amount} into the drawer" },
  qr: { contract: "qr", routes: ["/showqrcode"], asks: "Sell {amount} by QR code" },
  "qr-refund": { contract: "qr", routes: ["/refund", "/cancel"], asks: "Give {amount} back by QR" },
};

/** How a till says that a deed ended. `unsupported`: it can't do it. */
export const words = ["approved", "declined", "reversed", "failed", "closed", "unprinted", "unknown", "unsupported"] as const;

export type Word = (typeof words)[number];

export const isWord = (text: string): text is Word => (words as readonly string[]).includes(text);

/** What goes wrong with one deed. */
export type Trouble =
  /** The terminal's operation goes another way: an outcome of the emulator, `declined` or `slow:3`. */
  | { readonly kind: "outcome"; readonly outcome: string }
  /** The answer is hurt on its way: a fault of the emulator, `corrupt` or `late:8000`. */
  | { readonly kind: "fault"; readonly fault: string }
  /** The request is lost: neither carried out nor answered. */
  | { readonly kind: "lost" }
  /** The cable is out when the till is asked, and back after so long. */
  | { readonly kind: "cable"; readonly ms: number }
  /** The terminal says nothing for so long, from before the till is asked. */
  | { readonly kind: "silence"; readonly ms: number }
  /** The till's connections to posline are cut when the terminal has the request. */
  | { readonly kind: "connection-cut" }
  /** posline is killed when the terminal has the request, and started again. */
  | { readonly kind: "bridge-killed" }
  /** The till is killed when the terminal has the request, and run again with the same arguments. */
  | { readonly kind: "till-killed" };

/** The amount of a deed: one of two that the seed draws, or one beyond 2^53. */
export type AmountName = "first" | "second" | "huge";

/** An article on a receipt. */
export interface Article {
  readonly name: string;
  /** In thousandths. */
  readonly quantity: bigint;
}

/** A deed that the till is asked for. */
export interface DeedStep {
  readonly deed: Deed;
  /** Its key, by a letter: the same letter is the same key. */
  readonly key: string;
  /** By default the first. */
  readonly amount?: AmountName;
  /** The letter of the deed that it gives back, or that it is the receipt of. */
  readonly of?: string;
  readonly trouble?: Trouble | undefined;
  /** The route whose next request the trouble hits, if it isn't the deed's own. */
  readonly at?: string;
  /** The article that the till is to sell, by its environment. */
  readonly article?: Article;
  /** The till is run twice at the same moment. */
  readonly twice?: true;
  /** The route that the till must have called for the scenario to be tested, beside the deed's own. */
  readonly seenBy?: string;
  /** The words that are true at the end; without any, only a false one is wrong. */
  readonly ends?: readonly Word[] | undefined;
}

export interface Scenario extends Case {
  /** In order. A number: the terminal's clock goes on by so many milliseconds. */
  readonly steps: readonly (DeedStep | number)[];
  /** Settings of the services that it needs. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** How long a till takes, if long: it begins before the others. What takes minutes is played only if it is asked for. */
  readonly lasts?: "a minute" | "minutes";
}

/** The services that a scenario needs. */
export const neededServices = ({ steps }: Scenario): readonly ContractName[] =>
  steps.flatMap((step) => (typeof step === "number" ? [] : [deeds[step.deed].contract]));
