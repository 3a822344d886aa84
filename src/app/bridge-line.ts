import { contracts } from "../contract/contracts.ts";
import type { Open } from "../device/transport.ts";
import { linePeer } from "../line/caller.ts";
import { Line } from "../line/line.ts";
import type { LineReport } from "../line/report.ts";
import type { OnLine, Place } from "./line-set.ts";
import type { SharedLine } from "./served.ts";

/** What a line runs over: a device, or the emulator on a far end that ends with it. */
export interface Conduit {
  readonly open: Open;
  readonly end?: () => Promise<void>;
}

/** A line of a bridge. */
export interface BridgeLine extends OnLine {
  readonly line: Line;
}

/** Makes a line with its services' peers. */
export function bridgeLine({ name, config, served }: SharedLine, place: Place, conduit: Conduit, told: LineReport): BridgeLine {
  const quiet = config.recovery === "quiet";
  const peers = served.map(({ service, config: { merchantId, replyBytesMax } }) =>
    linePeer(contracts[service], { crc16: config.crc16, quiet, merchantId, replyBytesMax }),
  );
  const report: LineReport = {
    ...told,
    state: (state, reason) => {
      if (place.isCurrent) told.state(state, reason);
    },
  };
  const line = new Line({ name, config, peers, open: place.open(conduit.open), report });
  return {
    line,
    start: () => line.start(),
    stop: async (why, graceMs) => {
      await line.stop(graceMs, why);
      await conduit.end?.();
    },
  };
}
