import assert from "node:assert/strict";
import type { ForcedEffect } from "../../src/emulator/faults/fault-plan.ts";
import { parseWireFault, type WireFaultKind, wireFaultKinds } from "../../src/emulator/faults/wire-fault.ts";
import { assertTrue, type Followed, isStart } from "./followed.ts";
import { follow, type World } from "./worlds.ts";

/**
 * Each operation with each thing that can go wrong: afterwards exactly one document or transaction is there, and the till was
 * told what the emulator remembers.
 */

const key = "K-1";
const amount = 1_000;

/** What goes wrong with the answer to the operation itself. */
export interface Mishap {
  readonly name: WireFaultKind | "nothing" | "code 44" | "code 15" | "restart" | "till restarts";
  readonly course?: ForcedEffect["effect"];
  readonly befalls?: "restart" | "kill";
  /** The answer is lost, or its time is over when it comes. */
  readonly lost: boolean;
}

const harmless: readonly string[] = ["pieces", "noise", "twice", "reserved-crc"];

/** @param lateMs Milliseconds beyond the time-out of the operation. */
export function mishapsOf({ service }: Followed, lateMs: number): readonly Mishap[] {
  const wires = wireFaultKinds.map((kind): Mishap => {
    const fault = kind === "late" ? { kind, ms: lateMs } : parseWireFault(kind === "unplug" ? "unplug:300" : kind);
    return { name: kind, course: { fault }, lost: !harmless.includes(kind) };
  });
  const outcomes: readonly Mishap[] = [
    { name: "code 44", course: { outcome: { name: "slow", checks: 3 } }, lost: false },
    { name: "code 15", course: { outcome: { name: "not-printed" } }, lost: false },
  ];
  return [
    { name: "nothing", lost: false },
    ...wires,
    ...(service === "fiscal" ? outcomes : []),
    { name: "restart", befalls: "restart", lost: true },
    { name: "till restarts", befalls: "kill", lost: true },
  ];
}

/** Lives through one cell. */
export async function assertSettles(world: World, operation: Followed, mishap: Mishap, intervalMs: number): Promise<void> {
  const { terminal } = world;
  const { service, route } = operation;
  const { course, befalls, name } = mishap;
  const body = operation.body(terminal, key, amount);
  if (course !== undefined) terminal.emulator.plan.force({ service, route, effect: course });
  let befallen = befalls === undefined;
  terminal.arrived = (arrival) => {
    if (befallen || !isStart(arrival, operation, key)) return;
    befallen = true;
    // Right after it was carried out, and before its answer has arrived
    queueMicrotask(() => (befalls === "kill" ? world.kill() : world.restart()));
  };
  const settled = await follow(world, operation, body, { intervalMs, windowMs: 900_000 });
  assertTrue(operation, terminal, key, amount, settled);
  assert.equal(settled.result, expectedOf(operation, mishap), name);
  assert.equal(operation.truth(terminal, key, amount).count, 1, name);
  assert.ok(befallen && terminal.emulator.plan.forced.length === 0, `${name}: what was to go wrong never did`);
}

/**
 * Nothing can be proven where an operation can't be asked about and its answer was lost: qr's /cancel, /refund and
 * /final_confirm (qr.md, flow rule 3). All else is known in the end.
 */
function expectedOf({ service, silent }: Followed, { lost }: Mishap): string {
  if (silent && lost) return "unknown";
  return service === "fiscal" ? "closed" : "approved";
}
