import { contracts } from "../contract/contracts.ts";
import type { OpenTransport } from "../device/transport.ts";
import { lineService } from "../line/caller.ts";
import type { LineReport } from "../line/line.ts";
import { Line } from "../line/line.ts";
import type { OnLine, Place } from "./line-set.ts";
import type { SharedLine } from "./served.ts";

/** What a line runs over: a device, or the emulator on a far end that ends with it. */
export interface LineTransport {
  readonly open: OpenTransport;
  readonly end?: () => Promise<void>;
}

/** A line of a bridge. */
export interface BridgeLine extends OnLine {
  readonly line: Line;
}

/** Makes a line with its services. */
export function bridgeLine(
  { name, config, served }: SharedLine,
  place: Place,
  transport: LineTransport,
  told: LineReport,
): BridgeLine {
  const quiet = config.recovery === "quiet";
  const services = served.map(({ service, config: { contract, merchantId, replyBytesMax } }) =>
    lineService(contracts[contract], { service, crc16: config.crc16, quiet, merchantId, replyBytesMax }),
  );
  const report: LineReport = {
    ...told,
    state: (state, reason) => {
      if (place.isCurrent) told.state(state, reason);
    },
  };
  const line = new Line({ name, config, services, open: place.open(transport.open), report });
  return {
    line,
    start: () => line.start(),
    stop: async (why, graceMs) => {
      await line.stop(graceMs, why);
      await transport.end?.();
    },
  };
}
