import { spawn, spawnSync } from "node:child_process";
import { freePorts } from "./free-port.ts";
import { closeAndRun } from "./posline-process.ts";

/** A program of Debian's that offers a tty over TCP, as ser2net or socat on another box do. */
export type RelayProgram = keyof typeof argumentsOf;

export interface RelayOptions {
  /** Whether a new connection takes the place of the one that stands. Only ser2net's affair. */
  readonly kicksOldUser?: boolean;
  /** What stands before `tcp` in ser2net's accepter: `telnet`, `telnet(rfc2217)`. */
  readonly over?: string;
}

const argumentsOf = {
  ser2net: (tty: string, port: number, { kicksOldUser = false, over }: RelayOptions) => [
    "-n",
    "-u",
    "-Y",
    [
      "connection: &c",
      `  accepter: ${over === undefined ? "" : `${over},`}tcp,::1,${port}`,
      `  connector: serialdev,${tty},115200n81,local`,
      ...(kicksOldUser ? ["  options:", "    kickolduser: true"] : []),
    ].join("#"),
  ],
  socat: (tty: string, port: number) => [`TCP6-LISTEN:${port},bind=[::1],reuseaddr,fork,max-children=1`, `FILE:${tty},rawer`],
} as const;

/** Why tests with a program are skipped; false if it is there. */
export function absent(program: RelayProgram): string | false {
  return spawnSync("which", [program]).status === 0 ? false : `${program} isn't installed`;
}

export interface Relay {
  readonly port: number;
  /** The line's path that leads to the tty. */
  readonly path: string;
  end(): void;
}

/** Starts one, which listens a moment later. */
export async function startRelay(program: RelayProgram, tty: string, options: RelayOptions = {}): Promise<Relay> {
  const [port = 0] = await freePorts(1);
  const args = ["-c", closeAndRun, "bash", program, ...argumentsOf[program](tty, port, options)];
  const child = spawn("bash", args, { stdio: "ignore" });
  return { port, path: `tcp:[::1]:${port}`, end: () => child.kill("SIGKILL") };
}
