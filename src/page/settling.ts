import type { AdminPort } from "./admin-port.ts";
import type { SettledOperations, UnknownOperation } from "./answers.ts";
import { byId, make, makeEnglish, setText } from "./dom.ts";
import { factsOf } from "./facts.ts";
import { moneyOf, text } from "./texts.ts";

/**
 * What a person saw at the terminal, as `posline journal settle` records it: two buttons in the card of an operation in doubt, and a dialog
 * that names the operation, its money and what will be recorded, and wants to know how the person knows. The port decides.
 */

/** The words of the buttons, by contract and route; others are carried out. */
const kinds: Readonly<Partial<Record<string, "paid" | "receipt">>> = {
  "bank /sale": "paid",
  "qr /showqrcode": "paid",
  "fiscal /sale": "receipt",
  "fiscal /refund": "receipt",
};

export class Settling {
  readonly #port: AdminPort;
  readonly #changed: () => void;
  readonly #dialog = byId("settle-dialog", HTMLDialogElement);
  readonly #note = byId("settle-note", HTMLInputElement);
  readonly #yes = byId("settle-yes", HTMLButtonElement);
  /** What the dialog is about. */
  #settle: object = {};

  /** @param changed Called when something may be recorded. */
  constructor(port: AdminPort, changed: () => void) {
    this.#port = port;
    this.#changed = changed;
    byId("settle-no", HTMLButtonElement).addEventListener("click", () => this.#dialog.close());
    byId("settle-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#record(this.#settle);
    });
  }

  /** The buttons of an operation in doubt, for its card. */
  of(doubt: UnknownOperation, contract: string): HTMLElement {
    const kind = kinds[`${contract} ${doubt.route}`] ?? "other";
    const buttons = (["done", "not-done"] as const).map((as) => {
      const name = text(`settle.${kind}.${as}`);
      const button = make("button", "", name);
      button.type = "button";
      button.addEventListener("click", () => this.#ask(doubt, as, name, contract));
      return button;
    });
    return make("p", "buttons", make("span", "", text("settle.looked")), ...buttons);
  }

  #ask(doubt: UnknownOperation, as: "done" | "not-done", name: string, contract: string): void {
    const { service, route, key, requestId, amount, currency } = doubt;
    // If that names several operations the port refuses it, and names them.
    this.#settle = { key: key ?? requestId, as, service, route };
    const result = text(`result.${as === "not-done" ? "failed" : contract === "fiscal" ? "closed" : "approved"}`);
    setText(byId("settle-title"), `${name}: ${service} ${route}`);
    const money = amount === undefined ? undefined : moneyOf(amount, currency);
    const named = { "fact.amount": money, "fact.key": key, "fact.requestId": key === undefined ? requestId : undefined };
    byId("settle-facts").replaceChildren(factsOf({ ...named, "fact.recorded": result }));
    setText(byId("settle-words"), text(`settle.${as}`));
    setText(this.#yes, text("settle.yes", { result }));
    this.#note.value = "";
    this.#end("");
    this.#dialog.showModal();
  }

  async #record(settle: object): Promise<void> {
    this.#yes.disabled = true;
    try {
      const note = this.#note.value.trim();
      const { settled } = await this.#port.json<SettledOperations>("journal/settle", { ...settle, note });
      const words = settled.map(
        ({ service, route, key = "", result }) => `${service} ${route} ${key}: ${text(`result.${result}`)}`,
      );
      if (settle === this.#settle) this.#dialog.close();
      this.#end("");
      const said = byId("settle-said");
      setText(said, text("settle.said", { words: [...new Set(words)].join(", ") }));
      // The card that had the focus goes.
      said.focus();
    } catch (error) {
      // What the port refuses has its words; without an answer nobody knows. Another operation's dialog may be open by now.
      const isTold = error instanceof Error && error.name === "Error";
      if (settle === this.#settle) this.#end(!isTold ? text("settle.unanswered") : makeEnglish("span", "", error.message));
    }
    this.#changed();
  }

  #end(refusal: string | HTMLElement): void {
    this.#yes.disabled = this.#port.isLocked;
    byId("settle-refusal").replaceChildren(this.#port.isLocked ? text("locked") : refusal);
  }
}
