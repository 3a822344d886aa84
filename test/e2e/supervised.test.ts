import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hostOfAddresses } from "../../src/core/address.ts";
import { urlHost } from "../../src/core/url-host.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { ofLocalhost } from "../support/localhost.ts";
import { Systemd, type SystemdOptions } from "../support/systemd.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** The real bundle under something that speaks systemd's protocol: sockets, notifications, watchdog. */

interface Bench {
  readonly systemd: Systemd;
  readonly terminal: Terminal;
  readonly bank: number;
  readonly qr: number;
  /** On all addresses of the box. */
  readonly open: number;
  readonly admin: number;
  /** Writes what the next start, or SIGHUP, reads. */
  write(services: object): void;
}

/** As posline.socket has them. */
const atLocalhost = (port: number) => ofLocalhost.map((address) => `${urlHost(address)}:${port}`);

const good = '{"status":"success"}';

async function withSystemd(
  options: Partial<Pick<SystemdOptions, "how" | "path" | "watchdogMs">>,
  body: (bench: Bench) => Promise<void>,
): Promise<void> {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => good),
  );
  const [bank = 0, qr = 0, open = 0, admin = 0] = await freePorts(4);
  const write = (services: object) =>
    writeFileSync(file, JSON.stringify({ lines: { till: { path: terminal.link } }, services, admin: { port: admin } }));
  write({ bank: { line: "till", port: bank } });
  const systemd = await Systemd.start({
    how: "fd",
    ...options,
    ports: [...atLocalhost(bank), qr, `127.0.0.2:${qr}`, `0.0.0.0:${open}`, ...atLocalhost(admin)],
    args: ["serve", "--config", file],
  });
  try {
    await body({ systemd, terminal, bank, qr, open, admin, write });
  } finally {
    await systemd.end();
    terminal.unplug();
  }
}

const ready = (systemd: Systemd, times = 1) =>
  systemd.until(() => systemd.told.filter((told) => told.startsWith("READY=1")).length >= times, `READY, ${times} times`);
const statusOf = ({ told }: Systemd) => told.findLast((each) => each.includes("STATUS="))?.replace("READY=1\n", "");
const up = (systemd: Systemd) => systemd.until(() => statusOf(systemd) === "STATUS=1 line up", "the line to be up");
const terminals = (port: number) => ask(port, "POST", "/terminals", "");

test("serve tells systemd that it is ready, how its lines do, and that it stops", async () => {
  await withSystemd({}, async ({ systemd, terminal, bank }) => {
    await ready(systemd);
    await up(systemd);
    assert.equal((await terminals(bank)).status, 200);
    terminal.unplug();
    await systemd.until(() => systemd.told.some((told) => /^STATUS=1 down \(till: /.test(told)), "the loss to be told");
    assert.equal(systemd.ended.length, 0, "an unplugged terminal ends nothing");
    terminal.plug();
    await up(systemd);
    systemd.signal(15);
    await systemd.until(() => systemd.ended.length > 0, "its end");
    assert.deepEqual(systemd.ended, [0]);
    assert.match(systemd.told.at(-1) ?? "", /^STOPPING=1\n/);
  });
});

test("serve answers on systemd's sockets across a restart, and refuses no connection meanwhile", async () => {
  await withSystemd({}, async ({ systemd, bank }) => {
    await up(systemd);
    const answers: (number | string)[] = [];
    let over = false;
    const till = async () => {
      while (!over) answers.push(await terminals(bank).then(({ status }) => status, String));
    };
    const tills = [till(), till(), till()];
    const more = async (count: number) => {
      const before = answers.length;
      await until(() => answers.length >= before + count, "more answers");
    };
    for (let round = 1; round <= 3; round++) {
      await more(50);
      systemd.signal(15);
      await systemd.until(() => systemd.ended.length === round, "its end");
      // Whoever comes now waits in the socket.
      systemd.startAgain();
      await ready(systemd, round + 1);
    }
    await more(50);
    over = true;
    await Promise.all(tills);
    assert.deepEqual(systemd.ended, [0, 0, 0]);
    // 503: the line of a new process isn't proven clean yet, and nothing was sent.
    assert.deepEqual(
      [...new Set(answers)].filter((status) => status !== 200 && status !== 503),
      [],
    );
    assert.ok(answers.includes(200));
  });
});

test("serve answers for a service that isn't configured where systemd listens, and serves it after a reload", async () => {
  await withSystemd({}, async ({ systemd, bank, qr, write }) => {
    await up(systemd);
    const refused = await ask(qr, "POST", "/check", '{"pay_id":"1"}');
    assert.equal(refused.headers["x-posline-outcome"], "not-sent");
    write({ bank: { line: "till", port: bank }, qr: { line: "till", port: qr } });
    systemd.signal(1);
    await systemd.until(() => systemd.told.some((told) => told.startsWith("RELOADING=1\nMONOTONIC_USEC=")), "RELOADING");
    await ready(systemd, 2);
    await up(systemd);
    // Every socket of the port, whatever its address.
    for (const host of ["127.0.0.1", "127.0.0.2"]) {
      const answer = await fetch(`http://${host}:${qr}/showqrcode`, { method: "POST", body: '{"pay_id":"1"}' });
      assert.equal(answer.status, 200, host);
    }
    write({ qr: { line: "till", port: qr } });
    systemd.signal(1);
    await ready(systemd, 3);
    assert.equal((await terminals(bank)).headers["x-posline-outcome"], "not-sent");
  });
});

test("serve answers at all addresses of systemd's sockets, on its admin port too, and names each port once", async () => {
  const host = hostOfAddresses(ofLocalhost);
  await withSystemd({}, async ({ systemd, bank, admin }) => {
    await up(systemd);
    for (const place of atLocalhost(bank)) {
      assert.equal((await fetch(`http://${place}/terminals`, { method: "POST" })).status, 200, place);
    }
    for (const place of atLocalhost(admin)) {
      const answer = await fetch(`http://${place}/status`);
      const { services }: { services: { bank: { host: string; port: number } } } = JSON.parse(await answer.text());
      assert.deepEqual([services.bank.host, services.bank.port], [host, bank], place);
    }
    const said = systemd.log.split("\n").filter((line) => /"msg":"(?:admin listens|listening)"/.test(line));
    assert.deepEqual(
      said.map((line) => /"host":"([^"]*)","port":(\d+)/.exec(line)?.slice(1)),
      [
        [host, String(bank)],
        [host, String(admin)],
      ],
    );
  });
});

test("serve refuses a port that isn't among systemd's sockets, and says which there are", async () => {
  await withSystemd({}, async ({ systemd, bank, qr, open, write }) => {
    await up(systemd);
    const [other = 0] = await freePorts(1);
    write({ bank: { line: "till", port: other } });
    systemd.signal(1);
    await ready(systemd, 2);
    const words = `services.bank.port is ${other}, but systemd's posline.socket listens on ${bank}, ${qr}, ${open}:`;
    await systemd.until(() => systemd.log.includes(words), "the reason");
    assert.match(statusOf(systemd) ?? "", /; the last reload was refused, the log says why$/);
    assert.equal((await terminals(bank)).status, 200, "the old configuration stays");
    systemd.signal(15);
    await systemd.until(() => systemd.ended.length === 1, "its end");
    systemd.startAgain();
    await systemd.until(() => systemd.ended.length === 2, "its second end");
    assert.equal(systemd.ended[1], 78, "systemd must not start it again and again");
  });
});

test("serve refuses two services on one port of systemd's, whatever their addresses: one of them would get the other's calls", async () => {
  await withSystemd({}, async ({ systemd, bank, qr, write }) => {
    await up(systemd);
    const at = (host: string) => ({ line: "till", port: qr, host });
    write({ bank: at("127.0.0.1"), qr: at("127.0.0.2") });
    systemd.signal(1);
    await ready(systemd, 2);
    const words = `services.qr.port is ${qr}, which services.bank has: all sockets of posline.socket with one port lead to one service`;
    await systemd.until(() => systemd.log.includes(words), "the reason");
    assert.equal((await terminals(bank)).status, 200, "the old configuration stays");
    assert.equal((await terminals(qr)).status, 503);
  });
});

test("serve tells the watchdog that all is well, with its terminal away too", async () => {
  await withSystemd({ watchdogMs: 300 }, async ({ systemd, terminal }) => {
    await up(systemd);
    const pings = () => systemd.told.filter((told) => told === "WATCHDOG=1").length;
    const more = async () => {
      const before = pings();
      await systemd.until(() => pings() >= before + 3, "three more pings");
    };
    await more();
    terminal.unplug();
    await systemd.until(() => systemd.told.some((told) => /^STATUS=1 down/.test(told)), "the loss");
    await more();
  });
});
