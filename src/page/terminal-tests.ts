import { type AdminPort, Locked, portAnswerMs } from "./admin-port.ts";
import type { SaleTest, Status, TestAnswer, TestView } from "./answers.ts";
import { byId, make, makeEnglish, setText } from "./dom.ts";
import { durationOf, moneyOf, optionalText, text, timeOfDay } from "./texts.ts";

/** The tests in each terminal's card: its harmless question, and at a bank a test sale, behind a confirmation that names the amount. */

/** Milliseconds for a question: it may wait for its line, and then for its terminal. */
const askMs = 6 * portAnswerMs;

/** Milliseconds for which every terminal is asked until it answers: posline may be starting, and a start by silence takes 30 s. */
const askAllMs = 60_000;

interface Panel {
  readonly item: HTMLElement;
  readonly sell: HTMLButtonElement;
  readonly words: HTMLElement;
  readonly steps: HTMLElement;
  /** The last answer to the question, or why there is none; "asking" until then, "locked" if a sale needs a session. */
  asked: TestAnswer | string | undefined;
  shown: string;
}

export class TestPanels {
  readonly #port: AdminPort;
  readonly #changed: () => void;
  readonly #panels = new Map<string, Panel>();
  #view: TestView | undefined;
  #services: Status["services"] = {};
  readonly #dialog = byId("sale-dialog", HTMLDialogElement);
  readonly #amount = byId("sale-amount", HTMLInputElement);
  readonly #currency = byId("sale-currency", HTMLInputElement);
  /** The service at which the dialog sells. */
  #service = "";

  /** @param changed Called when a test sale has begun. */
  constructor(port: AdminPort, changed: () => void) {
    this.#port = port;
    this.#changed = changed;
    for (const field of [this.#amount, this.#currency]) field.addEventListener("input", () => this.#name());
    byId("sale-no", HTMLButtonElement).addEventListener("click", () => this.#dialog.close());
    byId("sale-form", HTMLFormElement).addEventListener("submit", () => void this.#sell(this.#service));
  }

  /** The tests of a service, for its card. */
  of(service: string): HTMLElement {
    const [ask, sell] = [make("button"), make("button")];
    for (const button of [ask, sell]) button.type = "button";
    ask.dataset["text"] = "test.ask";
    sell.dataset["text"] = "test.sale";
    for (const button of [ask, sell]) setText(button, optionalText(button.dataset["text"] ?? "") ?? "");
    const words = make("p", "words");
    words.role = "status";
    const steps = make("ol");
    const item = make("div", "test", make("p", "buttons", ask, sell), words, steps);
    const panel: Panel = { item, sell, words, steps, asked: undefined, shown: "" };
    ask.addEventListener("click", () => void this.#ask(service, panel));
    sell.addEventListener("click", () => {
      if (this.#port.isLocked) {
        panel.asked = "locked";
        showIn(panel, this.#view?.sales[service]);
        return;
      }
      this.#service = service;
      this.#name();
      this.#dialog.showModal();
    });
    this.#panels.set(service, panel);
    this.#showPanel(service, panel);
    return item;
  }

  /** @param view undefined if this posline has no tests. @returns true while a test sale is under way. */
  show(view: TestView | undefined, services: Status["services"]): boolean {
    this.#view = view;
    this.#services = services;
    for (const [name, panel] of this.#panels) this.#showPanel(name, panel);
    return Object.values(view?.sales ?? {}).some(({ end }) => end === undefined);
  }

  #showPanel(service: string, panel: Panel): void {
    panel.item.hidden = this.#view === undefined;
    panel.sell.hidden = this.#services[service]?.contract !== "bank";
    showIn(panel, this.#view?.sales[service]);
  }

  /** Asks every terminal, until it answers. */
  async askAll(): Promise<void> {
    const dueMs = performance.now() + askAllMs;
    const answered = new Set<Panel>();
    while (performance.now() < dueMs) {
      // A new configuration may have other services.
      for (const [service, panel] of this.#panels) {
        if (answered.has(panel) || !panel.item.isConnected) continue;
        await this.#ask(service, panel);
        if (typeof panel.asked === "object" && panel.asked.error === undefined) answered.add(panel);
      }
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }

  async #ask(service: string, panel: Panel): Promise<void> {
    panel.asked = "asking";
    showIn(panel, this.#view?.sales[service]);
    panel.asked = await this.#port.json<TestAnswer>("test", { service }, askMs).catch(String);
    showIn(panel, this.#view?.sales[service]);
  }

  get #money() {
    return { amount: Number(this.#amount.value), currency: this.#currency.value.toUpperCase() };
  }

  /** Names service and money in the dialog. */
  #name(): void {
    const { amount, currency } = this.#money;
    const money = moneyOf(String(amount), currency);
    setText(byId("sale-words"), text("test.why", { service: this.#service }));
    setText(byId("sale-yes"), text("test.sell", { money }));
  }

  async #sell(service: string): Promise<void> {
    const panel = this.#panels.get(service);
    if (panel === undefined) return;
    panel.asked = undefined;
    try {
      await this.#port.json<TestView>("test", { service, sale: this.#money });
    } catch (error) {
      // It may have begun all the same: the present state says so.
      panel.asked = error instanceof Locked ? "locked" : String(error);
    }
    this.#changed();
  }
}

/** The level of each end of a test sale. */
const ends = {
  "given-back": "good",
  kept: "bad",
  "in-doubt": "bad",
  "back-in-doubt": "bad",
  "not-approved": "unclear",
  "not-sent": "unclear",
} as const;

function showIn(panel: Panel, sale: SaleTest | undefined): void {
  const { asked, words, steps } = panel;
  // The last question is newer than a test sale that has ended.
  const shownSale = asked === undefined || (sale !== undefined && sale.end === undefined) ? sale : undefined;
  const shown = JSON.stringify([asked, shownSale, document.documentElement.lang]);
  if (shown === panel.shown) return;
  panel.shown = shown;
  if (shownSale === undefined) {
    const isGood = asked !== undefined && typeof asked !== "string" && asked.error === undefined;
    words.dataset["level"] = isGood ? "good" : isPlain(asked) || asked === undefined ? "unclear" : "bad";
    words.replaceChildren(...(asked === undefined ? [] : wordsOf(asked)));
    steps.replaceChildren();
    return;
  }
  const { end, message = "" } = shownSale;
  const money = moneyOf(String(shownSale.amount), shownSale.currency);
  words.dataset["level"] = end === undefined ? "now" : ends[end];
  words.replaceChildren(`${money}: ${text(end === undefined ? "sale.running" : `sale.${end}`)} `, english(message));
  steps.replaceChildren(
    ...shownSale.steps.map(({ time, route, key, type }) =>
      make("li", "", `${timeOfDay(new Date(time))} ${route} ${optionalText(`step.${type}`) ?? type} `, make("code", "", key)),
    ),
  );
}

const isPlain = (asked: TestAnswer | string | undefined) => asked === "asking" || asked === "locked";

function wordsOf(asked: TestAnswer | string): readonly (Node | string)[] {
  if (asked === "asking") return [text("test.asking")];
  if (asked === "locked") return [text("locked")];
  if (typeof asked === "string") return [english(asked)];
  const { ms, offer, error } = asked;
  if (error !== undefined) return [english(error)];
  const operations = offer?.operations?.join(", ");
  const systems = offer?.systems?.map((each) => `${each.name} (${each.operations.join(", ")})`).join(", ");
  return [text("test.answered", { time: durationOf(ms ?? 0) }), " ", operations ?? systems ?? ""];
}

const english = (words: string) => makeEnglish("span", "", words);
