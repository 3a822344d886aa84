import { contracts } from "../../src/contract/contracts.ts";
import type { Call } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { Emulator } from "../../src/emulator/emulator.ts";
import { faultyTransport } from "../../src/emulator/faults/faulty-transport.ts";
import { lineEndpoint } from "../../src/emulator/line-endpoint.ts";
import { LineListener } from "../../src/line/listener.ts";
import { configOf } from "../line/lines.ts";
import { UnpluggableTty } from "../support/unpluggable-tty.ts";

/** The emulated terminal at the other end of a bridge's tty. It outlives bridges and tills, and has the ledger. */

/** How an operation ended, as the terminal remembers it: `approved`, `declined`. */
export type LedgerEnd = string;

export class TillTerminal {
  readonly emulator = new Emulator();
  /** Keys of sales that came though the terminal had carried them out already. */
  readonly doubled: string[] = [];
  /** Called when a sale has come and was carried out, before its answer leaves. */
  onSale: () => void = () => {};
  readonly #tty: UnpluggableTty;
  readonly #listener: LineListener;

  /** @param link What the bridge opens. */
  constructor(link: string) {
    this.#tty = new UnpluggableTty(link);
    const config = configOf();
    const { handler, stepsFor } = lineEndpoint({ answer: (call) => this.#answer(call) }, config.crc16);
    this.#listener = new LineListener({
      config,
      open: faultyTransport({ open: this.#tty.open, stepsFor, msPerByte: 0, unplug: (ms) => this.#tty.unplug(ms) }),
      services: [{ contract: contracts.bank, handler }],
      report: { discard: () => {}, state: () => {} },
    });
    this.#listener.start();
  }

  /** Pulls the plug for so many milliseconds. */
  unplug(ms: number): void {
    this.#tty.unplug(ms);
  }

  /** How each sale under a key ended; one that goes on is `in progress`. */
  endsOf(key: string): readonly LedgerEnd[] {
    const { operations } = this.emulator.services.bank.saved();
    if (!Array.isArray(operations)) throw new Error("Cannot read the ledger: the emulator has another form of state");
    const own: readonly JsonObject[] = operations.filter((each) => isObject(each) && each["payId"] === key);
    return own.map(({ ended, end }) => (ended === true ? String(end) : "in progress"));
  }

  async stop(): Promise<void> {
    await this.#listener.stop();
    this.#tty.close();
  }

  #answer(call: Call) {
    if (call.route !== "/sale") return this.emulator.answer(call);
    const { pay_id: key = "" } = JSON.parse(Buffer.concat(call.body).toString());
    if (this.endsOf(key).length > 0) this.doubled.push(key);
    const answer = this.emulator.answer(call);
    this.onSale();
    return answer;
  }
}
