import type { LineConfig } from "../../config/config.ts";
import { contractOnLine } from "../../contract/contracts.ts";
import type { Log } from "../../core/log.ts";
import { memoryTransport } from "../../device/memory-transport.ts";
import type { OpenTransport } from "../../device/transport.ts";
import { msPerByte } from "../../device/transport.ts";
import { LineListener } from "../../line/listener.ts";
import { discardFields } from "../../process/line-report.ts";
import type { Served } from "../../process/served.ts";
import type { Emulation } from "./emulation.ts";
import { faultyTransport } from "./faults/faulty-transport.ts";

export interface EmulatedLineOptions {
  readonly name: string;
  readonly config: LineConfig;
  readonly served: readonly Served[];
  readonly emulation: Emulation;
  readonly log: Log;
}

/**
 * A line in memory with the emulator on its far end: the same frames at the same pace as on a wire, with the emulator's faults
 * injected.
 */
export function emulatedLine(options: EmulatedLineOptions): { readonly near: OpenTransport; readonly far: LineListener } {
  const { name, config, log } = options;
  const pace = msPerByte(config);
  const { near, far, unplug } = memoryTransport(pace);
  const { handler, stepsFor } = options.emulation.onLine(config.crc16, options.served);
  const listener = new LineListener({
    config,
    open: faultyTransport({ open: far, stepsFor, msPerByte: pace, unplug }),
    services: options.served.map(({ service, config: each }) => ({ contract: contractOnLine(each), service, handler })),
    report: {
      discard: (discard) => log.line("warn", "the emulator discarded bytes", { line: name, ...discardFields(discard) }),
      state: () => {},
    },
  });
  listener.start();
  return { near, far: listener };
}
