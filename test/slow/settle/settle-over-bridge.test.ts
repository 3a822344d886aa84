import { test } from "node:test";
import { type Followed, followed } from "../../settle/followed.ts";
import { assertSettles, type Mishap, mishapsOf } from "../../settle/settle-matrix.ts";
import { Terminal } from "../../settle/terminal.ts";
import { httpWorld } from "../../settle/worlds.ts";

/**
 * Tests src/settle/settle.ts.
 *
 * * The matrix over HTTP and a bridge: client, HttpListener, Line, a line in memory, LineListener, Emulator. Sockets live in real
 * time, which is why worlds live side by side and time-outs are short; but only where the answer is lost in any case, so that a
 * machine that is slow can change no result.
 */

/** Milliseconds that the bridge waits for an answer that is lost. */
const shortMs = 500;

/** Worlds at one time: most of the time each waits. */
const worldsMax = 40;

const short: readonly Mishap["name"][] = ["no-answer", "late", "after-next", "corrupt", "truncated", "wrong-length"];

async function cell(operation: Followed, mishap: Mishap): Promise<void> {
  const replyTimeoutMs = short.includes(mishap.name) ? shortMs : undefined;
  const world = await httpWorld({ service: operation.service, terminal: new Terminal(), replyTimeoutMs });
  try {
    await assertSettles(world, operation, mishap, 50);
  } finally {
    await world.end();
  }
}

/** All cells, so many at a time, begun with the first test; each test waits for its own. */
let running: ReadonlyMap<Followed, readonly Promise<void>[]> | undefined;

function begin(): ReadonlyMap<Followed, readonly Promise<void>[]> {
  const lanes = Array.from({ length: worldsMax }, () => Promise.resolve());
  let count = 0;
  const run = (operation: Followed, mishap: Mishap) => {
    const lane = count++ % worldsMax;
    const done = (lanes[lane] ?? Promise.resolve()).then(() => cell(operation, mishap));
    lanes[lane] = done.catch(() => {});
    return done;
  };
  const cells = followed.map(
    (operation) => [operation, mishapsOf(operation, 3 * shortMs).map((mishap) => run(operation, mishap))] as const,
  );
  return new Map(cells);
}

for (const operation of followed) {
  test(`settle() of ${operation.service} ${operation.name} over HTTP and a bridge tells what the emulator recorded`, async () => {
    running ??= begin();
    await Promise.all(running.get(operation) ?? []);
  });
}
