import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../src/config/load.ts";
import { UsageError } from "../../src/core/exit.ts";
import { SetupError } from "../../src/setup/setup-file.ts";
import { probeReplies } from "../support/terminal.ts";
import { merchantId, SetupBox, type TerminalSetting } from "./setup-box.ts";

/** Tests src/setup/setup.ts, setup-file.ts, setup-wait.ts and setup-test.ts, with src/cli/setup.ts and src/doctor/device-barrier.ts. */

const whole: TerminalSetting = { services: ["fiscal", "bank", "qr"], baudRate: 115_200, crc16: "arc" };

async function withBox(setting: TerminalSetting, use: (box: SetupBox) => Promise<void>): Promise<void> {
  const box = new SetupBox(setting);
  box.plug();
  try {
    await use(box);
  } finally {
    box.remove();
  }
}

/** The searches wait in real time, so all tests run at once. */
function started(name: string, run: () => Promise<void>): void {
  const ended = run().then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  test(name, async () => {
    const failed = await ended;
    if (failed !== undefined) throw failed.error;
  });
}

const refusal = (words: RegExp) => (error: unknown) => error instanceof SetupError && words.test(error.message);

started("posline setup run a second time finds the same, asks nothing, writes nothing, and says so", () =>
  withBox(whole, async (box) => {
    assert.equal(await box.run({ line: box.device }, [merchantId, "yes"]), 0);
    assert.deepEqual(box.asked, [
      "The merchant's id of fiscal (not shown; Enter if you don't know it): (hidden)",
      "Write this? [yes/no] ",
    ]);
    const written = box.dropIn;
    const { ino } = statSync(box.dropInFile);
    box.said.length = box.asked.length = 0;
    assert.equal(await box.run({}, []), 0);
    assert.match(box.said.join(""), /has all of it already: nothing to change\n$/);
    assert.deepEqual([box.asked, box.dropIn, statSync(box.dropInFile).ino], [[], written, ino]);
  }),
);

started("posline setup --yes asks nobody, and makes a file that the service's group may read", () =>
  withBox({ ...whole, services: ["bank", "fiscal"] }, async (box) => {
    box.box.write("etc/group", `root:x:0:\nposline:x:${box.box.gid}:\n`);
    assert.equal(await box.run({ line: box.device, yes: true }, undefined), 0);
    const { config } = await loadConfig({ env: {}, flags: { config: box.file } });
    assert.deepEqual(Object.keys(config.services), ["fiscal", "bank"]);
    assert.equal(config.services.fiscal?.merchantId, undefined);
    assert.deepEqual(config.journal === false ? false : config.journal.onFailure, "refuse");
    const { mode, gid } = statSync(box.dropInFile);
    assert.equal(statSync(dirname(box.dropInFile)).mode & 0o777, 0o755);
    assert.deepEqual([mode & 0o777, gid], [0o640, box.box.gid]);
    assert.match(box.said.join(""), /Without the merchant's id each start takes 30 s longer/);
  }),
);

started("posline setup where nobody can be asked is refused without --yes, before anything is looked at", () =>
  withBox(whole, async (box) => {
    await assert.rejects(box.run({ line: box.device }, undefined), UsageError);
    assert.deepEqual(box.heard, []);
  }),
);

started("posline setup that is answered no writes nothing", () =>
  withBox({ ...whole, services: ["qr"] }, async (box) => {
    box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"bank":{"line":"till"},"qr":{"line":"till"}}}');
    const before = box.text;
    assert.equal(await box.run({ line: box.device }, ["no"]), 0);
    assert.deepEqual([box.text, box.dropIn], [before, undefined]);
    assert.match(box.said.join(""), /Nothing was written\n$/);
  }),
);

started("posline setup keeps the merchant's id in a credential of mode 640, and asks again for one that fiscal refuses", () =>
  withBox({ ...whole, services: ["fiscal"] }, async (box) => {
    assert.equal(await box.run({ line: box.device }, ["WRONG-1", merchantId, "yes"]), 0);
    const credential = join(box.file, "../credentials/merchant-id");
    assert.equal(readFileSync(credential, "utf8"), `${merchantId}\n`);
    assert.equal(statSync(credential).mode & 0o777, 0o640);
    assert.match(box.said.join(""), /fiscal refuses the sign that it makes/);
    assert.doesNotMatch(box.said.join(""), /WRONG-1|SHOP-77/);
    assert.doesNotMatch(box.dropIn ?? "", /SHOP-77/);
  }),
);

started("posline setup gives up after three merchant's ids that fiscal refuses, and writes nothing", () =>
  withBox({ ...whole, services: ["fiscal"] }, async (box) => {
    box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"fiscal":{"line":"till"}}}');
    const before = box.text;
    await assert.rejects(
      box.run({ line: box.device }, ["A", "B", "C", "yes"]),
      refusal(/fiscal refuses the sign .*: nothing was written/),
    );
    assert.deepEqual([box.text, box.dropIn], [before, undefined]);
  }),
);

started("posline setup of a file that another setup has is refused, says why, and sends nothing", async () => {
  const box = new SetupBox(whole);
  try {
    const first = box.run({}, [merchantId, "yes"]);
    await box.saying(/Plug the terminal in/);
    await assert.rejects(
      box.run({ line: box.device }, []),
      refusal(/another posline setup is at work on .*posline\.json: let it end/),
    );
    assert.deepEqual(box.heard, []);
    box.plug();
    assert.equal(await first, 0);
  } finally {
    box.remove();
  }
});

started(
  "posline setup of a file that another setup has by another name is refused, through a folder's link or the file's own",
  async () => {
    const box = new SetupBox(whole, { waitMs: 60_000 });
    try {
      const [folder, link] = [join(box.box.root, "folder"), join(box.box.root, "other.json")];
      symlinkSync(dirname(box.file), folder);
      const first = box.run({ config: join(folder, "posline.json") }, [merchantId, "yes"]);
      await box.saying(/Plug the terminal in/);
      const refused = refusal(/another posline setup is at work on .*posline\.json: let it end/);
      await assert.rejects(box.run({ line: box.device }, []), refused);
      box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"bank":{"line":"till"}}}');
      symlinkSync(box.file, link);
      await assert.rejects(box.run({ line: box.device, config: link }, []), refused);
      assert.deepEqual(box.heard, []);
      box.plug();
      assert.equal(await first, 0);
    } finally {
      box.remove();
    }
  },
);

started(
  "posline setup of the service's file by another name is the service's: the merchant's id goes where systemd reads it",
  () =>
    withBox({ ...whole, services: ["fiscal"] }, async (box) => {
      const link = join(box.box.root, "other.json");
      box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"fiscal":{"line":"till"}}}');
      symlinkSync(box.file, link);
      assert.equal(await box.run({ line: box.device, config: link }, [merchantId, "yes"]), 0);
      assert.equal(readFileSync(join(box.file, "../credentials/merchant-id"), "utf8"), `${merchantId}\n`);
      assert.doesNotMatch(box.dropIn ?? "", /merchantIdFile/);
      assert.match(box.said.join(""), new RegExp(`Written: ${box.dropInFile}\n`));
    }),
);

started("posline setup of a link that leads to no file says so, sends nothing, and leaves the link", () =>
  withBox(whole, async (box) => {
    symlinkSync("/srv/gone.json", box.file);
    await assert.rejects(
      box.run({ line: box.device, yes: true }, undefined),
      refusal(/posline\.json: it is a link to \/srv\/gone\.json, where no file is: put one there, or remove the link$/),
    );
    assert.ok(lstatSync(box.file).isSymbolicLink());
    assert.deepEqual(box.heard, []);
  }),
);

started("posline setup whose input ends at the list of devices asks nothing, and writes nothing", () =>
  withBox({ ...whole, services: ["fiscal"] }, async (box) => {
    const stopped = refusal(/^Cannot set up: it was stopped: nothing was written$/);
    await assert.rejects(box.run({}, [undefined]), stopped);
    assert.deepEqual(box.heard, []);
    assert.equal(box.dropIn, undefined);
  }),
);

started("posline setup gives up if no device is plugged in, and sends nothing to one that was there", async () => {
  const box = new SetupBox(whole, { waitMs: 600 });
  box.plug();
  try {
    await assert.rejects(box.run({ yes: true }, undefined), refusal(/no device was plugged in: name one with --line/));
    assert.deepEqual(box.heard, []);
  } finally {
    box.remove();
  }
});

started("posline setup sends nothing to a device that a program has open, and names the program", () =>
  withBox(whole, async (box) => {
    box.heldBy(812);
    await assert.rejects(
      box.run({ line: box.device, yes: true }, undefined),
      refusal(/can't be tested: nothing was sent, and nothing written/),
    );
    assert.match(box.said.join(""), /in use by\s+process 812 \(ModemManager\)/);
    assert.deepEqual(box.heard, []);
  }),
);

started("posline setup refuses a terminal whose service another line has, and names that line", () =>
  withBox({ ...whole, services: ["bank"] }, async (box) => {
    box.box.tty("ttyS0", "platform/serial8250/ttyS0", undefined, "/dev/ptmx");
    const other = join(box.box.places.dev, "ttyS0");
    box.write(JSON.stringify({ lines: { till: { path: other } }, services: { bank: { line: "till" } } }));
    const before = box.text;
    const running = box.run({ line: box.device, yes: true }, undefined);
    await assert.rejects(running, refusal(new RegExp(`bank is on line till \\(${other}\\) already: .*: nothing was written`)));
    assert.deepEqual([box.text, box.dropIn], [before, undefined]);
  }),
);

started(
  "posline setup gives a line whose device is away the new one, leaves a person's file as it is, says what no longer counts, and shows no secret",
  () =>
    withBox({ services: ["bank"], baudRate: 115_200, crc16: "umts" }, async (box) => {
      const text = `{
  "log":   { "level": "warn" },
  "services": {
    "bank": { "line": "card",
              "port": 9999, "apiKey": "s3cret-key" }, "fiscal": { "line": "net", "merchant\\u0049d": "s3cret-too" },
    "qr": { "line": "card" } },
  "lines": { "card": { "path": "/dev/gone", "parity": "even" }, "net": { "path": "tcp:127.0.0.1:9" } }
}
`;
      box.write(text);
      mkdirSync(dirname(box.dropInFile));
      // What a person has put there stays, too.
      writeFileSync(box.dropInFile, '{"services":{"bank":{"apiKey":"s3cret-3"}},"lines":{"card":{"pauseMs":5}}}');
      assert.equal(await box.run({ line: box.device, yes: true }, undefined), 0);
      assert.equal(box.text, text);
      assert.deepEqual(JSON.parse(box.dropIn ?? ""), {
        lines: { card: { pauseMs: 5, path: box.device, crc16: "umts", parity: "none" } },
        services: { bank: { apiKey: "s3cret-3" }, qr: null },
      });
      const said = box.said.join("");
      assert.doesNotMatch(said, /s3cret/);
      assert.match(said, /"apiKey": "\*\*\*\*"/);
      for (const key of ["path", "parity"])
        assert.ok(said.includes(`lines.card.${key} of ${box.file} no longer counts\n`), said);
      assert.match(said, /services\.qr is left out\n/);
    }),
);

started("posline setup for a second terminal keeps what it wrote for the first", () =>
  withBox({ ...whole, services: ["bank"] }, async (box) => {
    box.write('{"lines":{"net":{"path":"tcp:127.0.0.1:9"}},"services":{"fiscal":{"line":"net"}}}');
    mkdirSync(dirname(box.dropInFile));
    writeFileSync(
      box.dropInFile,
      '{"lines":{"till":{"path":"tcp:127.0.0.1:8"}},"services":{"qr":{"line":"till"},"bank":null}}',
    );
    assert.equal(await box.run({ line: box.device, yes: true }, undefined), 0);
    assert.deepEqual(JSON.parse(box.dropIn ?? ""), {
      lines: { till: { path: "tcp:127.0.0.1:8" }, "till-2": { path: box.device, baudRate: 115_200 } },
      services: { qr: { line: "till" }, bank: { line: "till-2" } },
    });
  }),
);

started("posline setup writes nothing where a later drop-in sets the same otherwise, and names it", () =>
  withBox({ ...whole, services: ["bank"] }, async (box) => {
    box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"bank":{"line":"till"}}}');
    const later = join(dirname(box.dropInFile), "z.json");
    mkdirSync(dirname(later));
    writeFileSync(later, '{"lines":{"till":{"path":"/dev/gone"}}}');
    const refused = refusal(/z\.json comes after .*terminal\.json, and sets lines\.till\.path: correct it by hand$/);
    await assert.rejects(box.run({ line: box.device, yes: true }, undefined), refused);
    assert.equal(box.dropIn, undefined);
  }),
);

started("posline setup waits for a device if a line is away, though another line has its own", async () => {
  const box = new SetupBox({ ...whole, services: ["bank"] });
  box.write(
    '{"lines":{"net":{"path":"tcp:127.0.0.1:9"},"till":{"path":"/dev/gone"}},"services":{"qr":{"line":"net"},"bank":{"line":"till"}}}',
  );
  try {
    const running = box.run({}, ["yes"]);
    await box.saying(/Plug the terminal in/);
    box.plug();
    assert.equal(await running, 0);
    const { config } = await loadConfig({ env: {}, flags: { config: box.file } });
    assert.deepEqual([config.lines["net"]?.path, config.lines["till"]?.path], ["tcp:127.0.0.1:9", box.byId]);
  } finally {
    box.remove();
  }
});

started("posline setup of a file that can't be used says what is wrong with it, and sends nothing", () =>
  withBox(whole, async (box) => {
    box.write('{"lines":{"till":{"path":"/dev/x","boud":1}},"services":{"bank":{"line":"till"}}}');
    await assert.rejects(box.run({ line: box.device, yes: true }, undefined), /lines\.till\.boud/);
    assert.deepEqual(box.heard, []);
  }),
);

started("posline setup on an installed box has the service read the file, and tests each service through it", async () => {
  const asked: string[] = [];
  const server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.setHeader("Content-Type", "application/json").end(probeReplies.bankSupported);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  // A server that listens on TCP has an address of that kind.
  const { port } = server.address() as AddressInfo;
  const shown = "LoadState=loaded\nActiveState=active\n";
  const box = new SetupBox({ ...whole, services: ["bank"] }, { command: async () => ({ ran: true, code: 0, out: shown }) });
  box.plug();
  try {
    box.write(`{"lines":{"till":{"path":"/dev/gone"}},"services":{"bank":{"line":"till","host":"127.0.0.1","port":${port}}}}`);
    assert.equal(await box.run({ line: box.device, yes: true }, undefined), 0);
    assert.deepEqual(box.acted, ["systemctl reload posline.service"]);
    assert.match(box.said.join(""), /Test: bank answered \/supported_operations in \d+ ms through posline/);
    assert.equal(asked.length, 1);
  } finally {
    box.remove();
    server.close();
    server.closeAllConnections();
  }
});

started("posline setup asks nothing of a terminal that a running posline has and hears: nothing to change", () =>
  withBox(whole, async (box) => {
    box.box.write("proc/900/comm", "node\n");
    box.box.write("proc/900/cmdline", "node\0/usr/bin/posline\0serve\0");
    box.box.write("proc/900/cgroup", "0::/system.slice/session.scope\n");
    box.heldBy(900);
    const lines = { till: { state: "idle", device: { path: box.device } } };
    box.status = { lines, services: {} };
    const config = { lines: { till: { path: box.device } }, services: { bank: { line: "till" } }, admin: {} };
    box.write(JSON.stringify(config));
    assert.equal(await box.run({}, []), 0);
    assert.match(box.said.join(""), /posline \(process 900\) says: line till is idle/);
    assert.deepEqual(box.heard, []);
    lines.till.state = "down";
    box.said.length = 0;
    await assert.rejects(box.run({}, []), refusal(/can't be tested/));
    assert.deepEqual(box.heard, []);
  }),
);

started("posline setup --line with a name that the file hasn't is wrong usage, and names the lines that there are", () =>
  withBox(whole, async (box) => {
    box.write('{"lines":{"till":{"path":"/dev/gone"}},"services":{"bank":{"line":"till"}}}');
    const refused = /^Cannot set up: --line: .*posline\.json has no line tilt: its lines are till$/;
    await assert.rejects(box.run({ line: "tilt", yes: true }, undefined), { message: refused, exitCode: 64 });
    assert.deepEqual(box.heard, []);
  }),
);
