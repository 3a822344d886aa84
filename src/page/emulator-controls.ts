import type { AdminPort } from "./admin-port.ts";
import type { EmulatorView } from "./answers.ts";
import { byId, make, setText } from "./dom.ts";
import { dayAndTime, optionalText, text } from "./texts.ts";

/** The emulator's controls, if one runs: the outcome of the next operation or answer, a day later, and a fresh start. */

/** Outcomes that are offered, as the control API names them; it takes more (docs/emulator.md), with numbers of one's own. */
const outcomes = ["declined", "cancelled", "in-doubt", "internal-error", "slow:3"];
const faults = ["no-answer", "late:5000", "corrupt", "truncated", "noise", "twice:0", "unplug:2000"];

const dayMs = 86_400_000;

export class EmulatorControls {
  readonly #port: AdminPort;
  readonly #section = byId("emulator");
  readonly #service = byId("emulator-service", HTMLSelectElement);
  readonly #effect = byId("emulator-effect", HTMLSelectElement);
  readonly #pending = byId("emulator-pending");
  readonly #answer = byId("emulator-answer");

  constructor(port: AdminPort) {
    this.#port = port;
    byId("emulator-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      const [kind = "", name = ""] = this.#effect.value.split(" ");
      void this.#ask({ next: { service: this.#service.value, [kind]: name } }, text("emulator.planned"));
    });
    byId("emulator-day", HTMLButtonElement).addEventListener("click", () => {
      void this.#ask({ advanceMs: dayMs }, text("emulator.dayDone"));
    });
    byId("emulator-reset", HTMLButtonElement).addEventListener("click", () => {
      if (confirm(text("emulator.resetSure"))) void this.#ask({ reset: true }, text("emulator.resetDone"));
    });
  }

  /** @param services The services of this posline. */
  show(view: EmulatorView | undefined, services: readonly string[]): void {
    this.#section.hidden = view === undefined;
    if (view === undefined) return;
    if (this.#service.length === 0) {
      // An emulator without a bridge tells of none, and plays one of each contract.
      const offered = services.length === 0 ? ["bank", "fiscal", "qr"] : services;
      this.#service.append(...offered.map((name) => new Option(name, name)));
    }
    const planned = view.forced.map(({ service, route = "", outcome, fault }) =>
      `${service} ${route}: ${effectText(outcome ?? fault ?? "")}`.replace(" :", ":"),
    );
    for (const [fault, share] of Object.entries(view.chances)) {
      planned.push(text("emulator.share", { effect: effectText(fault), percent: share * 100 }));
    }
    if (this.#pending.dataset["shown"] !== planned.join("\n") || planned.length === 0) {
      this.#pending.dataset["shown"] = planned.join("\n");
      const lines = planned.length === 0 ? [text("emulator.pendingNone")] : planned;
      this.#pending.replaceChildren(...lines.map((line) => make("li", "", line)));
    }
    setText(byId("emulator-clock"), dayAndTime(new Date(view.now)));
  }

  /** Writes the names of the offered outcomes in the page's language. */
  useLanguage(): void {
    const chosen = this.#effect.selectedIndex;
    this.#effect.replaceChildren(group("outcome", outcomes), group("fault", faults));
    this.#effect.selectedIndex = Math.max(0, chosen);
    setText(this.#answer, "");
  }

  async #ask(body: object, done: string): Promise<void> {
    try {
      const view = await this.#port.json<EmulatorView>("emulator", body);
      setText(this.#answer, done);
      this.show(view, []);
    } catch (error) {
      setText(this.#answer, error instanceof Error ? error.message : String(error));
    }
  }
}

function group(kind: "outcome" | "fault", names: readonly string[]): HTMLOptGroupElement {
  const made = make("optgroup", "", ...names.map((name) => new Option(effectText(name), `${kind} ${name}`)));
  made.label = text(`emulator.${kind}`);
  return made;
}

const effectText = (name: string) => optionalText(`effect.${name}`) ?? name;
