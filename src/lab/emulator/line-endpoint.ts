import type { LineConfig } from "../../config/config.ts";
import type { Contract } from "../../contract/contract.ts";
import { contracts } from "../../contract/contracts.ts";
import type { Call, Handler, Reply, ServiceName } from "../../core/call.ts";
import type { Presence } from "../../core/presence.ts";
import { msPerByte, type OpenTransport } from "../../device/transport.ts";
import { LineListener, type LineListenerReport } from "../../line/listener.ts";
import type { Crc16 } from "../../wire/crc16.ts";
import type { Emulator } from "./emulator.ts";
import { faultyTransport, type TransportStep } from "./faults/faulty-transport.ts";
import { type FrameFault, frameFaultSteps, withReservedCrc } from "./faults/frame-faults.ts";

/** The emulator on a line: the fault of an answer is applied to its frame. */

/** The emulator at the end of one line. */
export interface LineEndpoint {
  readonly handler: Handler;
  /**
   * The steps in place of a frame that is written to this line; undefined: the frame as it is. An answer is known again by its payload,
   * which is framed without being copied, so its fault can hit no other frame: neither an answer that the listener gives by itself, nor one
   * that comes after a lost opening.
   */
  readonly stepsFor: (frame: readonly Buffer[]) => readonly TransportStep[] | undefined;
}

/** A device at which an emulator answers. */
export interface EmulatedDeviceOptions {
  readonly emulator: Pick<Emulator, "answer">;
  readonly config: LineConfig;
  /** Opens the terminal's end. */
  readonly open: OpenTransport;
  /** Unplugs both ends for so many milliseconds; without it only the connection here is lost. */
  readonly unplug?: (ms: number) => void;
  readonly services: readonly { readonly contract: Contract; readonly service: ServiceName }[];
  /** Sees each call and its reply, such as to log them. */
  readonly watched?: (handler: Handler) => Handler;
  readonly report?: Partial<LineListenerReport>;
}

/** Lets an emulator answer at a device, with its faults injected, until the listener is stopped. */
export function listenAtDevice(options: EmulatedDeviceOptions): LineListener {
  const { emulator, config, open, unplug, services, watched = (handler) => handler, report } = options;
  const { handler, stepsFor } = lineEndpoint(emulator, config.crc16);
  const faults = { stepsFor, msPerByte: msPerByte(config), ...(unplug === undefined ? {} : { unplug }) };
  const listener = new LineListener({
    config,
    open: faultyTransport({ open, ...faults }),
    services: services.map((each) => ({ ...each, handler: watched(handler) })),
    report: { discard: () => {}, state: () => {}, ...report },
  });
  listener.start();
  return listener;
}

/** @param crc16 How the line reads CRC-16. */
export function lineEndpoint(emulator: Pick<Emulator, "answer">, crc16: Crc16): LineEndpoint {
  const faults = new WeakMap<Buffer, FrameFault>();
  const handler = async (call: Call): Promise<Reply> => {
    const { reply, fault } = emulator.answer(call, "line");
    if (fault === undefined) return reply;
    // A copy, since another's buffer may be written more than once, and this one is known by being written once.
    let payload: Buffer = Buffer.concat(reply.payload);
    if (fault.kind === "reserved-crc") payload = withReservedCrc(payload, contracts[call.contract].framing, crc16);
    // The delay comes before the writing, so that the writer isn't thought to hang; requests that come meanwhile wait, as in a terminal.
    else if (fault.kind === "late") await delay(fault.ms, call.caller);
    else faults.set(payload, fault);
    return { ...reply, payload: [payload] };
  };
  const stepsFor = (frame: readonly Buffer[]) => {
    for (const piece of frame) {
      const fault = faults.get(piece);
      if (fault !== undefined) return frameFaultSteps(fault, Buffer.concat(frame));
    }
    return undefined;
  };
  return { handler, stepsFor };
}

/** Resolves after so many milliseconds, or once nobody waits for the answer any more. */
function delay(ms: number, caller: Presence): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      caller.offLeave(end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    caller.onLeave(end);
    if (caller.gone) end();
  });
}
