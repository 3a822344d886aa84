import { type LineConfig, secretsIn } from "../config/config.ts";
import { contractOnLine } from "../contract/contracts.ts";
import { type ContractService, lineService } from "../line/caller.ts";
import { Line, type LineObserve, type LineReport } from "../line/line.ts";
import type { LineTransport, OnLine, Place } from "../process/line-set.ts";
import type { SharedLine } from "../process/served.ts";
import { owingAmong } from "../recovery/owed-calls.ts";

/** A line as its watchers know it. */
export interface WatchedLine {
  readonly name: string;
  readonly config: LineConfig;
  readonly services: readonly ContractService[];
  /** What nobody who watches it may see: the merchants' ids and the keys of its services. */
  readonly secrets: readonly string[];
}

/** Who watches what happens on lines. */
export interface LineWatcher {
  /** A line begins; one of the same name may have been before it. */
  watch(line: WatchedLine): LineObserve;
}

/** All who watch a line as one; undefined where nobody does. */
function observedBy(watchers: readonly LineWatcher[], line: WatchedLine): LineObserve | undefined {
  const [first, ...others] = watchers.map((each) => each.watch(line));
  if (first === undefined || others.length === 0) return first;
  const all = [first, ...others];
  return (event, effects, now, engine) => {
    for (const observe of all) observe(event, effects, now, engine);
  };
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
  watchers: readonly LineWatcher[],
): BridgeLine {
  const quiet = config.recovery === "quiet";
  const services = served.map(({ service, config: each }) => {
    const { merchantId, replyBytesMax } = each;
    return lineService(contractOnLine(each), { service, crc16: config.crc16, quiet, merchantId, replyBytesMax });
  });
  const secrets = served.flatMap(({ config: settings }) => secretsIn(settings));
  const report: LineReport = {
    ...told,
    state: (state, reason) => {
      if (place.isCurrent) told.state(state, reason);
    },
  };
  const line = new Line({
    name,
    config,
    services,
    open: place.open(transport.open),
    inherited: () => owingAmong(services, place.owing),
    report,
    observe: observedBy(watchers, { name, config, services, secrets }),
  });
  return {
    line,
    get lastDevice() {
      return line.lastDevice;
    },
    get owed() {
      const { owing } = line;
      if (owing === undefined) return undefined;
      const isOwing = ({ service }: ContractService) => owing.includes(service);
      const contractsOf = (those: typeof services) => those.map(({ contract }) => contract);
      return { served: contractsOf(services), owing: contractsOf(services.filter(isOwing)) };
    },
    start: () => line.start(),
    stop: async (why, graceMs) => {
      await line.stop(graceMs, why);
      await transport.end?.();
    },
  };
}
