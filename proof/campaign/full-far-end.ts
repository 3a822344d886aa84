import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { FakeDevice, frame } from "../../test/support/fake-device.ts";
import type { VirtualTime } from "../../test/support/virtual-time.ts";

/** The far end of a line in the full worlds: a device, and what serves the contracts behind it, which answers in order. */

/** What serves one contract. */
type Serving = { readonly contract: ContractName; take(framing: Framing, text: string): void };

export class FullFarEnd {
  device = this.#newDevice();
  readonly #time: VirtualTime;
  readonly #serving: Serving[] = [];
  #freeMs = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  serve(serving: Serving): void {
    this.#serving.push(serving);
  }

  /** Another device, for the next process. */
  renew(): void {
    this.device = this.#newDevice();
  }

  /** Behind what it still has to answer. */
  answer(framing: Framing, text: string, delayMs: number, isCorrupt: boolean): void {
    this.#freeMs = Math.max(this.#freeMs, this.#time.nowMs) + delayMs;
    this.#time.after(this.#freeMs - this.#time.nowMs, () => {
      const bytes = frame(framing, text);
      if (isCorrupt) bytes.writeUInt8(bytes.readUInt8(bytes.length - 4) ^ 0x41, bytes.length - 4);
      this.device.send(bytes);
    });
  }

  #newDevice(): FakeDevice {
    return new FakeDevice((framing, text) => {
      const contract = contractOf(framing, text);
      const serving = this.#serving.find((each) => each.contract === contract);
      if (serving === undefined) throw new Error(`no terminal for ${text}`);
      serving.take(framing, text);
    });
  }
}

/** By what a terminal knows whose a request is. */
function contractOf(framing: Framing, text: string): ContractName {
  if (framing === "stx") return "fiscal";
  return text.startsWith(contracts.qr.linePrefix) ? "qr" : "bank";
}
