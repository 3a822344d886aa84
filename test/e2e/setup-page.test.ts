import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { merchantId, networkTerminal } from "../setup/setup-box.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { sessionOf } from "../support/session.ts";
import { until } from "../support/until.ts";

/** `POST /setup` of the admin port, with the real command behind its socket as systemd runs it. */

interface Message {
  readonly say?: string;
  readonly ask?: number;
  readonly for?: string;
  readonly diff?: string;
  readonly end?: string;
  readonly error?: string;
}

type View = { readonly isRunning: boolean; readonly messages: readonly Message[]; readonly error?: string };

const token = "t-0123456789abcdef";

/** A bridge whose line is away, and the socket at which a setup is begun. */
class Box {
  readonly #folder = scratchFolder();
  readonly file = join(this.#folder.path, "posline.json");
  readonly socket = join(this.#folder.path, "setup.sock");
  readonly #children = new Set<ChildProcess>();
  #server: Server | undefined;
  #bridge: PoslineProcess | undefined;
  #admin = 0;
  #isStopping = false;

  /** @param helper The arguments of the command behind the socket. */
  async start(helper: readonly string[], admin: object = {}): Promise<void> {
    const [fiscal, bank, qr] = await freePorts(3);
    const service = (port: number | undefined) => ({ line: "till", host: "127.0.0.1", port });
    const config = {
      lines: { till: { path: "/dev/serial/by-id/gone" } },
      services: { fiscal: service(fiscal), bank: service(bank), qr: service(qr) },
      journal: false,
      admin,
    };
    writeFileSync(this.file, JSON.stringify(config));
    writeFileSync(join(this.#folder.path, "token"), token, { mode: 0o600 });
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      const child = spawn(process.execPath, [bundle, "setup", "--json", "--config", this.file, ...helper], {
        stdio: [socket, socket, "ignore"],
      });
      this.#children.add(child);
      child.on("exit", () => this.#children.delete(child));
      socket.destroy();
    }).listen(this.socket);
    this.#server = server;
    await once(server, "listening");
    const free = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };
    const flags = ["--config", this.file, "--setup-socket", this.socket];
    this.#bridge = new PoslineProcess(["serve", ...flags], { env: free });
    this.#admin = await this.#bridge.port("admin");
    this.session = await sessionOf(this.#admin);
  }

  session = {};

  async view(headers = {}): Promise<View> {
    return JSON.parse((await ask(this.#admin, "GET", "/setup", "", headers)).text);
  }

  async post(body: object, headers: object = this.session): Promise<{ readonly status: number; readonly view: View }> {
    const { status, text } = await ask(this.#admin, "POST", "/setup", JSON.stringify(body), { ...headers });
    return { status, view: JSON.parse(text) };
  }

  /** Waits for the last message to be as wanted. */
  async last(fits: (message: Message) => boolean, headers = {}): Promise<Message> {
    let found: Message | undefined;
    await until(async () => {
      found = (await this.view(headers)).messages.at(-1);
      return found !== undefined && fits(found);
    }, "the setup to say more");
    if (found === undefined) throw new Error("it said nothing");
    return found;
  }

  question(wanted: string): Promise<Message> {
    return this.last((message) => message.for === wanted);
  }

  /** What the setup wrote; undefined if nothing. */
  dropIn(): { readonly lines: Readonly<Record<string, { readonly path: string }>> } | undefined {
    const file = join(this.#folder.path, "posline.d", "terminal.json");
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  }

  async port(service: string): Promise<number> {
    return (await this.#bridge?.port(service)) ?? 0;
  }

  /** Has posline begin to stop. */
  async stopping(): Promise<void> {
    this.#bridge?.child.kill("SIGTERM");
    this.#isStopping = true;
    await this.#bridge?.logged(({ msg }) => String(msg).startsWith("stopping"), "posline to stop");
  }

  get running(): number {
    return this.#children.size;
  }

  get log(): string {
    return this.#bridge?.stdout ?? "";
  }

  closeSocket(): void {
    this.#server?.close();
  }

  /** Ends posline, and waits until the setup has ended, too. */
  async end(): Promise<void> {
    // A second signal would end it at once, whatever holds it.
    const signal = this.#isStopping ? undefined : "SIGTERM";
    this.#isStopping = true;
    if (this.#bridge !== undefined) assert.equal(await this.#bridge.ended(signal), 0);
    await until(() => this.running === 0, "the setup to end with posline");
  }

  async remove(): Promise<void> {
    try {
      await this.end();
    } finally {
      // A socket that is listened on would keep this process.
      this.closeSocket();
      for (const child of this.#children) child.kill("SIGKILL");
      this.#folder.remove();
    }
  }
}

const boxes: Box[] = [];
after(() => Promise.all(boxes.map((box) => box.remove())));

async function boxWith(helper: readonly string[], admin?: object): Promise<Box> {
  const box = new Box();
  boxes.push(box);
  await box.start(helper, admin);
  return box;
}

const terminal = networkTerminal(["fiscal", "bank", "qr"]);
after(() => terminal.close());

test("POST /setup runs posline setup, passes its questions and the answers on, and writes on yes alone", async () => {
  const box = await boxWith(["--line", await terminal.path()]);
  const before = readFileSync(box.file, "utf8");
  assert.deepEqual(await box.view(), { isRunning: false, messages: [] });
  assert.equal((await box.post({})).view.isRunning, true);
  const id = await box.question("merchant-id");
  // A wrong one is asked for again.
  await box.post({ ask: id.ask, answer: "NOBODY" });
  const again = await box.last(({ ask }) => ask !== undefined && ask !== id.ask);
  assert.equal(again.for, "merchant-id");
  const late = await box.post({ ask: id.ask, answer: "yes" });
  assert.deepEqual(
    [late.status, late.view.error],
    [409, "Cannot set up: that question is over: GET /setup has the present one"],
  );
  await box.post({ ask: again.ask, answer: merchantId });
  const write = await box.question("write");
  assert.match(write.diff ?? "", /^ +"path": "tcp:127/m);
  assert.equal(box.dropIn(), undefined);
  const { view } = await box.post({ ask: write.ask, answer: "yes" });
  assert.equal(view.isRunning, true);
  assert.deepEqual(await box.last(({ end }) => end !== undefined), { end: "written" });
  assert.equal(readFileSync(box.file, "utf8"), before);
  assert.equal(box.dropIn()?.lines["till"]?.path, await terminal.path());
  assert.equal(readFileSync(join(box.file, "../credentials/merchant-id"), "utf8"), `${merchantId}\n`);
  await until(() => /setup from the status page ended: written/.test(box.log), "the log to say how it ended");
  assert.ok(!box.log.includes(merchantId) && !JSON.stringify(await box.view()).includes(merchantId));
});

test("POST /setup that is declined, stopped, or left by a posline that ends, writes nothing", async () => {
  const box = await boxWith(["--line", await terminal.path()]);
  const before = readFileSync(box.file, "utf8");
  const toWrite = async () => {
    await box.post({});
    await box.post({ ask: (await box.question("merchant-id")).ask, answer: "" });
    return box.question("write");
  };
  await box.post({ ask: (await toWrite()).ask, answer: "no" });
  assert.deepEqual(await box.last(({ end }) => end !== undefined), { end: "declined" });
  await until(() => box.running === 0, "the helper to end");
  await toWrite();
  await box.post({ stop: true });
  assert.deepEqual(await box.last(({ error }) => error !== undefined), {
    error: "Cannot set up: it was stopped: nothing was written",
  });
  await until(() => box.running === 0, "the helper to end");
  await toWrite();
  await box.end();
  assert.deepEqual([readFileSync(box.file, "utf8"), box.dropIn()], [before, undefined]);
  assert.doesNotMatch(box.log, /it ended by itself/);
});

test("POST /setup keeps what somebody wrote into the file since its question", async () => {
  const box = await boxWith(["--line", await terminal.path()]);
  await box.post({});
  await box.post({ ask: (await box.question("merchant-id")).ask, answer: merchantId });
  const write = await box.question("write");
  const changed = JSON.stringify({ ...JSON.parse(readFileSync(box.file, "utf8")), log: { level: "debug" } });
  writeFileSync(box.file, changed);
  await box.post({ ask: write.ask, answer: "yes" });
  assert.deepEqual(await box.last(({ end }) => end !== undefined), { end: "written" });
  assert.equal(readFileSync(box.file, "utf8"), changed);
  assert.equal(box.dropIn()?.lines["till"]?.path, await terminal.path());
});

test("POST /setup is refused from another origin, by another host, twice at once, and if it makes no sense", async () => {
  const box = await boxWith([], { allowHosts: ["box.example"], allowOrigins: ["https://till.example"] });
  for (const headers of [
    { Origin: "https://evil.example" },
    { Origin: "https://till.example" },
    { "Sec-Fetch-Site": "cross-site" },
    { Host: "evil.example" },
  ])
    assert.equal((await box.post({}, headers)).status, "Host" in headers ? 421 : 403, JSON.stringify(headers));
  for (const headers of [{}, { Host: "box.example" }]) {
    const { status, view } = await box.post({}, headers);
    assert.equal(status, 401);
    assert.match(view.error ?? "", /a Host that is allowed: open the address that sudo posline page prints, or send/);
  }
  for (const body of [{ ask: "1" }, { stop: false }, { begin: true }, []])
    assert.equal((await box.post(body)).status, 400, JSON.stringify(body));
  assert.equal((await box.post({ ask: 1, answer: "yes" })).status, 409);
  assert.equal(box.running, 0);
  // It waits for a device, of which this machine may have some.
  assert.equal((await box.post({})).status, 200);
  const twice = await box.post({});
  assert.deepEqual(
    [twice.status, twice.view.error],
    [409, "Cannot set up: another setup is under way: go on with that one, or stop it"],
  );
  await box.question("device");
  assert.equal(box.running, 1);
});

test("POST /setup with a token is for who has it, through a proxy as well; a socket that isn't there is named", async () => {
  const box = await boxWith([], { tokenFile: "token", allowHosts: ["box.example"] });
  assert.equal((await box.post({}, {})).status, 401);
  box.closeSocket();
  const authorized = { Authorization: `Bearer ${token}`, Host: "box.example" };
  assert.equal((await box.post({}, authorized)).status, 200);
  const start = "systemctl start posline-setup.socket, or run sudo posline setup";
  assert.deepEqual(await box.last(({ error }) => error !== undefined, authorized), {
    error: `Cannot set up: ${box.socket} can't be used (ENOENT): ${start}`,
  });
});
