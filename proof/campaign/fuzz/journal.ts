import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runJournal } from "../../../src/cli/journal.ts";
import { journalFile } from "../../../src/journal/errors.ts";
import { scanRing } from "../../../src/journal/reader.ts";
import { asUnknown, joinOperations, writeRecord } from "../../../src/journal/record.ts";
import { slotBytes, textBytesMax, writeSlot } from "../../../src/journal/slot.ts";
import { openOperations } from "../../../src/operations/operations.ts";
import { crc32 } from "../../../src/wire/crc32.ts";
import { callOf, folder, routeTo, Told } from "../../../test/journal/records.ts";
import { SimDisk } from "../../../test/journal/sim-disk.ts";
import { mutated, mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/**
 * Journal files: torn slots and pages, records of any JSON under a right checksum, other rings, other files. Whatever is there is
 * read, a journal that can be opened takes new records, and those are found again.
 */

const ringSlots = 32;

/** The text of one record: as posline writes it, or any JSON. */
function recordText(random: Random, sequence: number): string {
  const timeMs = 1_795_000_000_000 + (sequence % 1_000_000);
  const sent = Math.max(0, sequence - 1 - random.size(3));
  const texts = [
    () =>
      writeRecord({
        ...{ kind: "sent", timeMs, requestId: `r-${sequence}`, service: "bank", route: "/sale", key: `K-${random.below(5)}` },
        ...{ amount: "100", digest: "0123456789abcdef", ask: { pay_id: `K-${random.below(5)}` } },
      }),
    () => writeRecord({ kind: "outcome", timeMs, sent, outcome: random.pick(["answered", "not-sent", "unknown"]) }),
    () =>
      writeRecord({ kind: "settled", timeMs, sent, digest: "0123456789abcdef", result: "approved", by: "operator", note: "x" }),
    () => writeRecord({ kind: "start", timeMs, version: "1.0.0" }),
    () => writeRecord({ kind: "probe", timeMs }),
  ];
  const text = random.pick(texts)();
  return random.chance(0.3) ? mutatedJson(random, JSON.parse(text), 0.2) : text;
}

function slotOf(random: Random, sequence: number): Buffer {
  const text = Buffer.from(random.chance(0.05) ? randomObject(random, 2) : recordText(random, sequence));
  const slots = random.chance(0.02) ? random.pick([0, 1, 7, 2 ** 32 - 1]) : ringSlots;
  const slot = writeSlot(sequence, text.toString("utf8", 0, textBytesMax).slice(0, textBytesMax / 4), slots);
  text.copy(slot, 24, 0, textBytesMax);
  slot.writeUInt16BE(random.chance(0.02) ? random.below(65_536) : Math.min(text.length, textBytesMax), 6);
  if (random.chance(0.02)) slot.writeBigUInt64BE(random.pick([0n, 2n ** 53n, 2n ** 64n - 1n]), 8);
  if (random.chance(0.02)) slot[4] = random.pick([0, 2, 255]);
  slot.writeUInt32BE(crc32(slot, 24, slotBytes, crc32(slot, 0, 20)), 20);
  if (random.chance(0.05)) random.bytes(1 + random.below(slotBytes)).copy(slot, random.below(slotBytes));
  return random.chance(0.05) ? Buffer.alloc(slotBytes, random.pick([0, 0xff])) : slot;
}

function journalBytes(random: Random): Buffer {
  if (random.chance(0.02)) return mutated(random, Buffer.from("#!/bin/sh\necho another file\n"));
  const first = random.pick([1, 5, 40, 2 ** 31, Number.MAX_SAFE_INTEGER - 60]);
  const ring = Buffer.alloc(ringSlots * slotBytes);
  for (let sequence = first, count = random.below(50); count > 0; sequence++, count--) {
    slotOf(random, sequence).copy(ring, (sequence % ringSlots) * slotBytes);
  }
  const at = random.below(ring.length);
  if (random.chance(0.1)) ring.fill(random.pick([0, 0xff]), at, Math.min(at + 4_096, ring.length));
  if (random.chance(0.05)) return ring.subarray(0, at);
  return random.chance(0.05) ? Buffer.concat([ring, random.bytes(random.below(2_000))]) : ring;
}

const scratch = mkdtempSync(join(tmpdir(), "posline-fuzz-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

const exitCodes: readonly number[] = [0, 69, 75];

const files: Target = {
  name: "journal files",
  unit: "records read",
  make: journalBytes,
  check: async (input, random) => {
    const disk = new SimDisk();
    const path = journalFile(folder);
    disk.put(path, input);
    const { records } = await scanRing(await disk.open(path), 0, Math.floor(input.length / slotBytes));
    for (const { sent } of joinOperations(records)) asUnknown(sent, "no outcome recorded");
    await assertTakesRecords(disk, random);
    const printed: string[] = [];
    writeFileSync(journalFile(scratch), input);
    const args = { folder: scratch, json: random.chance(0.5), unknown: random.chance(0.3) };
    const out = (text: string) => void printed.push(text);
    const code = await runJournal(args, { env: {}, out, err: out, again: async () => false, ask: async () => undefined });
    assert.ok(exitCodes.includes(code), `posline journal exits with ${code}`);
    return records.length;
  },
};

/** Whatever was there: what is recorded now is found by the next opening, unless the file isn't posline's. */
async function assertTakesRecords(disk: SimDisk, random: Random): Promise<void> {
  const told = new Told();
  const options = { folder, bytes: ringSlots * slotBytes, onFailure: "refuse", report: told, disk } as const;
  const journal = await openOperations(options);
  try {
    assert.ok(journal.unknownTotal >= journal.unknown().length);
    for (const listed of journal.listed) journal.togetherOf(listed);
    if (journal.state !== "ok") return;
    const entry = journal.begin(callOf(`NEW-${random.below(9)}`), routeTo());
    await entry.sent();
  } finally {
    await journal.close();
  }
  const again = await openOperations({ ...options, report: new Told() });
  try {
    assert.equal(again.state, "ok");
    assert.ok(
      again.listed.some(({ sent }) => sent.key?.startsWith("NEW-")),
      "what was recorded is not found again",
    );
  } finally {
    await again.close();
  }
}

export const journalTargets: readonly Target[] = [files];
