import { connect, type Socket } from "node:net";
import type { Node } from "../config/check.ts";
import { checkObject } from "../config/check-object.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Log } from "../core/log.ts";
import { printableJson } from "../core/shell-text.ts";
import { parseObject } from "../envelope/json.ts";
import type { AdminAnswer, AdminRequest } from "../http/admin-listener.ts";
import { isLoopbackHost } from "../http/guard.ts";
import { LineSplitter } from "../logs/line-splitter.ts";
import type { SetupAnswer } from "./setup-messages.ts";

/**
 * `POST /setup`: a setup from the status page. This process may neither write its configuration nor be reloaded by itself, so systemd runs
 * `posline setup --json` as root for each connection to a socket that this process alone may use. Here its questions are passed on to
 * the page, and the page's answers to it.
 */

/** Milliseconds that a setup may take: a technician fetches a cable, and the merchant's id. */
const setupMsMax = 1_800_000;

/** Messages of one setup: one that tries every speed on every plugged device has some hundred. */
const messagesMax = 1_000;

const requestNode: Node = {
  type: "object",
  additionalProperties: false,
  properties: {
    stop: { enum: [true] },
    ask: { type: "integer", minimum: 1 },
    answer: { type: "string", maxLength: 4_096 },
  },
};

interface SetupRequest extends Partial<SetupAnswer> {
  readonly stop?: true;
}

/** What the setup said, in order, each message an object of `setup-messages.ts`. */
interface SetupView {
  readonly isRunning: boolean;
  readonly messages: readonly JsonObject[];
}

export interface SetupRelayOptions {
  /** The path of the helper's socket. */
  readonly socket: string;
  readonly log: Log;
  /** Whether the admin port asks for a token. */
  readonly hasToken: () => boolean;
}

export class SetupRelay {
  readonly #options: SetupRelayOptions;
  readonly #limit = new Deadline(() => this.#helper?.end());
  #helper: Socket | undefined;
  /** Of the present setup, or the last one. */
  #messages: JsonObject[] = [];

  constructor(options: SetupRelayOptions) {
    this.#options = options;
  }

  view(): AdminAnswer {
    const view: SetupView = { isRunning: this.#helper !== undefined, messages: this.#messages };
    return answer(200, view);
  }

  /** Begins a setup, answers its question, or stops it. */
  change(body: string, { headers }: AdminRequest): AdminAnswer {
    // Whoever is at another machine has come through a proxy, which lets in whom it likes.
    if (!this.#options.hasToken() && !isLoopbackHost(headers.host)) {
      return refusal(403, "only this box may: open the page at http://localhost, or set admin.tokenFile");
    }
    const problems: string[] = [];
    // Wrong fields are among the problems.
    const { stop, ask, answer: given } = checkObject(requestNode, body, problems) as SetupRequest;
    if (problems.length > 0) return refusal(400, problems.join("; "));
    // The setup has the last word: whether anything was written, only it knows.
    if (stop === true) this.#helper?.end();
    else if (ask === undefined && given === undefined) {
      if (this.#helper !== undefined) return refusal(409, "another setup is under way: go on with that one, or stop it");
      this.#begin();
    } else {
      if (this.#helper === undefined || ask === undefined || this.#asked !== ask) {
        return refusal(409, "that question is over: GET /setup has the present one");
      }
      this.#helper.write(`${JSON.stringify({ ask, answer: given ?? "" })}\n`);
      this.#messages.push({ answered: ask });
    }
    return this.view();
  }

  /** A setup that has not been answered `yes` leaves everything as it was. */
  stop(): void {
    const helper = this.#helper;
    // How it ends, nobody is told here any more.
    this.#helper = undefined;
    this.#limit.dispose();
    helper?.destroy();
  }

  /** The question that waits for its answer. */
  get #asked(): unknown {
    return this.#messages.findLast(({ say }) => say === undefined)?.["ask"];
  }

  #begin(): void {
    this.#messages = [];
    this.#options.log.process("info", "setup was begun from the status page");
    const helper = connect(this.#options.socket);
    this.#helper = helper;
    const lines = new LineSplitter();
    const now = nowMs();
    this.#limit.set(now + setupMsMax, now);
    const heard = (message: JsonObject) => {
      if (this.#helper === helper) this.#heard(message);
    };
    const failed = (why: string) => heard({ error: `Cannot set up: ${why}` });
    helper.on("data", (bytes) => {
      lines.push(bytes, (line) => heard(parseObject(line.bytes.toString()) ?? {}));
    });
    helper.on("error", (error) => {
      const start = "systemctl start posline-setup.socket, or run sudo posline setup";
      failed(`${this.#options.socket} can't be used (${codeOf(error) ?? messageOf(error)}): ${start}`);
    });
    helper.on("close", () => failed("it ended by itself: sudo posline setup says more"));
  }

  #heard(message: JsonObject): void {
    const isFull = this.#messages.length >= messagesMax;
    const taken = isFull ? { error: "Cannot set up: it says too much: sudo posline setup says more" } : message;
    this.#messages.push(taken);
    const { end, error } = taken;
    if (end === undefined && error === undefined) return;
    if (typeof error === "string") this.#options.log.process("warn", error);
    else this.#options.log.process("info", `setup from the status page ended: ${end}`);
    this.#limit.dispose();
    this.#helper?.destroy();
    this.#helper = undefined;
  }
}

const answer = (status: number, body: object): AdminAnswer => ({
  status,
  text: `${printableJson(JSON.stringify(body))}\n`,
});

const refusal = (status: number, why: string) => answer(status, { error: `Cannot set up: ${why}` });
