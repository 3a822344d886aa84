import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { listenTcp, tcpPort } from "../../src/device/tcp-port.ts";
import { type Connection, type ConnectionHandler, OpenError } from "../../src/device/transport.ts";
import { until } from "../support/until.ts";

/** What came over a connection, and how it ended. */
class Heard implements ConnectionHandler {
  readonly #space = Buffer.alloc(7);
  text = "";
  written = 0;
  readonly lost: string[] = [];
  space(): Buffer {
    return this.#space;
  }
  onBytes(n: number): void {
    this.text += this.#space.toString("latin1", 0, n);
  }
  onWritten(): void {
    this.written++;
  }
  onClosed(reason: string): void {
    this.lost.push(reason);
  }
}

/** A far end, which is told of each connection. */
async function farEnd(came: (socket: Socket) => void): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer(came);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  return { server, port: bound.port };
}

async function connected(
  came: (socket: Socket) => void,
  body: (connection: Connection, heard: Heard, port: number) => Promise<void>,
  options: { readonly takenMs?: number } = {},
): Promise<void> {
  const sockets: Socket[] = [];
  const { server, port } = await farEnd((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    came(socket);
  });
  const heard = new Heard();
  let connection: Connection | undefined;
  try {
    connection = await tcpPort({ host: "127.0.0.1", port }, options)(heard);
    await body(connection, heard, port);
  } finally {
    await connection?.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const end = { host: "::1", port: 0 };

test("tcpPort() carries bytes both ways, in order, into memory that is smaller than they are", async () => {
  let came = "";
  const greet = (socket: Socket) => {
    socket.write("a long greeting of the far end");
    socket.on("data", (bytes) => {
      came += String(bytes);
    });
  };
  await connected(greet, async (connection, heard, port) => {
    assert.equal(connection.device, `tcp:127.0.0.1:${port}`);
    connection.write([Buffer.from("one "), Buffer.from("two")]);
    assert.equal(connection.wroteBytes, 7, "a cut from here on leaves an outcome unknown");
    await until(() => came === "one two" && heard.written === 1, "the write");
    await until(() => heard.text === "a long greeting of the far end", "the greeting");
    assert.deepEqual(heard.lost, []);
  });
});

test("tcpPort() closes after what was written, and calls nobody any more", async () => {
  let came = "";
  let ended = false;
  const take = (socket: Socket) => {
    socket.on("data", (bytes) => {
      came += String(bytes);
      socket.write("late");
    });
    socket.on("end", () => {
      ended = true;
    });
  };
  await connected(take, async (connection, heard) => {
    connection.write([Buffer.from("answer")]);
    await until(() => heard.written === 1, "the write");
    await connection.close();
    await until(() => ended, "the end");
    assert.equal(came, "answer");
    assert.deepEqual(heard.lost, []);
  });
});

for (const [name, cut, reason] of [
  ["closes", (socket: Socket) => socket.end(), /^the far end closed the connection$/],
  ["resets", (socket: Socket) => setTimeout(() => socket.resetAndDestroy(), 50), /^the connection was cut$/],
  [
    "is busy",
    (socket: Socket) => socket.end("Port already in use\r\n"),
    /closed the connection, and said "Port already in use"$/,
  ],
  [
    "is a web server",
    (socket: Socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    /is a web server, .*: check the port/,
  ],
  ["sends an answer, and closes", (socket: Socket) => socket.end(Buffer.from([0, 0, 0, 2, 0x7b, 0x7d, 1, 2])), /connection$/],
] as const) {
  test(`tcpPort() loses a connection that its far end ${name}, once and with the reason`, async () => {
    await connected(cut, async (_, heard) => {
      await until(() => heard.lost.length > 0, "the loss");
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(heard.lost.length, 1);
      assert.match(heard.lost[0] ?? "", reason);
    });
  });
}

test("tcpPort() loses a connection whose far end takes no bytes any more, and none whose terminal is only silent", async () => {
  const taking = { takenMs: 100 };
  await connected(
    (socket) => socket.pause(),
    async (connection, heard) => {
      connection.write([Buffer.alloc(16 * 1024 * 1024)]);
      await until(() => heard.lost.length > 0, "the loss");
      assert.deepEqual(heard.lost, ["the far end takes no bytes any more"]);
    },
    taking,
  );
  await connected(
    (socket) => socket.resume(),
    async (connection, heard) => {
      connection.write([Buffer.from("a request")]);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.deepEqual(heard.lost, []);
    },
    taking,
  );
});

/** Opens the far end again and again, as a line does. @returns why each connection, or its opening, failed. */
async function losses(came: (socket: Socket) => void, count: number, question?: string): Promise<readonly string[]> {
  const sockets: Socket[] = [];
  const { server, port } = await farEnd((socket) => {
    sockets.push(socket);
    came(socket.on("error", () => {}).resume());
  });
  const open = tcpPort({ host: "127.0.0.1", port });
  const why: string[] = [];
  try {
    while (why.length < count) {
      const heard = new Heard();
      const connection = await open(heard).catch((error: unknown) => {
        assert.ok(error instanceof OpenError);
        why.push(error.message);
      });
      if (connection === undefined) continue;
      if (question !== undefined) connection.write([Buffer.from(question)]);
      await until(() => heard.lost.length > 0, "the loss");
      await connection.close();
      why.push(heard.lost[0] ?? "");
    }
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
  return why.map((each) => each.replaceAll(String(port), "PORT"));
}

const pushedOff =
  /^connections to tcp:127.0.0.1:PORT are lost within seconds of their opening \(the connection was cut\): see whether another program or box/;

test("tcpPort() names another program after three connections in a row that were lost soon, and dials no more for a while", async () => {
  let connections = 0;
  const why = await losses((socket) => {
    connections++;
    setTimeout(() => socket.resetAndDestroy(), 20);
  }, 8);
  assert.deepEqual(why.slice(0, 2), ["the connection was cut", "the connection was cut"]);
  assert.match(why[2] ?? "", pushedOff);
  assert.equal(new Set(why.slice(2)).size, 1, "one text, which the log has once");
  assert.equal(connections, 3);
});

test("tcpPort() names a far end that closes each connection after one answer", async () => {
  const why = await losses((socket) => socket.on("data", () => socket.end(Buffer.from([0, 0]))), 3, "asked");
  assert.match(
    why[2] ?? "",
    /lost within seconds .*\(the far end closed the connection\): .*or whether the far end closes after each answer/,
  );
});

test("tcpPort() names each connection of a far end that speaks telnet, from its first bytes on", async () => {
  for (const options of ["fffb03fffd03", "fffd18fffb2cfffe01"]) {
    const telnet = (socket: Socket) => {
      socket.write(Buffer.from(options.slice(0, 8), "hex"));
      setTimeout(() => socket.write(Buffer.from(options.slice(8), "hex")), 10);
    };
    const why = await losses(telnet, 4);
    assert.match(why[0] ?? "", /^tcp:127.0.0.1:PORT speaks telnet, .*: set the far end's port to raw TCP/);
    assert.equal(new Set(why).size, 1);
  }
});

for (const [name, bytes] of [
  ["one option of telnet", "fffb03000000"],
  ["options after an answer's first byte", "00fffb03fffd03"],
  ["bytes FF without an option", "ffffffffffff"],
] as const) {
  test(`tcpPort() keeps a connection that begins with ${name}`, async () => {
    await connected(
      (socket) => socket.write(Buffer.from(bytes, "hex")),
      async (_, heard) => {
        await until(() => heard.text.length === bytes.length / 2, "the bytes");
        await new Promise((resolve) => setTimeout(resolve, 20));
        assert.deepEqual(heard.lost, []);
      },
    );
  });
}

test("tcpPort() goes on dialling a port that says it is in use, and uses a connection there once it lasts", async () => {
  let connections = 0;
  const refusing = (socket: Socket) => {
    if (++connections <= 6) socket.end("Port already in use\r\n");
    else setTimeout(() => socket.resetAndDestroy(), 500);
  };
  const why = await losses(refusing, 7);
  assert.ok(why.slice(0, 6).every((each) => each === 'the far end closed the connection, and said "Port already in use"'));
  assert.equal(why[6], "the connection was cut");
});

test("tcpPort() says why it can't connect, and what to do", async () => {
  const { server, port } = await farEnd(() => {});
  await new Promise((resolve) => server.close(resolve));
  for (const [host, words] of [
    ["127.0.0.1", /^tcp:127\.0\.0\.1:\d+ refuses the connection: nothing listens at port \d+ of 127\.0\.0\.1/],
    ["no-such-host.invalid", /^tcp:no-such-host\.invalid:\d+ cannot be reached: no host is known by the name/],
  ] as const) {
    await assert.rejects(tcpPort({ host, port })(new Heard()), (error) => {
      assert.ok(error instanceof OpenError);
      assert.match(error.message, words);
      return true;
    });
  }
});

test("listenTcp() serves one connection at a time, the newest", async () => {
  const listener = await listenTcp(end);
  assert.match(listener.path, /^tcp:\[::1\]:\d+$/);
  const port = Number(listener.path.split(":").at(-1));
  const near = tcpPort({ host: "::1", port });
  const [first, second] = [new Heard(), new Heard()];
  const [far, later] = [new Heard(), new Heard()];
  const opening = listener.open(far);
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(listener.isAlone);
  const one = await near(first);
  const taken = await opening;
  assert.ok(!listener.isAlone);
  const two = await near(second);
  await until(() => far.lost.length > 0, "the first to be given up");
  assert.deepEqual(far.lost, ["a newer connection took its place"]);
  await taken.close();
  await until(() => first.lost.length > 0, "the first to hear of it");
  const next = await listener.open(later);
  two.write([Buffer.from("hello")]);
  await until(() => later.text === "hello", "the newest to be heard");
  for (const connection of [one, two, next]) await connection.close();
  await listener.close();
});

test("listenTcp() cuts a connection that nobody awaits, and gives the next one that somebody does from its first byte on", async () => {
  const listener = await listenTcp(end);
  const port = Number(listener.path.split(":").at(-1));
  const near = tcpPort({ host: "::1", port });
  const [early, first, far] = [new Heard(), new Heard(), new Heard()];
  const tooEarly = await near(early);
  tooEarly.write([Buffer.from("lost")]);
  await until(() => early.lost.length > 0, "the cut");
  const awaited = listener.open(far);
  const one = await near(first);
  one.write([Buffer.from("hello")]);
  const taken = await awaited;
  assert.deepEqual([one.isAccepted, taken.isAccepted], [false, true]);
  await until(() => far.text === "hello", "the first bytes");
  for (const connection of [tooEarly, one, taken]) await connection.close();
  await listener.close();
});
