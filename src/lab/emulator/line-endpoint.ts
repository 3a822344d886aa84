import { contracts } from "../../contract/contracts.ts";
import type { Call, Handler, Reply } from "../../core/call.ts";
import type { Presence } from "../../core/presence.ts";
import type { Crc16 } from "../../wire/crc16.ts";
import type { Emulator } from "./emulator.ts";
import { type FrameFault, type FrameStep, frameFaultSteps, withReservedCrc } from "./faults/frame-faults.ts";

/** The emulator on a line: the fault of an answer is applied to its frame. */

/** The emulator at the end of one line. */
export interface LineEndpoint {
  readonly handler: Handler;
  /**
   * The steps in place of a frame that is written to this line; undefined: the frame as it is. An answer is known again by its payload,
   * which is framed without being copied, so its fault can hit no other frame: neither an answer that the listener gives by itself, nor one
   * that comes after a lost opening.
   */
  readonly stepsFor: (frame: readonly Buffer[]) => readonly FrameStep[] | undefined;
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
