import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { runSetup, type SetupArguments } from "../../src/cli/setup.ts";
import { type JsonStreams, runSetupJson } from "../../src/cli/setup-json.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { serialPort } from "../../src/device/serial-port.ts";
import { textOf } from "../../src/envelope/json.ts";
import { toLine } from "../../src/envelope/request.ts";
import { type SetupEnd, type SetupPlaces, setUp } from "../../src/setup/setup.ts";
import type { Crc16 } from "../../src/wire/crc16.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { type Adapter, Box } from "../support/box.ts";
import { Pty } from "../support/pty.ts";
import { type Asked, probeReply } from "../support/terminal.ts";
import { sampledAt } from "../support/wrong-speed.ts";

/** A box on which `posline setup` runs: sysfs and device nodes in a folder, a terminal on a pty, and a person who answers. */

const folder = mkdtempSync(join(tmpdir(), "posline-setup-"));
after(() => rmSync(folder, { recursive: true }));

export const merchantId = "SHOP-77";

/** The terminal as it is set. */
export interface TerminalSetting {
  readonly services: readonly ContractName[];
  readonly baudRate: number;
  readonly crc16: Crc16;
  /** At a wrong speed something is heard all the same. */
  readonly babbles?: boolean;
}

/** The end of each request of that merchant's: all have the same empty data. */
const [, sign = ""] = textOf(toLine(contracts.fiscal, "/supported_operations", [], merchantId)).split("&sign=");

/** The answer of such a terminal to a question of posline's; undefined if it has none. */
export function replyTo(
  asked: Pick<Asked, "framing" | "text">,
  { services }: Pick<TerminalSetting, "services">,
): string | undefined {
  const { framing, text } = asked;
  const service = framing === "stx" ? "fiscal" : text.startsWith(":8887/") ? "qr" : "bank";
  if (!services.includes(service)) return undefined;
  if (service === "fiscal" && !text.endsWith(`&sign=${sign}`)) return '{"status":"error","code":1,"message":"signature"}';
  return probeReply({ ...asked, number: 1 });
}

/** A terminal on the network. */
export function networkTerminal(services: readonly ContractName[]): { path(): Promise<string>; close(): void } {
  const server = createServer((socket) => {
    const decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      for (const item of decoder.push(bytes)) {
        if (item.kind !== "frame") continue;
        const reply = replyTo({ framing: item.framing, text: Buffer.concat(item.payload).toString() }, { services });
        if (reply !== undefined) socket.write(Buffer.concat(frameOf(item.framing, [Buffer.from(reply)], "arc")));
      }
    });
  }).listen(0, "127.0.0.1");
  server.unref();
  return {
    path: async () => {
      if (!server.listening) await once(server, "listening");
      // A server that listens on TCP has an address of that kind.
      return `tcp:127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    close: () => server.close(),
  };
}

export const adapter: Adapter = { socket: "1-1.2", serialNumber: "A50285BI", ttys: [] };

export class SetupBox {
  readonly box = new Box();
  readonly file: string;
  /** The file that a setup writes. */
  readonly dropInFile: string;
  readonly said: string[] = [];
  /** What the person was asked, in order, and whether it was hidden. */
  readonly asked: string[] = [];
  /** Every request that the terminal took for whole. */
  readonly heard: string[] = [];
  readonly #pty: Pty;
  /** Commands that would change the box. */
  readonly acted: string[] = [];
  /** What a running posline says of itself; undefined: none answers. */
  status: object | undefined;
  readonly #setting: TerminalSetting;
  readonly #places: SetupPlaces;
  #baudRate = 0;

  constructor(setting: TerminalSetting, more: SetupPlaces = {}) {
    this.#setting = setting;
    const etc = join(this.box.root, "etc");
    mkdirSync(join(etc, "posline"), { recursive: true });
    this.file = join(etc, "posline", "posline.json");
    this.dropInFile = join(etc, "posline", "posline.d", "terminal.json");
    this.box.write("etc/group", "root:x:0:\n");
    // The service is installed, and its user's ids aren't looked at.
    this.box.write("etc/passwd", "posline:x\n");
    const locks = mkdtempSync(join(folder, "locks-"));
    this.#pty = new Pty((bytes) => this.#hear(bytes));
    this.#places = {
      ...this.box.places,
      etc,
      run: join(this.box.root, "run"),
      usr: join(this.box.root, "usr"),
      env: {},
      access: async () => {},
      command: async () => ({ ran: false, why: "there is no systemctl here" }),
      act: async (program, args) => {
        this.acted.push([program, ...args].join(" "));
        return { ran: true, code: 0, out: "" };
      },
      httpGet: async () => (this.status === undefined ? undefined : { status: 200, body: JSON.stringify(this.status) }),
      open: async (config) => {
        this.#baudRate = config.baudRate;
        return serialPort(config, { lockFolder: locks });
      },
      ...more,
    };
  }

  /** A write is one request, and a broken one says nothing of the next. */
  #hear(bytes: Buffer): void {
    const { baudRate, crc16, babbles = false } = this.#setting;
    const decoder = createDecoder({ stx: true, length: true, crc16, payloadBytesMax: 1 << 20 });
    for (const item of decoder.push(bytes)) {
      if (item.kind !== "frame") continue;
      const text = Buffer.concat(item.payload).toString();
      this.heard.push(text);
      const reply = replyTo({ framing: item.framing, text }, this.#setting);
      if (reply === undefined) continue;
      const frame = Buffer.concat(frameOf(item.framing, [Buffer.from(reply)], crc16));
      if (this.#baudRate === baudRate) void this.#pty.write(frame);
      else if (babbles) void this.#pty.write(sampledAt(frame, baudRate, this.#baudRate));
    }
  }

  /** Plugs the terminal's adapter in. */
  plug(): void {
    this.box.plug({ ...adapter, ttys: [{ name: "ttyUSB0", node: this.#pty.path }] });
  }

  /** A process has the device open. */
  heldBy(pid: number): void {
    const folder = join(this.box.places.proc, String(pid), "fd");
    mkdirSync(folder, { recursive: true });
    symlinkSync(this.#pty.path, join(folder, "7"));
  }

  get device(): string {
    return join(this.box.places.dev, "ttyUSB0");
  }

  get byId(): string {
    return join(this.box.places.dev, "serial/by-id/usb-0403_6001_A50285BI-if00-port0");
  }

  write(text: string): void {
    writeFileSync(this.file, text);
  }

  /** The whole text of a person's file. */
  get text(): string {
    return readFileSync(this.file, "utf8");
  }

  /** What the setup wrote; undefined if nothing. */
  get dropIn(): string | undefined {
    return existsSync(this.dropInFile) ? readFileSync(this.dropInFile, "utf8") : undefined;
  }

  /** @param answers What the person types, in order, undefined being Ctrl-D; undefined in their place: nobody is there. */
  async run(args: SetupArguments, answers: readonly (string | undefined)[] | undefined): Promise<number> {
    const typed = [...(answers ?? [])];
    const ask = (question: string, { hidden, signal }: { hidden?: true; signal?: AbortSignal } = {}) => {
      // The device is named by plugging it in, if anything is typed at all.
      if (question === "" && (typed.length === 0 || typed[0] !== undefined))
        return new Promise<string>((_, fail) => signal?.addEventListener("abort", () => fail(new Error("gone"))));
      this.asked.push(hidden === true ? `${question}(hidden)` : question);
      return Promise.resolve(typed.length === 0 ? "" : typed.shift());
    };
    return runSetup(args, {
      setUp: (options): Promise<SetupEnd> => setUp({ ...options, places: this.#places }),
      look: { unicode: false, colour: false },
      out: (text) => this.said.push(text),
      ask: answers === undefined ? undefined : ask,
    });
  }

  /** The same, with the person in another process. */
  async runJson(streams: JsonStreams): Promise<number> {
    return runSetupJson({}, (options) => setUp({ ...options, places: this.#places }), streams);
  }

  /** Waits until it was said. */
  async saying(words: RegExp): Promise<void> {
    while (!words.test(this.said.join(""))) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  remove(): void {
    this.#pty.unplug();
  }
}
