import type { Config } from "../../config/config.ts";
import { contractOnLine } from "../../contract/contracts.ts";
import type { Log } from "../../core/log.ts";
import { memoryTransport } from "../../device/memory-transport.ts";
import { msPerByte } from "../../device/transport.ts";
import type { EmulatedLines, EmulationFlags } from "../../process/lab.ts";
import { discardFields } from "../../process/line-report.ts";
import { openEmulation } from "./emulation.ts";
import { listenAtDevice } from "./line-endpoint.ts";

/**
 * Lines in memory with the emulator on their far ends: the same frames at the same pace as on a wire, with the emulator's faults
 * injected.
 * @throws ConfigError for a flag or a world that can't be used, StateFileError for such a file.
 */
export function emulatedLines(flags: EmulationFlags, { services }: Config, log: Log): EmulatedLines {
  const emulation = openEmulation({ flags, services, log });
  return {
    transportOf: ({ name, config, served }) => {
      const { near, far, unplug } = memoryTransport(msPerByte(config));
      const listener = listenAtDevice({
        emulator: emulation.onLine(served),
        config,
        open: far,
        unplug,
        services: served.map(({ service, config: each }) => ({ contract: contractOnLine(each), service })),
        report: {
          discard: (discard) => log.line("warn", "the emulator discarded bytes", { line: name, ...discardFields(discard) }),
        },
      });
      return { open: near, end: () => listener.stop() };
    },
    routes: emulation.routes,
  };
}
