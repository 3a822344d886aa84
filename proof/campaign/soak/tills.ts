import { Agent, type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { signOf } from "../../../src/envelope/sign.ts";
import type { Random } from "../fuzz/random.ts";
import type { Box, LineName } from "./box.ts";

/** Who uses the box of a soak: tills at full pace, each in its own way, and what goes wrong around them every few seconds. */

/** The longest that an answer may take, in milliseconds: a place in the queue, the timeout, and the following of 10 s. */
const answerMsMax = 60_000;

const outcomes: readonly unknown[] = ["answered", "not-sent", "unknown"];

/** Amounts that let the emulator's answer go wrong on the wire: never, late, after the next request, broken, in pieces, with noise, twice. */
const faultyAmounts = [131, 132, 133, 134, 135, 136, 137, 138, 141];

type Answered = { readonly status: number; readonly outcome: unknown; readonly text: string };

export class Tills {
  answered = 0;
  notSent = 0;
  unknown = 0;
  left = 0;
  faults = 0;
  /** What no till should ever see. */
  readonly wrong: string[] = [];
  readonly #box: Box;
  readonly #random: Random;
  /** Idle for less long than posline keeps a connection (5 s), as client.md asks: otherwise a request may meet its end. */
  readonly #agent = new Agent({ keepAlive: true, timeout: 4_000 });
  readonly #faultyNext: number[] = [];
  readonly #stop = new AbortController();
  #keys = 0;

  constructor(box: Box, random: Random) {
    this.#box = box;
    this.#random = random;
  }

  /** Runs all of them until `stop`. */
  async run(): Promise<void> {
    const { bank, bank2, fiscal, qr } = this.#box.ports();
    const each = [
      ...[bank, bank, bank2].map((port) => () => this.#plainSale(port)),
      ...[bank, bank2].map((port) => () => this.#followedSale(port)),
      ...[bank, bank2].map((port) => () => this.#doubleClick(port)),
      () => this.#leaves(bank2),
      () => this.#reads(fiscal, qr),
    ];
    await Promise.all([...each.map((one) => this.#again(one)), this.#again(() => this.#faultAfterAWhile())]);
    this.#agent.destroy();
  }

  stop(): void {
    this.#stop.abort();
  }

  async #again(one: () => Promise<unknown>): Promise<void> {
    while (!this.#stop.signal.aborted && !this.#box.hasEnded) await one();
  }

  #sale(): string {
    const amount = this.#faultyNext.pop() ?? this.#random.pick([100, 100, 100, 120, 161]);
    return JSON.stringify({ pay_id: `K-${++this.#keys}`, amount, currency_name: "EUR" });
  }

  async #plainSale(port: number): Promise<void> {
    const body = this.#sale();
    const { outcome } = await this.#ask(port, "/sale", body);
    // It looks what became of it, as the contract asks.
    if (outcome !== "not-sent") await this.#ask(port, "/check", JSON.stringify({ pay_id: JSON.parse(body).pay_id }));
    else await this.#pause();
  }

  async #followedSale(port: number): Promise<void> {
    const { outcome } = await this.#ask(port, "/sale", this.#sale(), { Prefer: "wait=10" });
    if (outcome === "not-sent") await this.#pause();
  }

  /** The same twice at once: both are given the same answer, or one is refused unsent. */
  async #doubleClick(port: number): Promise<void> {
    const body = this.#sale();
    const headers = { Prefer: "wait=10" };
    const [one, other] = await Promise.all([this.#ask(port, "/sale", body, headers), this.#ask(port, "/sale", body, headers)]);
    const isSame = one.text === other.text || [one.outcome, other.outcome].some((outcome) => outcome !== "answered");
    if (!isSame) this.wrong.push(`a double click was answered ${one.text} and ${other.text}`);
    if (one.outcome === "not-sent") await this.#pause();
  }

  async #leaves(port: number): Promise<void> {
    await this.#ask(port, "/sale", this.#sale(), {}, 1 + this.#random.below(20));
    await sleep(50);
  }

  async #reads(fiscal: number, qr: number): Promise<void> {
    await this.#ask(fiscal, "/check_shift", `data=e30=&sign=${encodeURIComponent(signOf("e30=", "MERCHANT-1"))}`);
    await this.#ask(qr, "/check_connection", "{}");
  }

  #pause(): Promise<void> {
    return sleep(20);
  }

  async #faultAfterAWhile(): Promise<void> {
    await sleep(1_000 + this.#random.below(3_000), undefined, { signal: this.#stop.signal }).catch(() => {});
    if (this.#stop.signal.aborted) return;
    this.faults++;
    const line: LineName = this.#random.pick(["till", "bar"]);
    switch (this.#random.below(6)) {
      case 0:
        this.#box.unplug(line);
        await sleep(100 + this.#random.below(500));
        return this.#box.plug(line);
      case 1:
        return this.#box.reload();
      default:
        this.#faultyNext.push(this.#random.pick(faultyAmounts));
    }
  }

  /** @param leavesMs After how many milliseconds the caller hangs up; it stays when left out. */
  #ask(port: number, path: string, body: string, headers: Record<string, string> = {}, leavesMs?: number): Promise<Answered> {
    return new Promise((resolve) => {
      const none = { status: 0, outcome: undefined, text: "" };
      const limit = setTimeout(() => {
        this.wrong.push(`${path} was not answered within ${answerMsMax} ms`);
        asking.destroy();
      }, answerMsMax);
      const leaving = leavesMs === undefined ? undefined : setTimeout(() => asking.destroy(), leavesMs);
      const end = (answer: Answered) => {
        clearTimeout(limit);
        clearTimeout(leaving);
        resolve(answer);
      };
      const agent = leavesMs === undefined ? this.#agent : false;
      const options = { host: "127.0.0.1", port, path, method: "POST", headers, agent } as const;
      const asking: ClientRequest = request(options, (response) => {
        const pieces: Buffer[] = [];
        response.on("data", (piece: Buffer) => pieces.push(piece));
        response.on("error", () => end(none));
        response.on("end", () => {
          const outcome = response.headers["x-posline-outcome"];
          end(this.#counted(path, { status: response.statusCode ?? 0, outcome, text: Buffer.concat(pieces).toString() }));
        });
      });
      asking.on("error", (error) => {
        if (leavesMs !== undefined) this.left++;
        else if (!this.#stop.signal.aborted) this.wrong.push(`${path}: ${error.message}`);
        end(none);
      });
      asking.end(body);
    });
  }

  #counted(path: string, answer: Answered): Answered {
    if (!outcomes.includes(answer.outcome))
      this.wrong.push(`${path} was answered ${answer.status} with outcome ${answer.outcome}`);
    else if (answer.outcome === "answered") this.answered++;
    else if (answer.outcome === "not-sent") this.notSent++;
    else this.unknown++;
    return answer;
  }
}
