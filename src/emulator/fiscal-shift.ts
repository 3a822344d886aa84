import type { JsonObject } from "../core/json-object.ts";
import { reference } from "./answer.ts";
import { restoredTime } from "./fiscal-document.ts";
import { int32Max } from "./fiscal-request.ts";
import type { Saved } from "./saved.ts";

/** The shift of the emulated fiscal service (Shift). What was counted in it is reckoned from its documents. */
export class Shift {
  #id: bigint;
  #openedAt: string;
  #open: boolean;

  private constructor(id: bigint, openedAt: string, open: boolean) {
    this.#id = id;
    this.#openedAt = openedAt;
    this.#open = open;
  }

  /** The first shift. It is open from the start, so that a first sale needs nothing else. */
  static first(now: string): Shift {
    return new Shift(1n, now, true);
  }

  static restored(saved: Saved): Shift {
    return new Shift(saved.at("id").integer(1n, int32Max), restoredTime(saved.at("openedAt")), saved.at("open").flag());
  }

  get id(): bigint {
    return this.#id;
  }

  get open(): boolean {
    return this.#open;
  }

  /** When it was opened, yyyy-MM-dd HH:mm:ss. */
  get openedAt(): string {
    return this.#openedAt;
  }

  /** The next shift opens. */
  begin(now: string): void {
    this.#id += 1n;
    this.#openedAt = now;
    this.#open = true;
  }

  end(): void {
    this.#open = false;
  }

  /** What every answer about a shift begins with. */
  get fields(): JsonObject {
    return { shiftID: this.#id, shiftOpenAt: this.#openedAt };
  }

  get fiscalId(): string {
    return `EMUS${reference(this.#id, 6)}`;
  }

  saved(): JsonObject {
    return { id: this.#id, openedAt: this.#openedAt, open: this.#open };
  }
}
