import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer, type Server, Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { runDoctor } from "../../src/cli/doctor.ts";
import { type DoctorOptions, examine } from "../../src/doctor/doctor.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { frame } from "../support/fake-device.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { absent, type RelayOptions, startRelay } from "../support/relay.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { patienceMs, until } from "../support/until.ts";

/** A line over TCP, over the real processes: src/device/tcp-port.ts, src/doctor/tcp-line.ts. */

const sale = (payId: string) => JSON.stringify({ pay_id: payId, amount: 1500, currency_name: "EUR" });

const configFor = (port: number) => ({
  lines: { till: { path: `tcp:127.0.0.1:${port}` } },
  services: { bank: { line: "till", port: 8888 } },
  journal: false,
  admin: {},
});
const env = { POSLINE_ADMIN_PORT: "0" };

function emulator(port: number): PoslineProcess {
  return new PoslineProcess(["emulate", "--line", `tcp:127.0.0.1:${port}`, "--no-http", "--no-admin"], { file: bundle });
}

/** A relay between the bridge and the emulator, whose connections a test cuts. */
class Cable {
  readonly server: Server;
  readonly #sockets = new Set<Socket>();
  connections = 0;
  /** What came from the bridge. */
  readonly sent: Buffer[] = [];

  constructor(near: number, far: number) {
    this.server = createServer((socket) => {
      this.connections++;
      const beyond = new Socket();
      beyond.connect(far, "127.0.0.1");
      socket.on("data", (bytes) => this.sent.push(bytes));
      for (const [one, other] of [
        [socket, beyond],
        [beyond, socket],
      ] as const) {
        this.#sockets.add(one);
        one.on("error", () => {});
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    }).listen(near, "127.0.0.1");
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

const cuts = Number(process.env["TCP_CUTS"] ?? 10);

/** Cuts of one bridge's connections: after a third, each soon after an opening, a line would dial more slowly. */
const cutsOfBridge = 2;

test(`bridge over TCP loses no call and sends none twice through ${cuts} cut connections under load`, async (t) => {
  const [near = 0, far = 0] = await freePorts(2);
  const terminal = emulator(far);
  // Before that the cable's connections would not last, and be dialled more slowly.
  await terminal.logged(({ msg }) => msg === "posline emulates", "the emulator to listen");
  const cable = new Cable(near, far);
  const ends: Record<string, number> = {};
  let longestMs = 0;
  let longestOpenMs = 0;
  let count = 0;
  /** Cuts a bridge's connections while four tills sell. */
  const cutUnderLoad = async (from: number, to: number) => {
    const bridge = await startedBridge(configFor(near), { env });
    const bank = await bridge.port("bank");
    let isOver = false;
    const till = async () => {
      while (!isOver) {
        const answer = await ask(bank, "POST", "/sale", sale(`T-${++count}`));
        const outcome = answer.headers["x-posline-outcome"] ?? "none";
        ends[outcome] = (ends[outcome] ?? 0) + 1;
        longestMs = Math.max(longestMs, answer.ms);
        assert.ok(["answered", "not-sent", "unknown"].includes(outcome), answer.text);
      }
    };
    const tills = [till(), till(), till(), till()];
    try {
      for (let n = from; n < to; n++) {
        await new Promise((resolve) => setTimeout(resolve, 50 + ((n * 37) % 200)));
        const before = cable.connections;
        const cutMs = performance.now();
        cable.cut();
        await until(() => cable.connections > before, "the line to dial again");
        longestOpenMs = Math.max(longestOpenMs, performance.now() - cutMs);
        await until(async () => (await ask(bank, "POST", "/terminals", "")).status === 200, "the line to be back");
      }
    } finally {
      isOver = true;
      await Promise.all(tills);
      await bridge.stop();
    }
  };
  t.after(() => cable.cut());
  t.after(() => cable.server.close());
  t.after(() => terminal.ended("SIGTERM"));
  for (let n = 0; n < cuts; n += cutsOfBridge) await cutUnderLoad(n, Math.min(n + cutsOfBridge, cuts));
  assert.ok((ends["answered"] ?? 0) > 0, JSON.stringify(ends));
  assert.ok(longestMs < 20_000, `the longest call took ${longestMs} ms`);
  // A second, and what a busy machine takes beside it.
  assert.ok(longestOpenMs < 1_500, `the longest way back took ${longestOpenMs} ms`);
  const text = Buffer.concat(cable.sent).toString("latin1");
  const sent = [...text.matchAll(/"pay_id":"(T-\d+)"/g)].map(([, id]) => id);
  assert.equal(new Set(sent).size, sent.length, "none twice");
  assert.ok(sent.length >= (ends["answered"] ?? 0) && sent.length <= count - (ends["not-sent"] ?? 0));
  t.diagnostic(JSON.stringify({ cuts, calls: count, ...ends, longestMs, longestOpenMs, sent: sent.length }));
});

/** Asks once over a connection of its own, and closes it with the answer. @returns milliseconds to the answer. */
async function askedOnce(port: number): Promise<number> {
  const begunMs = performance.now();
  const socket = connect(port, "127.0.0.1");
  socket.write(frame("length", "/terminals\n{}"));
  const [answer] = await once(socket, "data", { signal: AbortSignal.timeout(patienceMs) });
  assert.match(String(answer), /"terminals"/);
  socket.end();
  return performance.now() - begunMs;
}

test("posline emulate --line tcp:... answers each of 20 connections in a row, and a second doctor, as soon as the first", async (t) => {
  const [port = 0] = await freePorts(1);
  const terminal = emulator(port);
  t.after(() => terminal.ended("SIGTERM"));
  await terminal.logged(({ msg }) => msg === "posline emulates", "the emulator to listen");
  const took: number[] = [];
  for (let n = 0; n < 20; n++) took.push(await askedOnce(port));
  assert.ok(Math.max(...took) < 500, `milliseconds to an answer: ${took.map(Math.round).join(" ")}`);
  for (const which of ["first", "second"]) {
    assert.match(await doctor({ ...configFor(port), admin: undefined }), /bank answered /, which);
  }
});

async function doctor(config: object): Promise<string> {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  writeFileSync(file, JSON.stringify(config));
  const out: string[] = [];
  const places = { env: {}, command: async () => ({ ran: false, why: "not asked" }) as const };
  await runDoctor(
    { config: file },
    {
      examine: (options: DoctorOptions) => examine({ ...options, places }),
      look: { unicode: true, columns: undefined, colour: false },
      out: (text) => out.push(text),
      err: () => {},
    },
  );
  folder.remove();
  return out.join("");
}

const farEnds: readonly (readonly [string, (socket: Socket) => void, RegExp])[] = [
  ["says nothing", (socket) => socket.resume(), /the terminal does not answer, and not one byte comes back/],
  [
    "is a web server",
    (socket) => socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")),
    /is a web server, not a terminal's line/,
  ],
  [
    "is a till",
    (socket) => {
      const asking = setInterval(() => socket.write(frame("length", `/sale\n${sale("A-1")}`)), 1_000);
      socket.on("close", () => clearInterval(asking)).resume();
    },
    /requests come: a till is at the other end, not a terminal/,
  ],
];

for (const [name, behave, words] of farEnds) {
  test(`/readyz and posline doctor name a far end that ${name}`, async (t) => {
    const [port = 0] = await freePorts(1);
    const server = createServer((socket) => {
      socket.on("error", () => {});
      behave(socket);
    }).listen(port, "127.0.0.1");
    const config = configFor(port);
    const lines = { till: { ...config.lines.till, lateReplyMs: 4_000 } };
    const bridge = new BridgeProcess({ ...config, lines }, { env });
    try {
      const admin = await bridge.port("admin");
      await until(async () => words.test((await ask(admin, "GET", "/readyz", "")).text), "/readyz to name it");
    } finally {
      await bridge.stop();
    }
    t.after(() => server.close());
    assert.match(await doctor({ ...config, lines, admin: undefined }), words);
  });
}

/** Runs a body beside ser2net, with a terminal on its tty and a user whose connection still stands, as that of a box without power. */
async function withOldUser(kicksOldUser: boolean, body: (path: string, oldUser: Socket) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => undefined),
  );
  const relay = await startRelay("ser2net", terminal.link, { kicksOldUser });
  let oldUser = new Socket();
  try {
    await until(async () => {
      oldUser = connect(relay.port, "::1");
      oldUser.on("error", () => {});
      return once(oldUser, "connect").then(
        () => true,
        () => false,
      );
    }, "ser2net to listen");
    await body(relay.path, oldUser.resume());
  } finally {
    oldUser.destroy();
    relay.end();
    terminal.unplug();
  }
}

/** Runs a body beside ser2net, with a terminal on its tty that answers each question. */
async function withSer2net(options: RelayOptions, body: (path: string, terminal: Terminal) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => `{"status":"success","id":${JSON.stringify(/"pay_id":"([^"]*)/.exec(text)?.[1] ?? "")}}`),
  );
  const relay = await startRelay("ser2net", terminal.link, options);
  try {
    await until(async () => {
      const first = connect(relay.port, "::1");
      first.on("error", () => {});
      return once(first, "connect").then(
        async () => {
          first.destroy();
          await new Promise((resolve) => setTimeout(resolve, 100));
          return true;
        },
        () => false,
      );
    }, "ser2net to listen");
    await body(relay.path, terminal);
  } finally {
    relay.end();
    terminal.unplug();
  }
}

const configOver = (path: string) => ({ ...configFor(0), lines: { till: { path } } });
const skip = absent("ser2net");

test("posline gets in at once at a ser2net with kickolduser whose old connection still stands", { skip }, () =>
  withOldUser(true, async (path, oldUser) => {
    const isKicked = once(oldUser, "close");
    const bridge = await startedBridge(configOver(path), { env });
    try {
      await isKicked;
      assertMapped(
        bridge.log.filter(({ msg }) => msg === "line"),
        ["recovering", "idle"],
        ({ state }) => state,
      );
    } finally {
      await bridge.stop();
    }
  }),
);

test("posline's log and /readyz say in ser2net's words that its port is in use, where it has no kickolduser", { skip }, () =>
  withOldUser(false, async (path, oldUser) => {
    const bridge = new BridgeProcess(configOver(path), { env });
    const said = /the far end closed the connection, and said \\?"Port already in use/;
    try {
      await bridge.logged(({ state, reason }) => state === "down" && said.test(String(reason)), "the loss to be logged");
      const admin = await bridge.port("admin");
      await until(async () => said.test((await ask(admin, "GET", "/readyz", "")).text), "/readyz to say it");
      oldUser.destroy();
      await bridge.state("till", "idle");
    } finally {
      await bridge.stop();
    }
  }),
);

for (const over of ["telnet", "telnet(rfc2217)"]) {
  test(
    `posline is never ready over a ser2net with ${over},tcp: its log, /readyz, doctor and setup say what to set there`,
    { skip },
    () =>
      withSer2net({ kicksOldUser: true, over }, async (path, terminal) => {
        const words = /tcp:\[::1\]:\d+ speaks telnet, .*set the far end's port to raw TCP/s;
        const bridge = new BridgeProcess(configOver(path), { env });
        try {
          const admin = await bridge.port("admin");
          await bridge.logged(({ state, reason }) => state === "down" && words.test(String(reason)), "the log to name it");
          await until(async () => words.test((await ask(admin, "GET", "/readyz", "")).text), "/readyz to name it");
          await new Promise((resolve) => setTimeout(resolve, 2_500));
          const told = bridge.log.filter(({ msg }) => msg === "line");
          assertMapped(told, ["recovering", "down"], ({ state }) => state);
          assert.equal(terminal.asked.length, 0);
        } finally {
          await bridge.stop();
        }
        assert.match(await doctor({ ...configOver(path), admin: undefined }), words);
        const folder = scratchFolder();
        const setup = new PoslineProcess(["setup", "--config", join(folder.path, "posline.json"), "--line", path, "--yes"]);
        assert.notEqual(await setup.ended(), 0);
        assert.match(setup.stdout + setup.stderr, words);
        folder.remove();
        // On a busy box a question, which changes nothing, may go out before ser2net's first words come.
        assert.ok(terminal.asked.length <= 1, `asked ${terminal.asked.length} times`);
      }),
  );
}

test("two poslines at one ser2net with kickolduser say that another program connects there, and dial slowly", { skip }, () =>
  withSer2net({ kicksOldUser: true }, async (path) => {
    const bridges = [1, 2].map(() => new BridgeProcess(configOver(path), { env }));
    const words =
      /connections to tcp:\[::1\]:\d+ are lost within seconds .*: see whether another program or box connects to that port/;
    try {
      await new Promise((resolve) => setTimeout(resolve, 12_000));
      const lines = bridges.map(({ log }) => log.filter(({ msg }) => msg === "line"));
      const named = lines.map((each) => each.filter(({ reason }) => words.test(String(reason))).length);
      assert.ok(Math.max(...named) >= 1 && Math.max(...named) <= 2, JSON.stringify(lines));
      assert.ok(Math.max(...lines.map(({ length }) => length)) <= 12, JSON.stringify(lines));
    } finally {
      await Promise.all(bridges.map((each) => each.stop()));
    }
  }),
);
