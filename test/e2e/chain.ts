import { join } from "node:path";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { nullModem } from "../support/till.ts";

/** The longest way that a call can take: till → HTTP → bridge → tty → gateway → HTTP → service. */
export interface Chain {
  readonly bridge: BridgeProcess;
  /** Stops bridge and gateway, and leaves nothing behind; the services are their maker's to stop. */
  end(): Promise<void>;
}

/** Starts bridge and gateway, each a process of its own with a real tty between them, before the services at these URLs. */
export async function startedChain(merchantId: string, urlOf: (service: ContractName) => string): Promise<Chain> {
  const folder = scratchFolder();
  const [near, far] = [join(folder.path, "near"), join(folder.path, "far")];
  const cable = nullModem(near, far);
  const upstreams = contractNames.flatMap((name) => [`--upstream-${name}`, urlOf(name)]);
  const gateway = new PoslineProcess(["gateway", "--line", far, ...upstreams]);
  await gateway.logged((line) => line["state"] === "open", "the gateway's line to open");
  const bridge = await startedBridge({
    lines: { till: { path: near } },
    services: { fiscal: { line: "till", merchantId }, bank: { line: "till", bodyBytesMax: 1_048_576 }, qr: { line: "till" } },
  });
  return {
    bridge,
    end: async () => {
      await bridge.stop();
      await gateway.ended("SIGTERM");
      cable.unplug();
      folder.remove();
    },
  };
}
