import { AdminPort, portAnswerMs, type StreamEvent } from "./admin-port.ts";
import type { EmulatorView, ExchangeEvent, OperationEvent, SetupView, Status, TestView, UnknownOperation } from "./answers.ts";
import { Curve } from "./curve.ts";
import { byId, make, setText } from "./dom.ts";
import { doubtsOf, findingsOf } from "./doubts.ts";
import { EmulatorControls } from "./emulator-controls.ts";
import { Exchanges } from "./exchanges.ts";
import { Settling } from "./settling.ts";
import { Setup } from "./setup.ts";
import { storyOf } from "./story.ts";
import { TestPanels } from "./terminal-tests.ts";
import { Terminals } from "./terminals.ts";
import { type Language, languages, preferredLanguage, rememberLanguage, text, timeOfDay, useLanguage } from "./texts.ts";

/**
 * The status page of a running posline, for the person at the counter, the technician, and the till's developer: is each terminal there,
 * what is happening, what is in doubt and what to do. The page reads the admin port as any program does, and knows nothing else.
 *
 * Events come by the stream and are on the screen with the next frame. The present state is asked for when the stream says that it has
 * changed, and now and then. If posline isn't heard, the page says so at once, and shows nothing as if it were so now.
 */

/** Milliseconds from an event to the question for the present state: events that come together are answered by one. */
const askSoonMs = 200;

/** Milliseconds to that question after an exchange, of which the list has everything but the counters. */
const askLaterMs = 2_000;

/** Milliseconds between two questions while nothing happens. */
const askIdleMs = 10_000;

/** Milliseconds for which an answer holds: until the next question, and the longest that its answer may take. */
const statusMsMax = askIdleMs + portAnswerMs + 1_000;

/** The first event of each connection. */
interface Greeting {
  readonly version: string;
  readonly time: string;
  /** Count of the events that follow and are from before. */
  readonly missed: number;
}

class Page {
  readonly #port = new AdminPort(askToken);
  readonly #exchanges = new Exchanges(
    byId("exchanges"),
    () => this.#draw(),
    (key) => (this.#paths.includes("/explain") ? storyOf(this.#port, key) : undefined),
  );
  readonly #settling = new Settling(this.#port, () => this.#askIn(0));
  readonly #tests = new TestPanels(this.#port, () => this.#askIn(0));
  readonly #setup = new Setup(
    this.#port,
    () => this.#askIn(0),
    () => void this.#tests.askAll(),
  );
  readonly #terminals = new Terminals(byId("terminals"), (service) => this.#tests.of(service));
  readonly #curve = new Curve();
  readonly #emulator = new EmulatorControls(this.#port);
  /** The paths of this port: a bridge has status and events, `posline emulate` an emulator alone. */
  #paths: readonly string[] = [];
  /** Another posline may have the port by now, which has other paths. */
  #arePathsOld = true;
  #isFollowing = false;
  #version: string | undefined;
  #status: Status | undefined;
  #emulatorView: EmulatorView | undefined;
  #testView: TestView | undefined;
  #setupView: SetupView | undefined;
  /** True while a test sale or a setup is under way. */
  #isBusy = false;
  #statusMs = 0;
  readonly #repliedMs = new Map<string, number>();
  #lastNews: Date | undefined;
  /** True if the stream has ended, and has not begun anew. */
  #isStreamLost = false;
  /** True if the stream is refused, as others watch: the state can be asked for all the same. */
  #isStreamFull = false;
  /** True if the last question was not answered. */
  #isUnanswered = false;
  #lastId = "";
  /** Count of old events that the stream still sends after its greeting, and when the greeting was by the box's clock. */
  #missed = 0;
  #greetedMs = 0;
  #isDrawn = true;
  #askTimer: ReturnType<typeof setTimeout> | undefined;
  #askDueMs = Number.POSITIVE_INFINITY;
  #isAsking = false;
  /** True if something changed while a question was out: the answer may be from before. */
  #isAskedAgain = false;

  async run(): Promise<void> {
    await this.#useLanguage(preferredLanguage());
    this.#offerLanguages();
    await this.#port.enter();
    addEventListener("hashchange", () => void this.#port.enter().then(() => this.#draw()));
    const find = byId("find", HTMLInputElement);
    find.addEventListener("input", () => {
      this.#exchanges.find(find.value);
      this.#draw();
    });
    document.addEventListener("visibilitychange", () => this.#askIn(0));
    // Ages and running times go on by themselves; nobody looks at a hidden page.
    setInterval(() => document.hidden || this.#draw(), 1_000);
    this.#askIn(0);
  }

  /** Learns the paths of this port, and follows its events from the first time that it has any. */
  async #learnPaths(): Promise<void> {
    this.#arePathsOld = false;
    const paths = await this.#port.paths();
    this.#paths = paths;
    if (this.#isFollowing || !paths.includes("/events")) return;
    this.#isFollowing = true;
    void this.#port.follow({
      event: (event) => this.#event(event),
      alive: () => {
        if (!this.#isLost) this.#lastNews = new Date();
      },
      lost: (isFull) => {
        this.#isStreamLost = true;
        this.#isStreamFull = isFull;
        this.#draw();
      },
    });
  }

  /** True if the shown state may be over: nothing is heard, or no answer came for longer than one takes. */
  get #isLost(): boolean {
    const isStreamLost = this.#isStreamLost && !this.#isStreamFull && this.#paths.includes("/events");
    return isStreamLost || this.#isUnanswered || performance.now() - this.#statusMs > statusMsMax;
  }

  #offerLanguages(): void {
    const chooser = byId("language", HTMLSelectElement);
    chooser.append(...Object.entries(languages).map(([name, words]) => new Option(words, name)));
    chooser.value = document.documentElement.lang;
    chooser.addEventListener("change", () => {
      // The chooser's values are the languages' own names.
      const language = chooser.value as Language;
      rememberLanguage(language);
      void this.#useLanguage(language);
    });
  }

  async #useLanguage(language: Language): Promise<void> {
    await useLanguage(language);
    this.#emulator.useLanguage();
    this.#showAnswers();
    this.#draw();
  }

  #event({ id, event, data }: StreamEvent): void {
    // The greeting's id is that of the event before the next one.
    if (isGap(this.#lastId, id, event === "hello" ? 0 : 1)) this.#exchanges.loseSight();
    this.#lastId = id;
    if (event === "hello") {
      // A new posline has a new page.
      const { version, time, missed } = data as Greeting;
      this.#missed = missed;
      this.#greetedMs = Date.parse(time);
      this.#version ??= version;
      if (version !== this.#version) location.reload();
      this.#isStreamLost = false;
      this.#isStreamFull = false;
      this.#arePathsOld = true;
      // The shown state may be from before the loss: only an answer shows the present one.
      this.#isUnanswered = this.#status !== undefined;
      this.#askIn(0);
      return;
    }
    const isMissed = this.#missed > 0;
    if (isMissed) this.#missed--;
    // The stream's events have the shapes of this posline: page and port are of one version.
    if (event === "operation") this.#exchanges.learn(data as OperationEvent);
    if (event !== "exchange") {
      this.#askIn(askSoonMs);
      return;
    }
    const exchange = data as ExchangeEvent;
    // Both times are the box's; the browser's clock may be another.
    this.#exchanges.take(exchange, isMissed ? Math.max(0, this.#greetedMs - Date.parse(exchange.time)) : 0);
    // When a service was heard before, the status knows.
    if (exchange.outcome === "answered" && !isMissed) this.#repliedMs.set(exchange.service, performance.now());
    if (exchange.phase === "ended") this.#askIn(askLaterMs);
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    requestAnimationFrame(() => this.#draw());
  }

  /** Asks for the present state, in this many milliseconds at the latest. */
  #askIn(ms: number): void {
    const dueMs = performance.now() + ms;
    if (dueMs >= this.#askDueMs) return;
    clearTimeout(this.#askTimer);
    this.#askDueMs = dueMs;
    this.#askTimer = setTimeout(() => void this.#ask(), ms);
  }

  async #ask(): Promise<void> {
    this.#askDueMs = Number.POSITIVE_INFINITY;
    this.#isAskedAgain = this.#isAsking;
    // A page that is looked at again asks at once (`visibilitychange`).
    if (this.#isAsking || document.hidden) return;
    this.#isAsking = true;
    try {
      if (this.#arePathsOld) await this.#learnPaths();
      const [status, emulator, tests, setup] = await Promise.all([
        this.#jsonOf<Status>("/status"),
        this.#jsonOf<EmulatorView>("/emulator"),
        this.#jsonOf<TestView>("/test"),
        // Who may not set up isn't shown how it goes.
        this.#jsonOf<SetupView>("/setup").catch(() => undefined),
      ]);
      this.#status = status;
      this.#emulatorView = emulator;
      this.#testView = tests;
      this.#setupView = setup;
      this.#statusMs = performance.now();
      this.#lastNews = new Date();
      this.#isUnanswered = false;
      this.#showAnswers();
    } catch {
      this.#isUnanswered = true;
      this.#arePathsOld = true;
    }
    this.#isAsking = false;
    if (this.#isBusy) this.#askIn(1_000);
    this.#askIn(this.#isAskedAgain ? 0 : this.#isUnanswered || this.#isStreamFull ? askLaterMs : askIdleMs);
    this.#isAskedAgain = false;
    this.#draw();
  }

  async #jsonOf<T>(path: string): Promise<T | undefined> {
    return this.#paths.includes(path) ? this.#port.json<T>(path.slice(1)) : undefined;
  }

  /** Writes the parts that only an answer changes. */
  #showAnswers(): void {
    const status = this.#status;
    this.#emulator.show(this.#emulatorView, Object.keys(status?.services ?? {}));
    for (const id of ["terminals-section", "now-section", "doubt-section", "figures-section", "findings-section"]) {
      byId(id).hidden = status === undefined;
    }
    if (status === undefined) return;
    setText(byId("version"), status.version);
    const isTesting = this.#tests.show(this.#testView, status.services);
    const isAway = Object.values(status.lines).some(({ state }) => state === "down");
    this.#isBusy = this.#setup.show(this.#setupView, isAway) || isTesting;
    const actsOf = (each: UnknownOperation, contract: string) => [
      this.#settling.of(each, contract),
      storyOf(this.#port, each.key ?? each.requestId),
    ];
    showList("doubts", doubtsOf(status, actsOf));
    showList("findings", findingsOf(status));
    showList("counters", countersOf(status));
  }

  /** Writes the parts that change by themselves or by the stream. */
  #draw(): void {
    this.#isDrawn = true;
    const main = byId("main");
    main.dataset["old"] = String(this.#isLost);
    main.hidden = this.#lastNews === undefined;
    const areExchangesOld = this.#isLost || this.#isStreamFull;
    setText(byId("now-title"), text(areExchangesOld ? "nowOld" : "now"));
    const rows = this.#exchanges.show(areExchangesOld);
    const { count } = this.#exchanges;
    setText(byId("exchanges-none"), rows > 0 ? "" : count === 0 ? text("exchangesNone") : text("findNone", { count }));
    this.#curve.show(this.#exchanges.lineTimes);
    const { session } = this.#port;
    setText(byId("session-words"), session === undefined ? "" : text(`session.${session}`));
    this.#showVerdict();
  }

  #showVerdict(): void {
    const lostSince = this.#isLost ? this.#lastNews : undefined;
    const status = this.#status;
    const terminals =
      status &&
      this.#terminals.show({
        status,
        askedMs: this.#statusMs,
        lostSince,
        repliedMs: this.#repliedMs,
        isBusy: (service) => !this.#isStreamFull && this.#exchanges.isBusy(service),
      });
    if (lostSince !== undefined) say("bad", text("verdict.lost", { time: timeOfDay(lostSince) }));
    else if (this.#isLost) say("bad", text("verdict.never"));
    else if (status !== undefined && terminals !== undefined) sayOf(terminals, status, this.#isStreamFull);
    else if (this.#emulatorView !== undefined) say("good", text("verdict.emulator"));
  }
}

/** True if events were missed between these two, by their ids: `<process>-<count>`. */
function isGap(before: string, id: string, step: 0 | 1): boolean {
  const [process, count] = id.split("-");
  const [processBefore, countBefore] = before.split("-");
  return before !== "" && (process !== processBefore || Number(count) !== Number(countBefore) + step);
}

function sayOf(
  { count, ready }: { readonly count: number; readonly ready: number },
  { journal, reasons }: Status,
  isStreamFull: boolean,
): void {
  const doubts = journal.unknown?.total ?? 0;
  const isRefusing = reasons.some(({ what, state }) => what === "journal" || state === "queue-full");
  const [all, not] = count === 1 ? (["one", "oneNot"] as const) : (["all", "not"] as const);
  const words = [text(`verdict.${ready < count ? not : all}`, { n: count - ready, count })];
  if (!["ok", "off"].includes(journal.state)) words.push(text("verdict.unwritten"));
  if (isRefusing) words.push(text("verdict.refusing"));
  if (doubts > 0) words.push(text(doubts === 1 ? "verdict.doubt" : "verdict.doubts", { n: doubts }));
  if (isStreamFull) words.push(text("verdict.full"));
  say(ready < count || isRefusing ? "bad" : words.length > 1 ? "wait" : "good", words.join(" "));
}

const signs = { good: "✓", wait: "!", bad: "✕" };

function say(level: keyof typeof signs, words: string): void {
  byId("verdict").dataset["level"] = level;
  setText(byId("verdict-sign"), signs[level]);
  setText(byId("verdict-words"), words);
}

function countersOf({ services, lines }: Status): readonly HTMLElement[] {
  const sum = <T>(of: Readonly<Record<string, T>>, count: (each: T) => number) =>
    Object.values(of).reduce((total, each) => total + count(each), 0);
  const counters = {
    answered: sum(services, (each) => each.counters.answered),
    notSent: sum(services, (each) => each.counters.notSent),
    unknown: sum(services, (each) => each.counters.unknown),
    late: sum(lines, (each) => each.counters.late),
    discards: sum(lines, (each) => sum(each.counters.discards, ({ count }) => count)),
    losses: sum(lines, (each) => each.counters.losses),
  };
  // Object.entries forgets the keys' type.
  return (Object.entries(counters) as [keyof typeof counters, number][]).map(([name, value]) =>
    make("div", "", make("dt", "", text(`counter.${name}`)), make("dd", "", text("number", { n: value }))),
  );
}

/** The elements of lists, as they were made: what is opened in one changes it. */
const madeAs = new WeakMap<Element, string>();

/** Puts elements into a list. One that is there as it was made stays, with what is open in it, and a reader's place. */
function showList(id: string, items: readonly HTMLElement[]): void {
  const list = byId(id);
  const there = new Map([...list.children].map((each) => [madeAs.get(each), each]));
  const shown = items.map((each) => {
    const old = there.get(each.outerHTML);
    there.delete(each.outerHTML);
    madeAs.set(old ?? each, each.outerHTML);
    return old ?? each;
  });
  for (const each of [...list.children]) if (!shown.includes(each)) each.remove();
  shown.forEach((each, at) => {
    if (list.children[at] !== each) list.insertBefore(each, list.children[at] ?? null);
  });
}

/** Asks for the token, until one is given. */
function askToken(wasWrong: boolean): Promise<string> {
  const dialog = byId("token-dialog", HTMLDialogElement);
  const field = byId("token", HTMLInputElement);
  setText(byId("token-words"), text(wasWrong ? "token.wrong" : "token.why"));
  field.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      const token = field.value.trim();
      field.value = "";
      if (token === "") dialog.showModal();
      else resolve(token);
    };
  });
}

void new Page().run();
