import type { OperationLog, OperationLogEntry } from "../contract/operation-log.ts";
import { nowMs } from "../core/clock.ts";
import { leavingsRead } from "../core/loop-turns.ts";
import type { Standstill } from "./standstill.ts";

/** Milliseconds between two heartbeats: no till gives a payment up in less than the two seconds that a late one takes to be noticed. */
export const leavingBeatMs = 1_000;

const unrecorded: OperationLogEntry = { sent: async () => {}, ended: async () => {} };

/**
 * The journal of money as a bridge's lines use it, also where none is kept: if this process stood still, each till has left whose connection
 * had ended by then before a call is sent, so that nothing is carried out for one that gave up meanwhile.
 */
export function leavingsFirst(journal: OperationLog | undefined, standstill: Standstill): OperationLog {
  return {
    refuseCopy: (call, route) => journal?.refuseCopy(call, route),
    begin(call, route, device) {
      const entry = journal?.begin(call, route, device) ?? unrecorded;
      return {
        sent: async () => {
          await entry.sent();
          if (standstill.isLate(nowMs())) await leavingsRead();
        },
        ended: (ending) => entry.ended(ending),
      };
    },
  };
}
