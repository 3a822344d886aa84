import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { openLog } from "../../src/core/log.ts";
import { SetupRelay } from "../../src/setup/setup-relay.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { until } from "../support/until.ts";

/** Tests src/setup/setup-relay.ts before helpers that misbehave. */

interface View {
  readonly isRunning: boolean;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly error?: string;
}

/** A relay whose setup is begun, before a helper that does this with its connection. */
async function before(helper: (socket: Socket) => void, body: (relay: Relay, helped: Socket) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const socket = join(folder.path, "setup.sock");
  const server = createServer({ allowHalfOpen: true }).listen(socket);
  await once(server, "listening");
  const connected = once(server, "connection");
  const relay = new Relay(new SetupRelay({ socket, log: quiet }));
  relay.post({});
  const [helped] = await connected;
  helped.on("error", () => {});
  helper(helped);
  try {
    await body(relay, helped);
  } finally {
    relay.stop();
    helped.destroy();
    server.close();
  }
}

const quiet = openLog("silent");

class Relay {
  readonly #relay: SetupRelay;

  constructor(relay: SetupRelay) {
    this.#relay = relay;
  }

  get view(): View {
    return JSON.parse(this.#relay.view().text);
  }

  post(body: object): View & { readonly status: number } {
    const { status, text } = this.#relay.change(JSON.stringify(body));
    return { status, ...JSON.parse(text) };
  }

  stop(): void {
    this.#relay.stop();
  }

  /** Waits for the setup to be over, and gives its last message. */
  async ended(): Promise<unknown> {
    await until(() => !this.view.isRunning, "the setup to end");
    return this.view.messages.at(-1);
  }
}

const cantBeShown = { error: "Cannot set up: it says what can't be shown here: run sudo posline setup" };

for (const [what, said] of [
  ["no JSON", "Looking for a terminal\n"],
  ["no object", "[1]\n"],
  ["a line of 100 kB", `${JSON.stringify({ say: "x".repeat(100_000) })}\n`],
  ["300 kB in lines of 30", `${JSON.stringify({ say: "x".repeat(30_000) })}\n`.repeat(10)],
] as const) {
  test(`SetupRelay ends a setup that says ${what}, and says so`, () =>
    before(
      (socket) => socket.write(said),
      async (relay) => {
        assert.deepEqual(await relay.ended(), cantBeShown);
        assert.ok(JSON.stringify(relay.view).length < 300_000);
      },
    ));
}

test("SetupRelay doesn't say whether a setup wrote anything that ended without a word of it", () =>
  before(
    (socket) => socket.end(`${JSON.stringify({ say: "Looking for a terminal" })}\n`),
    async (relay) => {
      assert.deepEqual(await relay.ended(), {
        error: "Cannot set up: it ended before it said how: look at the file, then sudo posline setup",
      });
    },
  ));

test("SetupRelay gives a setup that is stopped five seconds for its last word, takes no answer meanwhile, and begins no other", () =>
  before(
    (socket) => socket.write(`${JSON.stringify({ ask: 7, for: "write", diff: "+ x" })}\n`),
    async (relay, helped) => {
      await until(() => relay.view.messages.length === 1, "the question");
      assert.equal(relay.post({ stop: true }).isRunning, true);
      assert.equal(relay.post({ ask: 7, answer: "yes" }).status, 409);
      assert.equal(relay.post({}).status, 409);
      assert.deepEqual(await relay.ended(), { error: "Cannot set up: it did not end in time" });
      assert.equal(helped.bytesRead, 0);
    },
  ));

test("SetupRelay takes the last word of a setup that is stopped, also if that is that it has written", () =>
  before(
    (socket) => socket.on("end", () => socket.end(`${JSON.stringify({ end: "written" })}\n`)),
    async (relay) => {
      relay.post({ stop: true });
      assert.deepEqual(await relay.ended(), { end: "written" });
    },
  ));
