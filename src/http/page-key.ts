import { createHmac, randomBytes } from "node:crypto";
import { Secret } from "../envelope/sign.ts";

/**
 * How somebody proves to be on this box: by a key that lies in a file which root and the service's group may read, and that is new at each
 * start. Whoever reads it makes a code, which a page exchanges for its session, once; a program makes the session itself. Both are the
 * moment at which they end, signed by the key, so nothing is kept of them. They are counted by the system's own time since its start, which
 * all processes share, and which no clock that is set moves.
 */

/** Milliseconds for which a code may be exchanged: it is carried from a terminal to a browser. */
const codeMs = 600_000;

/** Milliseconds that a session lasts: a technician's visit, and twice the longest setup. */
const sessionMs = 3_600_000;

/** Characters of a signature, which nobody guesses over HTTP: 64 bits. */
const signatureChars = 16;

const systemMs = () => Number(process.hrtime.bigint() / 1_000_000n);

export class PageKey {
  /** As it stands in the file. */
  readonly text: string;
  readonly #nowMs: () => number;
  /** The end of the code that was exchanged last: it and those that were made before are over. */
  #exchangedMs = 0;

  constructor(text = randomBytes(24).toString("hex"), nowMs = systemMs) {
    this.text = text;
    this.#nowMs = nowMs;
  }

  /** A code for a page's address. */
  code(): string {
    return this.#signed("code", this.#nowMs() + codeMs);
  }

  /** What a request carries in place of the admin token. */
  session(): string {
    return this.#signed("session", this.#nowMs() + sessionMs);
  }

  /** The session that a code is exchanged for; undefined if the code isn't this key's, or is over. */
  exchange(code: string): string | undefined {
    const endMs = this.#endOf("code", code);
    if (endMs === undefined || endMs <= this.#exchangedMs) return undefined;
    this.#exchangedMs = endMs;
    return this.session();
  }

  isSession(given: string): boolean {
    return this.#endOf("session", given) !== undefined;
  }

  #signed(kind: string, endMs: number): string {
    const signature = createHmac("sha256", this.text).update(`${kind} ${endMs}`).digest("hex");
    return `${endMs.toString(36)}-${signature.slice(0, signatureChars)}`;
  }

  /** When it ends; undefined if it has, or wasn't signed by this key. */
  #endOf(kind: string, given: string): number | undefined {
    const endMs = Number.parseInt(given.split("-", 1)[0] ?? "", 36);
    if (!(endMs > this.#nowMs()) || !Number.isSafeInteger(endMs)) return undefined;
    return new Secret(this.#signed(kind, endMs)).matches(given) ? endMs : undefined;
  }
}
