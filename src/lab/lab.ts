import type { Config } from "../config/config.ts";
import type { Command } from "../core/command.ts";
import type { Log } from "../core/log.ts";
import type { EmulatedLines, EmulationFlags } from "../process/lab.ts";
import { certifyCommand } from "./cli/certify.ts";
import { emulateCommand } from "./cli/emulate.ts";
import { openApiCommand } from "./cli/openapi.ts";
import { rehearseCommand } from "./cli/rehearse.ts";
import { replayCommand } from "./cli/replay.ts";

export { adminDocument, serviceDocument } from "./openapi/documents.ts";

/** What the bridge has of the lab (`process/lab.ts`). Each part is loaded with its first use. */

export const labCommands: readonly Command[] = [emulateCommand, rehearseCommand, certifyCommand, openApiCommand, replayCommand];

export async function emulatedLines(flags: EmulationFlags, config: Config, log: Log): Promise<EmulatedLines> {
  return (await import("./emulator/emulated-lines.ts")).emulatedLines(flags, config, log);
}
