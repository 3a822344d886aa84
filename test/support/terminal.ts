import type { ContractName } from "../../src/core/call.ts";
import type { Question } from "../../src/recovery/standing.ts";
import type { Crc16 } from "../../src/wire/crc16.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { Pty } from "./pty.ts";

/** A request as a terminal reads it: the payload's first line or command, and all of its text. */
export interface Asked {
  readonly framing: Framing;
  readonly text: string;
  /** Counts from 1 over the terminal's life. */
  readonly number: number;
}

/** What a terminal does on a request: bytes to send, made with `reply` and its kind, or nothing. */
export type Behaviour = (asked: Asked, terminal: Terminal) => void | Promise<void>;

/** The probes' answers; any terminal gives them unless a test says otherwise. */
export const probeReplies = {
  supported: '{"status":"success","code":0,"operations":["sale","check_status"]}',
  bankSupported: '{"status":"success","data":{"operations":["sale","check"]}}',
  connection: '{"status":"success","data":{"systems":[{"name":"PALM","operations":["showqrcode","check"]}]}}',
};

/** The answer to either of posline's own questions, or undefined when the request is neither. */
export const probeReply = (asked: Asked): string | undefined => questionReply(asked, "answered");

/** The answer to a probe, of a terminal that doesn't list the second question. */
function firstReply({ framing, text }: Asked): string | undefined {
  if (framing === "stx") return text.startsWith("command=/supported_operations&") ? probeReplies.supported : undefined;
  if (text === "/supported_operations") return probeReplies.bankSupported;
  return text === ":8887/check_connection" ? probeReplies.connection : undefined;
}

/** What a terminal does with the second question: it may not list it, refuse it though it does, or not answer it. */
export type SecondKind = "not offered" | "answered" | "refused" | "ignored";

export const secondKinds: readonly SecondKind[] = ["not offered", "answered", "refused", "ignored"];

/** The answers to both questions of a terminal that lists the second one. */
export const bothReplies = {
  supported: '{"status":"success","code":0,"operations":["sale","check_status","check_shift"]}',
  bankSupported: '{"status":"success","data":{"operations":["sale","check","terminals"]}}',
  shift: '{"status":"success","code":0,"shiftID":7,"isShiftOpen":"true","shiftStatus":1}',
  terminals: '{"status":"success","data":{"terminals":[{"terminal":1,"merchant":1}]}}',
  noPayment: '{"status":"error","code":1,"message":"no such payment"}',
};

/** What such a terminal answers to each of a service's two questions. */
export const questionReplies: Readonly<Record<ContractName, Readonly<Record<Question, string>>>> = {
  bank: { probe: bothReplies.bankSupported, second: bothReplies.terminals },
  fiscal: { probe: bothReplies.supported, second: bothReplies.shift },
  qr: { probe: probeReplies.connection, second: bothReplies.noPayment },
};

/** The answer to either of posline's own questions; undefined when it has none, or the request is neither. */
export function questionReply(asked: Asked, second: SecondKind): string | undefined {
  if (isSecond(asked)) {
    if (second === "ignored") return undefined;
    if (second !== "answered") return '{"status":"error","code":-80}';
    if (asked.text.startsWith(":8887/check\n")) return bothReplies.noPayment;
    return asked.framing === "stx" ? bothReplies.shift : bothReplies.terminals;
  }
  const reply = firstReply(asked);
  if (reply === undefined || second === "not offered" || reply === probeReplies.connection) return reply;
  return asked.framing === "stx" ? bothReplies.supported : bothReplies.bankSupported;
}

function isSecond({ framing, text }: Pick<Asked, "framing" | "text">): boolean {
  if (framing === "stx") return text.startsWith("command=/check_shift&");
  return text === "/terminals" || text.startsWith(':8887/check\n{"pay_id":"posline",');
}

/**
 * A scripted terminal on a pty: reads frames, notes them, and does what the test says. One request is taken at a time, in
 * order, as the contracts have it; a request that comes while one is being answered is noted as an overlap.
 */
export class Terminal {
  readonly asked: Asked[] = [];
  /** Every byte heard, in order. */
  heardBytes = 0;
  /** The most requests that were being answered at one time. */
  inFlightMax = 0;
  behaviour: Behaviour;
  readonly link: string;
  readonly #crc16: Crc16;
  #pty: Pty | undefined;
  #inFlight = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(link: string, behaviour: Behaviour, crc16: Crc16 = "arc") {
    this.link = link;
    this.behaviour = behaviour;
    this.#crc16 = crc16;
    this.plug();
  }

  /** Plugs the device in, under the same link. */
  plug(): void {
    const decoder = createDecoder({ stx: true, length: true, crc16: this.#crc16, payloadBytesMax: 1 << 20 });
    this.#pty = new Pty((bytes) => {
      this.heardBytes += bytes.length;
      for (const item of decoder.push(bytes)) {
        if (item.kind === "frame") this.#take(item.framing, Buffer.concat(item.payload).toString());
      }
    }).linkAt(this.link);
  }

  unplug(): void {
    this.#pty?.unplug();
  }

  /** The tty that the link leads to now. */
  get device(): string {
    return this.#pty?.path ?? "";
  }

  /** The requests that weren't probes. */
  get calls(): readonly Asked[] {
    return this.asked.filter((asked) => probeReply(asked) === undefined);
  }

  /** Sends a whole, correct frame. */
  reply(framing: Framing, text: string): Promise<void> {
    return this.send(this.frame(framing, text));
  }

  frame(framing: Framing, text: string): Buffer {
    return Buffer.concat(frameOf(framing, [Buffer.from(text)], this.#crc16));
  }

  /** Sends bytes as they are. */
  async send(bytes: Uint8Array): Promise<void> {
    await this.#pty?.write(bytes);
  }

  #take(framing: Framing, text: string): void {
    const asked = { framing, text, number: this.asked.length + 1 };
    this.asked.push(asked);
    this.#inFlight++;
    this.inFlightMax = Math.max(this.inFlightMax, this.#inFlight);
    this.#turn = this.#turn.then(async () => {
      await this.behaviour(asked, this);
      this.#inFlight--;
    });
  }
}

/** Answers probes, and all else with what `answer` gives. */
export function answering(answer: (asked: Asked) => string | undefined): Behaviour {
  return async (asked, terminal) => {
    const text = probeReply(asked) ?? answer(asked);
    if (text !== undefined) await terminal.reply(asked.framing, text);
  };
}
