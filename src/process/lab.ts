import type { Config } from "../config/config.ts";
import type { Command } from "../core/command.ts";
import { exitCodes } from "../core/exit.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Log } from "../core/log.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import type { TransportOf } from "./line-set.ts";
import type { Served } from "./served.ts";

/**
 * What the bridge asks of the lab, which is what nobody needs at a counter, such as the emulator. It is loaded when somebody asks for it
 * (`cli/lab.ts`), and Debian has it in a package of its own.
 */

/** The flags of the emulator. */
export interface EmulationFlags {
  readonly world?: string | undefined;
  readonly state?: string | undefined;
  readonly seed?: number | undefined;
  /** As written: `corrupt=0.05`. */
  readonly fault?: readonly string[] | undefined;
  readonly plainAmounts?: boolean | undefined;
}

/** The emulator at the far end of each line, in memory. */
export interface EmulatedLines {
  readonly transportOf: TransportOf;
  /** Its control API. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
}

export interface Lab {
  readonly labCommands: readonly Command[];
  /** @throws ConfigError for a flag or a world that can't be used, StateFileError for such a file. */
  readonly emulatedLines: (flags: EmulationFlags, config: Config, log: Log) => Promise<EmulatedLines>;
  /** The OpenAPI documents of a service and of the admin port. */
  readonly serviceDocument: (served: Served) => Promise<JsonObject>;
  readonly adminDocument: (admin: { host: string; port: number; routes: readonly string[] }) => Promise<JsonObject>;
}

/** The lab's commands, which are known where it isn't installed as well. */
export const labCommandNames = ["emulate", "rehearse", "certify", "openapi", "replay"] as const;

/** What the bridge and the gateway load it for, beside emulated terminals. */
export const openApiDocuments = "the OpenAPI documents";

/** The lab isn't installed. */
export class LabMissing extends Error {
  readonly exitCode: number = exitCodes.unavailable;

  /** @param what It is asked for, as `posline rehearse`. */
  constructor(what: string) {
    super(`Cannot find ${what}: it is in the package posline-lab: sudo apt-get install posline-lab`);
  }
}

/**
 * Loads the lab.
 * @param what It is loaded for, as `posline rehearse`.
 * @throws LabMissing where it isn't installed.
 */
export type LoadLab = (what: string) => Promise<Lab>;
