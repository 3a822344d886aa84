import { join } from "node:path";
import type { ContractName } from "../../src/core/call.ts";
import type { LineState } from "../../src/line/states.ts";
import { type BridgeProcess, scratchFolder, startedBridge } from "./bridge-process.ts";
import { type RelayProgram, startRelay } from "./relay.ts";
import { type Behaviour, Terminal } from "./terminal.ts";

/** A bridge with one line, `till`, and a scripted terminal at the other end of it. */
export type Pair = { readonly bridge: BridgeProcess; readonly terminal: Terminal };

export interface PairConfig {
  /** The line's settings, beside its path. */
  readonly line?: object;
  /** The services on the line, with their settings beside it. */
  readonly services: Readonly<Partial<Record<ContractName, object>>>;
  /** The state in which the line is waited for; idle, unless the terminal never lets it be. */
  readonly lineState?: LineState;
  /** What offers the terminal's tty over TCP; absent: the bridge opens the tty itself. */
  readonly relay?: RelayProgram;
}

/** Starts both, for a file whose tests share them; `end` undoes all of it. */
export async function startedPair(
  { line, services, lineState = "idle", relay: program }: PairConfig,
  behaviour: Behaviour,
): Promise<Pair & { end(): Promise<void> }> {
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), behaviour);
  const relay = program === undefined ? undefined : await startRelay(program, terminal.link);
  const away = () => {
    relay?.end();
    terminal.unplug();
    folder.remove();
  };
  const onTill = Object.entries(services).map(([service, settings]) => [service, { line: "till", ...settings }]);
  const config = { lines: { till: { path: relay?.path ?? terminal.link, ...line } }, services: Object.fromEntries(onTill) };
  try {
    const bridge = await startedBridge(config, { lineState });
    return {
      bridge,
      terminal,
      end: async () => {
        await bridge.stop();
        away();
      },
    };
  } catch (error) {
    away();
    throw error;
  }
}

/** Runs a test's body with both, and leaves nothing behind, however it ends. */
export async function withBridge(config: PairConfig, behaviour: Behaviour, body: (pair: Pair) => Promise<void>): Promise<void> {
  const pair = await startedPair(config, behaviour);
  try {
    await body(pair);
  } finally {
    await pair.end();
  }
}
