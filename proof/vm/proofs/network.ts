import assert from "node:assert/strict";
import { blocks, page } from "../../../test/e2e/docs.ts";
import { type Box, checkOf, endedAs, fiscalForm, saleOf } from "../box.ts";
import { type BoxProof, seconds } from "../proof.ts";
import { assertRelayed } from "./install.ts";

/**
 * Lines over TCP under systemd's own network rules. The far end is another box: a network namespace with addresses of its own, at the other
 * end of a virtual cable, so that what the service's unit may reach is judged as on a real network.
 */

/** The far end's address and port are those of docs/network-lines.md, and its texts are used as they stand. */
const far = { host: "192.168.1.40", port: 4001 } as const;
const line = { path: `tcp:${far.host}:${far.port}`, baudRate: undefined };
/** Another address of the same box, to which the drop-in doesn't let the service. */
const other = "192.168.1.41";
const own = "192.168.1.1";

const unit = "farend.service";
const state = "/root/farend.json";
const dropIn = "/etc/systemd/system/posline.service.d/override.conf";
const ser2netConf = "/etc/ser2net.yaml";

/** Exposure by `systemd-analyze security` that the service may have with the drop-in. */
const exposureMax = 1.3;
/** Milliseconds from the far end's return to the line's being open: a try each second, and what an emulated processor adds. */
const reopenedMs = 2_000;

const textOf = (language: string, has: string) => {
  const block = blocks(language, page("docs/network-lines.md")).find((each) => each.includes(has));
  if (block === undefined) throw new Error(`Cannot go on: docs/network-lines.md has no block with ${has}`);
  assert.ok(block.includes(far.host), `the block with ${has} has another address than ${far.host}`);
  return block;
};

export const network: BoxProof = {
  name: "network",
  shows: "a line over TCP: without the documentation's drop-in the cause is named; with it a sale, cuts, and no other address",
  async run({ box, figure }) {
    const { guest } = box;
    await withFarBox(box, async () => {
      await emulate(box, far.host);
      await box.configure(line);
      await guest.sh("systemctl restart posline.service");
      const needed = textOf("ini", "PrivateNetwork").trim().split("\n");
      for (const [who, said] of await told(box, /may open no connection/)) {
        for (const each of needed) assert.ok(said.includes(each), `${who} says to write ${each}: ${said}`);
        figure(`without the drop-in, ${who}: ${said}`);
      }

      await letOut(box);
      await box.answers("READY");
      const sold = await endedAs(box.call("bank", "/sale", saleOf("N-1")), 200, "answered");
      const exposure = await guest.sh("systemd-analyze security --no-pager posline.service | tail -1");
      figure(`with it: a sale in ${seconds(sold.ms)}; ${exposure}`);
      assert.ok(Number(/: (\d+\.\d+)/.exec(exposure)?.[1]) <= exposureMax, `${exposure}: ${exposureMax} is the most`);

      await cutInFlight(box, figure);
      await assertNoOtherAddress(box, figure);
    });
  },
};

/** What of the service tells a technician why there is no line, each as text. */
async function told({ guest }: Box, cause: RegExp): Promise<ReadonlyMap<string, string>> {
  const ready = await guest.until("curl -s http://127.0.0.1:8880/readyz", cause);
  const log = await guest.until("journalctl -o cat -u posline -n 20 --no-pager", cause);
  // An emulated box may be too slow for the doctor's first question to the service, which is then the first thing that it names.
  const doctor = await guest.until("posline doctor", new RegExp(`^First: [^]*${cause.source}`, "m"));
  return new Map([
    ["/readyz", ready],
    ["the log", log.split("\n").findLast((each) => cause.test(each)) ?? ""],
    ["posline doctor", (/^First: ([\s\S]*)/m.exec(doctor) ?? [])[1] ?? ""],
  ]);
}

/** The far end is killed with a sale in flight that it has carried out, and comes back with what it remembers. */
async function cutInFlight(box: Box, figure: (text: string) => void): Promise<void> {
  const { guest } = box;
  // An amount with this end is carried out and never answered.
  const sale = await box.calling("bank", "/sale", saleOf("N-2", 1531));
  await guest.until(`cat ${state}`, /"N-2"/);
  const beforeMs = await openedLastMs(box);
  const cut = performance.now();
  await guest.sh(`systemctl kill -s KILL ${unit}`);
  const lost = await endedAs(sale.ended, 502, "unknown");
  const lostMs = performance.now() - cut;
  const refused = await endedAs(box.call("bank", "/sale", saleOf("N-3")), 503, "not-sent");
  figure(`the far end is killed: ${lost.body.toString()} after ${seconds(lostMs)}; the next: ${refused.body.toString()}`);

  await emulate(box, far.host);
  const openMs = await reopened(box, beforeMs);
  figure(`the far end is back: the line is open after ${seconds(openMs)}`);
  assert.ok(openMs <= reopenedMs, `${reopenedMs} ms is the most`);
  const settledMs = await box.settled(["N-2"]);
  assert.deepEqual(await box.recorded("N-2"), [{ outcome: "settled", result: "approved" }]);
  const seen = await guest.sh(`grep -o '"N-[0-9]"' ${state} | sort | uniq -c`);
  figure(
    `the sale in doubt is settled as approved after ${seconds(settledMs)}; the terminal remembers: ${seen.replaceAll(/\s+/g, " ")}`,
  );
  assert.match(seen, /^ *1 "N-2"$/m, "carried out once");
  assert.doesNotMatch(seen, /N-3/, "what was not sent never came");
}

/** When a unit's log last had a text, by the guest's clock. */
async function lastMs({ guest }: Box, of: string, text: string): Promise<number> {
  const log = await guest.sh(`journalctl -o cat -u ${of} --no-pager | grep -F '${text}' | tail -1`);
  return Date.parse(/"time":"([^"]+)"/.exec(log)?.[1] ?? "");
}

const openedLastMs = (box: Box) => lastMs(box, "posline.service", '"the device opened');

/**
 * Milliseconds from the far end's listening until the line is open, by the two logs. The far end says that it listens a moment after it does.
 * @param beforeMs When the line opened before.
 */
async function reopened(box: Box, beforeMs: number): Promise<number> {
  const backMs = await lastMs(box, unit, '"posline emulates"');
  for (const limit = AbortSignal.timeout(20_000); ; ) {
    const openMs = await openedLastMs(box);
    if (openMs > beforeMs) return Math.max(0, openMs - backMs);
    if (limit.aborted) throw new Error("Cannot go on: the line isn't open 20 s after the far end's return");
  }
}

/** Only what the drop-in names is reached by the service, though the box itself reaches more. */
async function assertNoOtherAddress(box: Box, figure: (text: string) => void): Promise<void> {
  const { guest } = box;
  await guest.sh(`systemctl stop ${unit}`);
  await emulate(box, other);
  await guest.sh(`timeout 10 bash -c '</dev/tcp/${other}/${far.port}'`);
  await box.configure({ ...line, path: `tcp:${other}:${far.port}` });
  await guest.sh("systemctl reload posline.service");
  const ready = await guest.until("curl -s http://127.0.0.1:8880/readyz", /does not answer/);
  await guest.until("posline doctor", /may open no connection there\s+do: .*IPAddressAllow=192\.168\.1\.41/);
  figure(`another address of the same box: ${ready}`);
}

export const ser2net: BoxProof = {
  name: "ser2net",
  shows:
    "ser2net by the documentation's ser2net.yaml between posline and ttyUSB0: each service, and the adapter pulled and plugged",
  async run({ box, figure }) {
    const { guest, terminal } = box;
    await withFarBox(box, async () => {
      await guest.write(ser2netConf, textOf("yaml", "serialdev"));
      await startFar(box, far.host, `ser2net -n -u -c ${ser2netConf}`);
      await box.configure(line);
      await letOut(box);
      await box.answers("READY");
      const [, ms] = await assertRelayed(box, "bank", "/sale", saleOf("S-1"));
      await assertRelayed(box, "qr", "/check", checkOf("S-1"));
      await assertRelayed(box, "fiscal", "/sale", fiscalForm({ documentExtID: "S-F", items: [], payments: {} }));
      figure(`a sale over ser2net, at 115200 baud: ${seconds(ms)}`);

      const sale = await box.saleInFlight("S-2");
      const pulled = performance.now();
      await terminal.unplug();
      const lost = await endedAs(sale.ended, 502, "unknown");
      figure(`the adapter is pulled: ${lost.body.toString()} after ${seconds(performance.now() - pulled)}`);
      terminal.release();
      const refused = await endedAs(box.call("bank", "/sale", saleOf("S-3")), 503, "not-sent");
      figure(`while it is pulled: ${refused.body.toString()}`);
      const answered = box.answers("S-2");
      terminal.plug();
      figure(`plugged again: answered after ${seconds(await answered)}`);
      const settledMs = await box.settled(["S-2"]);
      assert.deepEqual(await box.recorded("S-2"), [{ outcome: "settled", result: "approved" }]);
      figure(`the sale in doubt is settled as approved after ${seconds(settledMs)}`);
      assert.deepEqual([terminal.count("/sale", '"S-2"'), terminal.count("/sale", '"S-3"')], [1, 0]);
    });
  },
};

/** A box at the other end of a network cable, for as long as something is done with it. */
async function withFarBox(box: Box, act: () => Promise<void>): Promise<void> {
  const { guest } = box;
  const cable = "ip netns add far && ip link add near0 type veth peer name far0 netns far";
  const near = `ip address add ${own}/24 dev near0 && ip link set near0 up`;
  const addresses = [far.host, other].map((address) => `ip -n far address add ${address}/24 dev far0`).join(" && ");
  try {
    await box.installLab();
    await guest.sh(`${cable} && ${near} && ${addresses} && ip -n far link set far0 up && ip -n far link set lo up`);
    await act();
  } finally {
    await guest.run(
      `systemctl stop ${unit}; ip netns delete far; rm -f ${state} ${ser2netConf} ${dropIn}; systemctl daemon-reload; dpkg -r posline-lab`,
    );
  }
}

/** Starts posline's emulator in the far box. */
const emulate = (box: Box, host: string) =>
  startFar(box, host, `posline emulate --line tcp:${host}:${far.port} --no-http --no-admin --state ${state}`);

/** Starts a command in the far box, and waits until it listens. */
async function startFar({ guest }: Box, host: string, command: string): Promise<void> {
  await guest.sh(`systemd-run -q --collect -u ${unit} -p NetworkNamespacePath=/run/netns/far ${command}`);
  await guest.until("ss -N far -Hltn", new RegExp(` ${host}:${far.port} `.replaceAll(".", "\\.")));
}

/** Gives the service a network, as the page says. */
async function letOut({ guest }: Box): Promise<void> {
  await guest.sh(`mkdir -p ${dropIn.replace(/\/[^/]*$/, "")}`);
  await guest.write(dropIn, textOf("ini", "PrivateNetwork"));
  await guest.sh("systemctl daemon-reload; systemctl restart posline.service");
}
