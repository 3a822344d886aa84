import { type AdminPort, Locked } from "./admin-port.ts";
import type { SetupMessage, SetupView } from "./answers.ts";
import { byId, make, setText } from "./dom.ts";
import { type TextKey, text } from "./texts.ts";

/** The setup of a terminal: `posline setup`, whose questions are answered here. Its own words are English. */

/** The field of each question. */
const fields = { device: "setup-device", "merchant-id": "setup-id", write: "setup-diff" } as const;

export class Setup {
  readonly #port: AdminPort;
  readonly #changed: () => void;
  readonly #test: () => void;
  readonly #section = byId("setup-section");
  readonly #form = byId("setup-form", HTMLFormElement);
  readonly #device = byId("setup-devices", HTMLSelectElement);
  readonly #id = byId("setup-id", HTMLInputElement);
  #view: SetupView | undefined;
  /** The question that the form shows. */
  #ask: number | undefined;
  /** Set from `yes` until it is written. */
  #hasAgreed = false;
  /** Why the port took no request, or what follows the end: until the setup goes on. */
  #note = "";
  #seen = "";

  /** @param changed Called when the port knows more. @param test Called once a configuration is written. */
  constructor(port: AdminPort, changed: () => void, test: () => void) {
    this.#port = port;
    this.#changed = changed;
    this.#test = test;
    byId("setup-begin", HTMLButtonElement).addEventListener("click", () => void this.#send({}));
    byId("setup-stop", HTMLButtonElement).addEventListener("click", () => void this.#send({ stop: true }));
    byId("setup-no", HTMLButtonElement).addEventListener("click", () => void this.#answer("no"));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      const last = questionIn(this.#view);
      this.#hasAgreed = last?.for === "write";
      void this.#answer(last?.for === "device" ? this.#device.value : last?.for === "write" ? "yes" : this.#id.value);
    });
  }

  /**
   * @param view undefined if this posline has no setup.
   * @param isWanted True while a terminal isn't there.
   * @returns true while a setup is under way.
   */
  show(view: SetupView | undefined, isWanted: boolean): boolean {
    this.#view = view;
    const { isRunning = false, messages = [] } = view ?? {};
    const seen = `${isRunning} ${messages.length}`;
    if (seen !== this.#seen) this.#note = "";
    this.#seen = seen;
    this.#section.hidden = view === undefined || !(isWanted || isRunning || messages.length > 0 || this.#note !== "");
    const last = messages.at(-1);
    if (this.#hasAgreed && view !== undefined && !isRunning) {
      this.#hasAgreed = false;
      // A posline that was restarted, as for a new secret, knows of no setup.
      if (last === undefined || last.end === "written") {
        this.#note = text(last === undefined ? "setup.restarted" : "setup.written");
        this.#test();
      }
    }
    byId("setup-begin").hidden = isRunning;
    byId("setup-stop").hidden = !isRunning;
    const question = questionIn(view);
    const { refused = "" } = question ?? {};
    setText(byId("setup-words"), this.#note || last?.error || `${refused} ${text(wordsOf(view, question))}`.trim());
    this.#showQuestion(question);
    const said = byId("setup-said");
    const lines = messages.flatMap(({ say }) => say ?? []);
    if (said.childElementCount !== lines.length) said.replaceChildren(...lines.map((line) => make("li", "", line)));
    return isRunning;
  }

  #showQuestion(question: SetupMessage | undefined): void {
    this.#form.hidden = question === undefined;
    if (question?.ask === this.#ask) return;
    this.#ask = question?.ask;
    if (question?.for === undefined) return;
    const { devices = [], diff = "" } = question;
    for (const [kind, id] of Object.entries(fields)) byId(id).hidden = kind !== question.for;
    byId("setup-device").hidden ||= devices.length === 0;
    byId("setup-yes").hidden = question.for === "device" && devices.length === 0;
    byId("setup-no").hidden = question.for !== "write";
    setText(byId("setup-yes"), text(`setup.yes.${question.for}`));
    this.#device.replaceChildren(...devices.map(({ path, words }) => new Option(`${path} ${words}`.trim(), path)));
    this.#id.value = "";
    setText(byId("setup-diff"), diff);
  }

  #answer(answer: string): Promise<void> {
    return this.#send({ ask: this.#ask, answer });
  }

  async #send(body: object): Promise<void> {
    this.#note = "";
    try {
      this.show(await this.#port.json<SetupView>("setup", body), true);
    } catch (error) {
      this.#hasAgreed = false;
      this.#note = error instanceof Locked ? error.message : String(error);
    }
    this.#changed();
  }
}

/** The question that waits for its answer. */
function questionIn(view: SetupView | undefined): SetupMessage | undefined {
  const last = view?.messages.filter(({ say }) => say === undefined).at(-1);
  return view?.isRunning === true && last?.ask !== undefined ? last : undefined;
}

function wordsOf(view: SetupView | undefined, question: SetupMessage | undefined): TextKey {
  if (question?.for !== undefined) return `setup.${question.for}`;
  return view?.isRunning === true ? "setup.looks" : "setup.about";
}
