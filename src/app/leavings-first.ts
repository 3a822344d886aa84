import type { OperationLog, OperationLogEntry } from "../contract/operation-log.ts";
import { loopTurns } from "../core/loop-turns.ts";

/**
 * Turns of the event loop: Node takes three from a request to the end of its connection where both lie in the kernel, as after a process
 * stood still.
 */
const leavingTurns = 5;

const unrecorded: OperationLogEntry = { sent: async () => {}, ended: async () => {} };

/**
 * The journal of money as a bridge's lines use it, also where none is kept: between the record of a call and its sending each till has
 * left whose connection had ended by then, so that nothing is carried out for one that gave up while this process stood still.
 */
export function leavingsFirst(journal: OperationLog | undefined): OperationLog {
  return {
    refuseCopy: (call, route) => journal?.refuseCopy(call, route),
    begin(call, route, device) {
      const entry = journal?.begin(call, route, device) ?? unrecorded;
      return {
        sent: async () => {
          await entry.sent();
          await loopTurns(leavingTurns);
        },
        ended: (ending) => entry.ended(ending),
      };
    },
  };
}
