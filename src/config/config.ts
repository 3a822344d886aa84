import type { ContractName, ServiceName } from "../core/call.ts";
import { isObject } from "../core/json-object.ts";
import type { LogLevel } from "../core/log.ts";

/**
 * The resolved configuration: the shape that every other room is given.
 *
 * This room owns what may be set, its limits and its defaults, and where each value came from: defaults ← file ← drop-ins ←
 * environment ← flags. It opens no line and no port, and it refuses at the start what could only fail later: a crossed pair of clocks, two
 * services on one port, a service without a line. All problems are reported at once, each with its path and its fix, and never
 * with the value of a secret.
 */

/** A serial line, every setting resolved. */
export interface LineConfig {
  /** The device's path, or `emulatedPath`. */
  readonly path: string;
  readonly baudRate: number;
  readonly dataBits: 5 | 6 | 7 | 8;
  readonly parity: "none" | "even" | "odd";
  readonly stopBits: 1 | 2;
  readonly flowControl: "none" | "rtscts" | "xonxoff";
  /** How the line reads "CRC16-IBM" (bank and qr contracts): CRC-16/ARC, or CRC-16/UMTS. */
  readonly crc16: "arc" | "umts";
  /** How a line is proven clean after an answer stayed out: by a read-only request, or by silence alone. */
  readonly recovery: "barrier" | "quiet";
  /** Milliseconds without a byte after which a late answer is no longer expected. */
  readonly lateReplyMs: number;
  /** Milliseconds of idleness after which the terminal is asked whether it is still there; 0 asks nothing. */
  readonly idleProbeMs: number;
  /** Milliseconds after the terminal's last byte in which nothing is sent. */
  readonly pauseMs: number;
  readonly queueCallsMax: number;
  readonly queueWaitMs: number;
  /** Whether the system lowers DTR when the device is closed. */
  readonly hupcl: boolean;
  /** Modem lines to set after opening; unset leaves them to the driver. */
  readonly dtr?: boolean;
  readonly rts?: boolean;
}

/** A service on its TCP port, every setting resolved. */
export interface ServiceConfig {
  /** The contract that it speaks. */
  readonly contract: ContractName;
  /** The name of the line that leads to it. */
  readonly line: string;
  /** 0 means any free port, and can only come from the environment. */
  readonly port: number;
  readonly host: string;
  /** Milliseconds by route, for every route of the contract. */
  readonly replyTimeoutMs: Readonly<Record<string, number>>;
  readonly bodyBytesMax: number;
  /** Bytes of the largest reply that is believed; what is larger leaves the outcome unknown. */
  readonly replyBytesMax: number;
  /** What is checked of a request: its envelope, its whole schema, or nothing. */
  readonly check: "envelope" | "contract" | "none";
  /** Puts all faults of posline into HTTP 200. */
  readonly faultStatus?: 200;
  readonly allowOrigins: readonly string[];
  readonly allowHosts: readonly string[];
  /** Where `posline gateway` reaches the service: the base URL. */
  readonly upstream?: string;
  /** Qr only: the port in front of the route on the line. */
  readonly linePort?: number;
  /** Fiscal only: the value, wherever it was read. */
  readonly merchantId?: string;
  readonly merchantIdFile?: string;
  /** Bank only: the value of `X-API-Key`, wherever it was read; asked of tills, and sent to the upstream. */
  readonly apiKey?: string;
  readonly apiKeyFile?: string;
}

/** The admin port, every setting resolved. */
export interface AdminConfig {
  readonly host: string;
  /** 0 means any free port, and can only come from the environment or a flag. */
  readonly port: number;
  /** Pages of these origins may read. */
  readonly allowOrigins: readonly string[];
  readonly allowHosts: readonly string[];
  /** What each request must carry, where it is set: the value, read from `tokenFile`. */
  readonly token?: string;
  readonly tokenFile?: string;
}

/** The record of what moved money, printed or changed state. */
export interface JournalConfig {
  /** Where its file is; undefined when no folder is set, and then there is no journal. */
  readonly folder: string | undefined;
  /** Bytes of its file. */
  readonly bytes: number;
  /** While it can't be written, such requests are sent without a record, or refused. */
  readonly onFailure: "refuse" | "relay";
  /** posline asks about operations of unknown outcome by itself, learns from the answers to tills alone, or does neither. */
  readonly resolve: "ask" | "observe" | false;
}

/** The services by name, those of the contracts' own names first. */
export type ServiceConfigs = Readonly<Record<ServiceName, ServiceConfig>> & {
  readonly [Name in ContractName]?: ServiceConfig;
};

export interface Config {
  readonly lines: Readonly<Record<string, LineConfig>>;
  readonly services: ServiceConfigs;
  readonly admin?: AdminConfig;
  /** false when none is to be kept. */
  readonly journal: false | JournalConfig;
  readonly log: { readonly level: LogLevel };
}

/** The path of a line without a device, on which the emulator answers. */
export const emulatedPath = "emulated:";

/** The settings whose value no message, log or listing may show. */
export const secretKeys: ReadonlySet<string> = new Set(["merchantId", "apiKey", "token"]);

/** All secrets of the configuration. One that is a common word is hidden where that word stands, too. */
export function secretsIn(value: unknown): readonly string[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    secretKeys.has(key) && typeof each === "string" && each !== "" ? [each] : secretsIn(each),
  );
}

/** A file that an operator wrote, or a flag, can't be used. Its message lists every problem; the process exits with `exitCode`. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /**
   * EX_CONFIG of sysexits: the unit tells systemd not to restart on it. Where only flags are wrong it is EX_USAGE, as for any other
   * mistake on a command line. A problem begins with the name of what it is about, and only a flag's begins with dashes.
   */
  readonly exitCode: 64 | 78;
  readonly problems: readonly string[];

  /** @param content What the source holds: the configuration, or the emulator's world. */
  constructor(problems: readonly string[], source?: string, content: "configuration" | "world" = "configuration") {
    const isUsage = problems.length > 0 && problems.every((problem) => problem.startsWith("--"));
    const what = isUsage ? "command line" : source === undefined ? content : `${content} of ${source}`;
    const action = `Cannot use the ${what}`;
    const [only, ...others] = problems;
    super(
      others.length === 0
        ? `${action}: ${only ?? "it has a problem"}`
        : `${action}: ${problems.length} problems\n${problems.map((problem) => `  ${problem}`).join("\n")}`,
    );
    this.exitCode = isUsage ? 64 : 78;
    this.problems = problems;
  }
}
