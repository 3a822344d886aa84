import { resolve } from "node:path";
import { type Config, ConfigError } from "../../config/config.ts";
import type { ServiceName } from "../../core/call.ts";
import { messageOf } from "../../core/error-code.ts";
import type { Log } from "../../core/log.ts";
import type { AdminRoute } from "../../http/admin-listener.ts";
import type { EmulationFlags } from "../../process/lab.ts";
import { type Served, servedBy } from "../../process/served.ts";
import { ControlApi } from "./control.ts";
import { Emulator } from "./emulator.ts";
import type { FaultChance } from "./faults/fault-plan.ts";
import { effectName } from "./faults/magic-amounts.ts";
import { parseFaultChance } from "./faults/wire-fault.ts";
import { newKeeper, readStateFile, updateStateFile, writeStateFile } from "./state-file.ts";
import { loadWorld } from "./world-file.ts";

/**
 * The emulator with its state file, its chances and its control API: one for all the lines and ports of a process. Loaded only
 * when something is emulated; in the bundle it is compiled then.
 */

export interface EmulationOptions {
  readonly flags: EmulationFlags;
  readonly services: Config["services"];
  readonly log: Log;
}

export interface Emulation {
  /** The emulator for one line, with the services that it plays there: each name is a terminal of its own. */
  onLine(served: readonly Served[]): Pick<Emulator, "answer">;
  /** The emulator for all the ports. */
  readonly onPorts: Pick<Emulator, "answer">;
  /** The control API. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
}

/**
 * Begins where the state file left off.
 * @throws ConfigError for a flag or a world that can't be used, StateFileError for such a file.
 */
export function openEmulation({ flags, services, log }: EmulationOptions): Emulation {
  const { seed, plainAmounts = false } = flags;
  const chances = chancesOf(flags);
  const world = loadWorld(flags.world);
  const state = flags.state === undefined ? undefined : resolve(flags.state);
  const keeper = newKeeper();
  const keep = () => {
    if (state === undefined) return;
    try {
      updateStateFile(state, emulator, keeper);
    } catch (error) {
      // The terminal that is played has done it, so the answer is true.
      log.process("error", "the emulator's state could not be saved", { path: state, error: messageOf(error) });
    }
  };
  const emulator = new Emulator({
    plainAmounts,
    chances,
    world,
    changed: keep,
    ...(seed === undefined ? {} : { seed }),
  });
  const reachable = new Set<ServiceName>();
  const play = (served: readonly Served[]) => {
    for (const { service, config } of served) {
      emulator.play(service, config);
      reachable.add(service);
    }
  };
  play(servedBy({ services }));
  if (state !== undefined) {
    readStateFile(state, emulator);
    // A folder that can't be written must be reported now, and not at the first sale.
    writeStateFile(state, emulator, keeper);
  }
  const control = new ControlApi(emulator, { plainAmounts, changed: keep, reachable: () => [...reachable] });
  const answering: Pick<Emulator, "answer"> = {
    answer: (call, over) => {
      const answered = emulator.answer(call, over);
      const { fault } = answered;
      if (fault !== undefined)
        log.process("info", `emulator: fault "${effectName({ fault })}" applied to this answer`, { service: call.service });
      return answered;
    },
  };
  return {
    onLine: (served) => {
      // A reload may have brought it.
      play(served);
      return answering;
    },
    onPorts: answering,
    routes: { "GET /emulator": () => control.view(), "POST /emulator": (body) => control.change(body) },
  };
}

/** The generator takes 32 bits. */
const seedMax = 0xffff_ffff;

function chancesOf({ state, seed, fault = [] }: EmulationFlags): readonly FaultChance[] {
  const problems: string[] = [];
  if (state === "") problems.push("--state: must not be empty: name a file");
  if (seed !== undefined && !(Number.isInteger(seed) && seed >= 0 && seed <= seedMax)) {
    problems.push(`--seed: must be a whole number from 0 to ${seedMax}, not ${seed}`);
  }
  const chances = fault.flatMap((text) => {
    try {
      return [parseFaultChance(text)];
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push(`--fault: ${error.message}`);
      return [];
    }
  });
  // A little more than 1, as numbers are added, is 1.
  if (chances.reduce((sum, { share }) => sum + share, 0) > 1 + 1e-9) problems.push("--fault: the shares add up to more than 1");
  if (problems.length > 0) throw new ConfigError(problems);
  return chances;
}
