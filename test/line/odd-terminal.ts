import assert from "node:assert/strict";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { lineService } from "../../src/line/caller.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { frame } from "../support/fake-device.ts";
import { questionReply, type SecondKind } from "../support/terminal.ts";
import { configOf, idOf, merchantId, requestFor } from "./lines.ts";
import { SimulatedDevice, SimulatedLine } from "./simulated-line.ts";
import { Timeline } from "./timeline.ts";

/**
 * A line in simulated time, with a terminal that answers every request, one after the other, if wrongly, late, or not while it is off.
 */
export class OddTerminal {
  readonly time = new Timeline();
  readonly line: SimulatedLine;
  /** What these services answer to their probes: a frame's text, bytes as they are, or nothing. */
  readonly odd = new Map<ContractName, string | Buffer | undefined>();
  /** What it does with the second question. */
  second: SecondKind = "answered";
  isOn = true;
  /** What a call is answered; undefined: nothing. */
  onCall: (id: string) => string | undefined = (id) => `{"status":"error","code":-29,"id":"${id}"}`;
  /** A question of posline's own came to this service. */
  onQuestion: (service: ContractName) => unknown = () => {};
  answerMs = () => 5;
  /** How long the next answer takes, where not as long as others. */
  nextMs: number | undefined;
  /** What comes right behind each answer. */
  behind: Buffer = Buffer.alloc(0);
  /** After how many milliseconds that comes; 0: in the same read. */
  behindMs = 0;
  /** Whether the answer to a question of posline's own comes twice. */
  isTwice: () => boolean = () => false;
  /** Milliseconds that the kernel takes to accept the next write, where not at once. */
  acceptsMs = 0;
  /** How many requests more must come before an answer goes out. */
  lag = 0;
  readonly #held: (() => void)[] = [];
  probes = 0;
  readonly #device: SimulatedDevice;
  #freeMs = 0;

  constructor(services: readonly ContractName[], lateReplyMs = 30_000, isSigned = true, quiet = false) {
    const rules = { crc16: "arc", quiet, merchantId: isSigned ? merchantId : undefined } as const;
    const device: SimulatedDevice = new SimulatedDevice(this.time, (framing, text) => {
      const answer = this.isOn ? this.#answerTo(framing, text) : undefined;
      if (answer === undefined) return;
      this.#freeMs = Math.max(this.time.now, this.#freeMs) + (this.nextMs ?? this.answerMs());
      this.nextMs = undefined;
      const once = typeof answer === "string" ? frame(framing, answer) : answer;
      const bytes = idOf(text) === "" && this.isTwice() ? Buffer.concat([once, once]) : once;
      const answers = () => {
        if (this.behindMs === 0) device.send(Buffer.concat([bytes, this.behind]));
        else {
          device.send(bytes);
          this.time.after(this.behindMs, () => device.send(this.behind));
        }
      };
      this.#held.push(answers);
      if (this.#held.length > this.lag) this.time.after(this.#freeMs - this.time.now, () => this.#held.shift()?.());
    });
    this.#device = device;
    this.line = new SimulatedLine({
      config: configOf({ lateReplyMs }),
      services: services.map((service) => lineService(contracts[service], rules)),
      ...{ time: this.time, device, record: (_request, done) => done(undefined) },
      acceptance: () => {
        const restMs = this.acceptsMs;
        this.acceptsMs = 0;
        return restMs === 0 ? undefined : { share: 0, restMs };
      },
    });
    this.line.start();
  }

  /** Bytes come by themselves. */
  send(bytes: Buffer): void {
    this.#device.send(bytes);
  }

  /** It is switched off for so long; meanwhile it hears nothing. */
  isOffFor(ms: number): void {
    this.isOn = false;
    this.time.advance(ms);
    this.isOn = true;
  }

  /** Answers nothing for so long, and then all that it was asked. */
  hang(ms: number): void {
    this.#freeMs = this.time.now + ms;
  }

  /** Is off for ten hours, and on again for ten minutes. */
  spendNight(): void {
    this.time.advance(120_000);
    this.isOffFor(36_000_000);
    this.time.advance(600_000);
  }

  #answerTo(framing: Framing, text: string): string | Buffer | undefined {
    const id = idOf(text);
    if (id !== "") return this.onCall(id);
    const service = framing === "stx" ? "fiscal" : text.startsWith(":8887") ? "qr" : "bank";
    this.probes++;
    this.onQuestion(service);
    return this.odd.has(service) ? this.odd.get(service) : questionReply({ framing, text, number: 0 }, this.second);
  }

  /** Proves all, and then loses a call of this service while its probes are answered so. */
  loseCall(service: ContractName, odd: string | Buffer): this {
    assert.ok(this.time.until(() => this.line.state === "idle"));
    this.odd.set(service, odd);
    this.onCall = (id) => (id === "LOST" ? undefined : `{"status":"success","id":"${id}"}`);
    this.line.call(requestFor("LOST", { service, replyTimeoutMs: 4_000 }), () => {});
    assert.ok(this.time.until(() => this.line.state === "recovering"));
    return this;
  }

  /** Sells, with half a minute for it where not said otherwise. @returns the answer, or why there is none. */
  sell(id: string, ms = 30_100, more: Parameters<typeof requestFor>[1] = {}): string | undefined {
    let told: string | undefined;
    this.line.call(requestFor(id, { replyTimeoutMs: 30_000, ...more }), (ending) => {
      told = ending instanceof Fault ? ending.reason : Buffer.concat(ending.payload).toString();
    });
    this.time.advance(ms);
    return told;
  }

  /** After how many seconds the line is clean. */
  cleanAfterS(): number {
    const beganMs = this.time.now;
    assert.ok(
      this.time.until(() => this.line.state === "idle" && this.line.takesCalls, 3_600_000),
      "clean within an hour",
    );
    return (this.time.now - beganMs) / 1_000;
  }
}
