import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createReadStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { freePorts } from "../../../test/support/free-port.ts";
import { Box, saleOf } from "../box.ts";
import { found, must, need, packages, projectDir, ran } from "../host.ts";
import { imageOf } from "../image.ts";
import { packageOf } from "../packages.ts";
import type { BareProof } from "../proof.ts";

/**
 * Three boxes as docs/fleet.md says, and this machine as their centre: each sends its figures by Prometheus as an agent and its log by
 * systemd-journal-upload. On the second one the cable is pulled in the middle of a sale.
 */

const names = ["kiosk-1", "kiosk-2", "kiosk-3"] as const;
const centre = "10.0.2.2";
const inDoubt = "F-2";

export const fleet: BareProof = {
  name: "fleet",
  shows: "three boxes and a centre: a payment in doubt on one of them, by dashboard, collected log, day and explain",
  isBare: true,
  async run({ figure }) {
    need({ ...packages.machine, ...packages.centre });
    const folder = mkdtempSync(join(tmpdir(), "posline-fleet-"));
    const boxes = await imageOf("trixie").then((image) => names.map((name) => ({ name, box: new Box(image, true) })));
    const hub = await Centre.start(folder);
    try {
      for (const { name, box } of boxes) await enrol(name, box, hub);
      for (const { name, box } of boxes) {
        const { status } = await box.call("bank", "/sale", saleOf(`${name}-1`));
        assert.equal(status, 200, name);
      }
      const { box: second } = boxes[1] ?? assert.fail();
      const sale = await second.saleInFlight(inDoubt);
      await second.terminal.unplug();
      assert.equal((await sale.ended).outcome, "unknown");

      const dashboard = readFileSync(join(projectDir, "scripts/prometheus/grafana-dashboard.json"), "utf8");
      const [, row = '""'] = /"expr": ("sort_desc\(\(posline_journal_oldest_unknown.*"),?$/m.exec(dashboard) ?? [];
      const query = (JSON.parse(row) as string).replaceAll("$instance", ".*");
      const ages = await hub.until(query, (found) => found.length === names.length && (found[0]?.age ?? 0) > 0);
      figure(`the dashboard's row a box: ${ages.map(({ box, age }) => `${box} ${age.toFixed(0)} s`).join(", ")}`);
      assert.deepEqual([ages[0]?.box, ...ages.slice(1).map(({ age }) => age)], ["kiosk-2", 0, 0]);

      const posline = [process.execPath, join(projectDir, "dist", "posline.cjs")] as const;
      const log = `journalctl -o cat -D ${hub.logs} -u posline.service _HOSTNAME=kiosk-2 | ${posline.join(" ")} logs --outcome unknown`;
      const lines = await hub.untilSaid(log, new RegExp(inDoubt));
      figure(`the collected log of kiosk-2: ${lines.trim()}`);

      const journals = join(folder, "journals");
      for (const { name, box } of boxes) {
        mkdirSync(join(journals, name), { recursive: true });
        const packed = await box.guest.sh("gzip -c /var/lib/posline/journal | base64 -w0");
        writeFileSync(join(journals, name, "journal"), gunzipSync(Buffer.from(packed, "base64")));
      }
      const config = join(folder, "posline.json");
      const services = { bank: { line: "till" } };
      writeFileSync(config, JSON.stringify({ lines: { till: { path: "/dev/null" } }, services }));
      const day = ran([...posline, "day", "--directory", journals, "--config", config]);
      figure(`posline day --directory: ${day.stdout.trim().split("\n").slice(-3).join(" / ")}`);
      assert.equal(day.status, 75, day.stderr);
      assert.match(day.stdout, new RegExp(`${inDoubt} .*unknown: `));
      const explained = ran([...posline, "explain", inDoubt, "--directory", journals, "--config", config]);
      assert.equal(explained.status, 75, explained.stderr);
      assert.match(explained.stdout, /^kiosk-2: bank \/sale of 15\.00 EUR, key F-2$/m);
    } finally {
      hub.stop();
      await Promise.all(boxes.map(({ box }) => box.remove()));
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Makes a box one of the fleet: named, installed, and sending. */
async function enrol(name: string, box: Box, hub: Centre): Promise<void> {
  const { guest } = box;
  await box.machine.boot();
  await guest.put(await packageOf("amd64"), "/root/posline.deb");
  await guest.sh("dpkg -i /root/posline.deb </dev/null", 300_000);
  await box.ready();
  // By now udev has given the card its name.
  const card = "$(ls /sys/class/net | grep -v lo | head -1)";
  await guest.sh(`hostname ${name} && ip link set ${card} up && ip address add 10.0.2.15/24 dev ${card}`);
  await guest.sh(`curl -sSf -o /root/prometheus http://${centre}:${hub.filePort}/ && chmod +x /root/prometheus`, 300_000);
  const job = { job_name: "posline", static_configs: [{ targets: ["127.0.0.1:8880"] }] };
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", external_labels: { box: name } },
    scrape_configs: [job],
    remote_write: [{ url: `http://${centre}:${hub.figuresPort}/api/v1/write` }],
  };
  // JSON is YAML.
  await guest.write("/root/prometheus.yml", JSON.stringify(config));
  const agent = "--enable-feature=agent --config.file=/root/prometheus.yml --storage.agent.path=/root/agent";
  await guest.sh(`systemd-run -q -u agent /root/prometheus ${agent}`);
  const upload = `--url=http://${centre}:${hub.logPort} --save-state=/root/upload`;
  await guest.sh(`systemd-run -q -u upload /usr/lib/systemd/systemd-journal-upload ${upload}`);
}

/** What boxes send to: a Prometheus and a systemd-journal-remote, on ports of this machine; and Prometheus' program, for the agents. */
class Centre {
  readonly filePort: number;
  readonly figuresPort: number;
  readonly logPort: number;
  readonly logs: string;
  readonly #stops: (() => void)[] = [];

  private constructor(folder: string, [filePort = 0, figuresPort = 0, logPort = 0]: readonly number[]) {
    [this.filePort, this.figuresPort, this.logPort, this.logs] = [filePort, figuresPort, logPort, join(folder, "logs")];
    mkdirSync(this.logs);
    const program = must(["realpath", found("prometheus") ?? ""]).trim();
    const files = createServer((_, response) => createReadStream(program).pipe(response)).listen(filePort, "127.0.0.1");
    this.#stops.push(() => files.close());
    const config = join(folder, "prometheus.yml");
    writeFileSync(config, "{}");
    this.#start("prometheus", [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${join(folder, "data")}`, "--web.enable-remote-write-receiver"],
      ...[`--web.listen-address=127.0.0.1:${figuresPort}`, "--log.level=error"],
    ]);
    this.#start("systemd-journal-remote", [`--listen-http=127.0.0.1:${logPort}`, `--output=${this.logs}`]);
  }

  static async start(folder: string): Promise<Centre> {
    return new Centre(folder, await freePorts(3));
  }

  #start(program: string, args: readonly string[]): void {
    const child = spawn(found(program) ?? program, args, { stdio: ["ignore", "inherit", "inherit"] });
    this.#stops.push(() => child.kill("SIGKILL"));
  }

  /** A query's boxes and values, in their order, once they are as wanted. */
  async until(query: string, isWanted: (found: readonly { box: string; age: number }[]) => boolean) {
    const url = `http://127.0.0.1:${this.figuresPort}/api/v1/query`;
    for (const limit = AbortSignal.timeout(60_000); ; await sleep(500)) {
      const answer = await fetch(url, { method: "POST", body: new URLSearchParams({ query }) }).catch(() => undefined);
      // Its own API's form.
      const { data } = ((await answer?.json()) ?? {}) as {
        data?: { result: { metric: { box: string }; value: [number, string] }[] };
      };
      const all = (data?.result ?? []).map(({ metric: { box }, value: [, age] }) => ({ box, age: Number(age) }));
      if (isWanted(all)) return all;
      if (limit.aborted) throw new Error(`Cannot go on: ${query} gives ${JSON.stringify(all)}`);
    }
  }

  /** What a command of this machine says, once it says that. */
  async untilSaid(command: string, wanted: RegExp): Promise<string> {
    for (const limit = AbortSignal.timeout(60_000); ; await sleep(500)) {
      const { stdout, stderr } = ran(["sh", "-c", command]);
      if (wanted.test(stdout)) return stdout;
      if (limit.aborted) throw new Error(`Cannot go on: ${command} says ${stdout}${stderr}`);
    }
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }
}
