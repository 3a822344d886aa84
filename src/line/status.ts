import { type LineEvent, type LineState, nextState } from "./states.ts";

/** The state a line is in and why, told to whoever wants to know when it changes; an exchange's coming and going isn't told. */
export class LineStatus {
  readonly #tell: (state: LineState, reason: string) => void;
  #state: LineState = "down";
  #reason = "it was not opened yet";

  constructor(tell: (state: LineState, reason: string) => void) {
    this.#tell = tell;
  }

  get state(): LineState {
    return this.#state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#reason;
  }

  /**
   * Takes an event.
   * @throws Error for an event that can't come in this state.
   */
  take(event: LineEvent, why = ""): void {
    const before = this.#state;
    this.#state = nextState(before, event);
    if (before === this.#state || event === "send" || (event === "frame" && before === "awaiting")) return;
    this.#reason = why;
    this.#tell(this.#state, why);
  }

  /** The state stays, for another reason. */
  explain(reason: string): void {
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#tell(this.#state, reason);
  }
}
