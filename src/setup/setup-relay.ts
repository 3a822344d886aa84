import { connect, type Socket } from "node:net";
import type { Node } from "../config/check.ts";
import { checkObject } from "../config/check-object.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Log } from "../core/log.ts";
import { parseObject } from "../envelope/json.ts";
import type { AdminAnswer } from "../http/admin-listener.ts";
import { jsonAnswer } from "../http/json-answer.ts";
import { LineSplitter, type RawLine } from "../logs/line-splitter.ts";
import type { SetupAnswer } from "./setup-messages.ts";

/**
 * `POST /setup`: a setup from the status page. This process may neither write its configuration nor be reloaded by itself, so systemd runs
 * `posline setup --json` as root for each connection to a socket that this process alone may use. Here its questions are passed on to
 * the page, and the page's answers to it.
 */

/** Milliseconds that a setup may take: a technician fetches a cable, and the merchant's id. */
const setupMsMax = 1_800_000;

/** Milliseconds in which a setup that is stopped says how it ended. */
const stopMsMax = 5_000;

/** Bytes of one setup's messages: one that tries every speed on every plugged device says some 20 kB. */
const messageBytesMax = 262_144;

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

/** What the setup said, in order: see `setup-messages.ts`. */
interface SetupView {
  readonly isRunning: boolean;
  readonly messages: readonly JsonObject[];
}

export interface SetupRelayOptions {
  /** The path of the helper's socket. */
  readonly socket: string;
  readonly log: Log;
}

export class SetupRelay {
  readonly #options: SetupRelayOptions;
  readonly #limit = new Deadline(() => this.#fail("it did not end in time"));
  /** There until its process has gone. */
  #helper: Socket | undefined;
  /** Of the present setup, or the last one. */
  #messages: JsonObject[] = [];
  #messageBytes = 0;

  constructor(options: SetupRelayOptions) {
    this.#options = options;
  }

  view(): AdminAnswer {
    const view: SetupView = { isRunning: this.#helper !== undefined, messages: this.#messages };
    return jsonAnswer(200, view);
  }

  /** Begins a setup, answers its question, or stops it. */
  change(body: string): AdminAnswer {
    const problems: string[] = [];
    // Wrong fields are among the problems.
    const { stop, ask, answer: given } = checkObject(requestNode, body, problems) as SetupRequest;
    if (problems.length > 0) return refusal(400, problems.join("; "));
    if (stop === true) this.#askToStop();
    else if (ask === undefined && given === undefined) {
      if (this.#helper !== undefined) return refusal(409, "another setup is under way: go on with that one, or stop it");
      this.#begin();
    } else {
      if (this.#helper?.writable !== true || ask === undefined || this.#asked !== ask) {
        return refusal(409, "that question is over: GET /setup has the present one");
      }
      this.#helper.write(`${JSON.stringify({ ask, answer: given ?? "" })}\n`);
    }
    return this.view();
  }

  /** A setup that has not been answered `yes` leaves everything as it was. */
  stop(): void {
    const helper = this.#helper;
    // An end that is still to come is reported to nobody.
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
    this.#messageBytes = 0;
    this.#options.log.process("info", "setup was begun from the status page");
    const helper = connect(this.#options.socket);
    this.#helper = helper;
    this.#endIn(setupMsMax);
    const lines = new LineSplitter();
    helper.on("data", (bytes) => {
      lines.push(bytes, (line) => {
        if (this.#helper === helper) this.#heard(line);
      });
    });
    helper.on("error", (error) => {
      const start = "systemctl start posline-setup.socket, or run sudo posline setup";
      if (this.#helper === helper) {
        this.#fail(`${this.#options.socket} can't be used (${codeOf(error) ?? messageOf(error)}): ${start}`);
      }
    });
    helper.on("close", () => {
      if (this.#helper !== helper) return;
      if (this.#hasEnded) this.#ended();
      else this.#fail("it ended before it said how: look at the file, then sudo posline setup");
    });
  }

  /** The setup has the last word: whether anything was written, only it knows. */
  #askToStop(): void {
    if (this.#helper === undefined) return;
    this.#helper.end();
    this.#endIn(stopMsMax);
  }

  #endIn(ms: number): void {
    const now = nowMs();
    this.#limit.set(now + ms, now);
  }

  #heard({ bytes, omittedBytes }: RawLine): void {
    this.#messageBytes += bytes.length + omittedBytes;
    const message = parseObject(bytes.toString());
    if (message === undefined || omittedBytes > 0 || this.#messageBytes > messageBytesMax) {
      this.#fail("it says what can't be shown here: run sudo posline setup");
    } else this.#messages.push(message);
  }

  get #hasEnded(): boolean {
    const last = this.#messages.at(-1);
    return last?.["end"] !== undefined || last?.["error"] !== undefined;
  }

  #fail(why: string): void {
    this.#messages.push({ error: `Cannot set up: ${why}` });
    this.#ended();
  }

  #ended(): void {
    const { end, error } = this.#messages.at(-1) ?? {};
    if (typeof error === "string") this.#options.log.process("warn", error);
    else this.#options.log.process("info", `setup from the status page ended: ${end}`);
    this.stop();
  }
}

const refusal = (status: number, why: string) => jsonAnswer(status, { error: `Cannot set up: ${why}` });
