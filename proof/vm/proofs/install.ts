import assert from "node:assert/strict";
import { type Box, checkOf, fiscalForm, ports, saleOf } from "../box.ts";
import { type BoxProof, type BoxStage, seconds } from "../proof.ts";

/** The package is put into a clean box, and posline relays through a real ttyUSB0 at the slowest and the usual speed. */

const adminPort = 8880;

/** Exposure by `systemd-analyze security` that the units may have. */
const exposureMax = { "posline.service": 0.7, "posline-gateway.service": 1.5 } as const;

export const install: BoxProof = {
  name: "install",
  shows: "the package on a clean box: active, listening, hardened; the right bytes through ttyUSB0 at 9600 and 115200 baud",
  isShort: true,
  isFirst: true,
  async run(stage) {
    const { box, figure } = stage;
    const { guest } = box;
    await assertInstalled(stage);
    figure(
      `posline ${await guest.sh("posline --version")}, healthz ${await guest.sh(`curl -sf http://127.0.0.1:${adminPort}/healthz`)}`,
    );
    await box.entrust();
    const fiscal = fiscalForm({ documentExtID: "F-1", items: [], payments: {} });
    for (const baudRate of [9_600, 115_200]) {
      await box.configure({ baudRate });
      // The second speed without a start, which takes Node ten seconds here.
      await guest.sh(`systemctl ${baudRate === 9_600 ? "restart" : "reload"} posline`);
      await box.terminal.unplug();
      box.terminal.plug(baudRate);
      await box.answers("READY");
      if (baudRate === 9_600) await assertRules(stage);
      const key = `I-${baudRate}`;
      await assertRelayed(box, "bank", "/sale", saleOf(key));
      await box.call("bank", "/check", checkOf(key));
      const [bytes, ms] = await assertRelayed(box, "bank", "/check", checkOf(key));
      await assertRelayed(box, "qr", "/check", checkOf(key));
      await assertRelayed(box, "fiscal", "/sale", fiscal);
      const speed = await guest.sh(`stty -F ${await box.device()} speed`);
      assert.equal(Number(speed), baudRate, "the tty's speed");
      const adapter = box.machine.baudRates().at(-1) ?? 0;
      assert.ok(Math.abs(adapter / baudRate - 1) < 0.01, `the driver has set the adapter to ${adapter} baud`);
      figure(
        `${baudRate} baud (the adapter's divisor makes ${adapter}): the terminal's bytes, to the last; ${bytes} in ${seconds(ms)}`,
      );
    }
    await assertIgnored(stage);
    await assertTapped(stage);
  },
};

const tapSocket = "/run/posline/tap.sock";

/** The socket for unmasked taps: nothing opens it by itself; then it is root's and the group's, and shows what is on the line. */
async function assertTapped({ box, figure }: BoxStage): Promise<void> {
  const { guest } = box;
  assert.equal((await guest.run(`test -e ${tapSocket}`)).code, 1, "it isn't there before it is started");
  await guest.sh("systemctl stop posline.service; systemctl start posline-tap.socket posline.service");
  assert.equal(await guest.sh("systemctl is-active posline-tap.socket posline.service"), "active\nactive");
  const rights = await guest.sh(`stat -c '%U:%G %a' ${tapSocket}`);
  assert.equal(rights, "root:posline 660");
  const other = await guest.run("runuser -u nobody -- posline tap --unmask");
  assert.equal(other.code, 69, other.out);
  assert.match(other.out, /only root and members of the group posline may/);
  const tap = await guest.start("timeout 60 posline tap --unmask | grep -m 1 TAPPED-1");
  await guest.until("journalctl -o cat -u posline -n 20 --no-pager", /an unmasked tap was connected/);
  await box.answers("TAPPED-1");
  const { out: frame } = await tap.ended;
  assert.match(frame, /"pay_id":"TAPPED-1"/);
  // The next proof begins with a start of the service, without it.
  await guest.sh("systemctl stop posline-tap.socket posline.service");
  assert.equal((await guest.run(`test -e ${tapSocket}`)).code, 1, "it goes with its unit");
  figure(`posline-tap.socket: ${rights}; posline tap --unmask: ${frame.trim().slice(0, 100)}`);
}

/** An adapter that the administrator's rule keeps out stays what it is without posline; without the rule it is posline's again. */
async function assertIgnored({ box, figure }: BoxStage): Promise<void> {
  const { guest, terminal } = box;
  const rule = "/etc/udev/rules.d/59-posline.rules";
  const ownerAfterReplug = async () => {
    await guest.sh("udevadm control --reload");
    await terminal.unplug();
    await guest.until("ls /dev/ttyUSB*", /No such file/);
    terminal.plug(115_200);
    return (await guest.until("udevadm settle; stat -c '%U %G' /dev/ttyUSB*", /^\w+ dialout$/m)).trim();
  };
  await guest.sh(`echo 'SUBSYSTEM=="tty", KERNEL=="ttyUSB*", ENV{POSLINE_IGNORE}="1"' > ${rule}`);
  const ignored = await ownerAfterReplug();
  assert.equal(ignored, "root dialout", "posline's rule leaves the adapter alone");
  await guest.sh(`rm ${rule}`);
  assert.equal(await ownerAfterReplug(), "posline dialout", "without the rule it is posline's");
  await box.answers("KEPT");
  figure(`udev: ENV{POSLINE_IGNORE}="1" in ${rule}: ${ignored}`);
}

/** What a person sees after `dpkg -i`. */
export async function assertInstalled({ box: { guest }, figure }: BoxStage): Promise<void> {
  assert.equal(await guest.sh("systemctl is-active posline.service posline.socket"), "active\nactive");
  assert.equal(await guest.sh("systemctl is-enabled posline.service posline.socket"), "enabled\nenabled");
  assert.equal(await guest.sh("stat -c '%U:%G %a' /etc/posline/posline.json"), "root:posline 640");
  const listening = await guest.sh("ss -Hltn | awk '{ print $4 }'");
  for (const port of [...Object.values(ports), adminPort])
    assert.match(listening, new RegExp(`^127\\.0\\.0\\.1:${port}$`, "m"));
  for (const [unit, most] of Object.entries(exposureMax)) {
    const told = await guest.sh(`systemd-analyze security --no-pager ${unit} | tail -1`);
    const exposure = Number(/: (\d+\.\d+)/.exec(told)?.[1]);
    assert.ok(exposure <= most, `${told}: ${most} is the most`);
    figure(`${unit}: exposure ${exposure} (${most} at most)`);
  }
}

/** What the package's udev rules have made of the adapter. */
async function assertRules({ box, figure }: BoxStage): Promise<void> {
  const { guest } = box;
  await guest.sh("udevadm verify /usr/lib/udev/rules.d/60-posline.rules /usr/lib/udev/rules.d/91-posline-brltty.rules");
  const tty = await box.device();
  const device = `/sys/class/tty/${tty.slice("/dev/".length)}/device`;
  const facts = {
    owner: await guest.sh(`stat -c '%U %G' ${tty}`),
    latencyMs: await guest.sh(`cat ${device}/latency_timer`),
    autosuspend: await guest.sh(`cat ${device}/../../power/control`),
    modemManager: await guest.sh(`udevadm info --query=property --property=ID_MM_DEVICE_IGNORE --value ${tty}`),
  };
  assert.deepEqual(facts, { owner: "posline dialout", latencyMs: "1", autosuspend: "on", modemManager: "1" });
  figure(`udev: ${JSON.stringify(facts)}`);
}

/** Asks, and compares what the till got with what the terminal wrote, byte for byte. */
export async function assertRelayed(
  box: Box,
  service: keyof typeof ports,
  route: string,
  body: string,
): Promise<readonly [bytes: number, ms: number]> {
  const asked = box.terminal.next(route);
  const called = await box.call(service, route, body);
  assert.equal(called.status, 200, `${service} ${route}: ${called.body.toString()}`);
  assert.equal(called.outcome, "answered");
  const { answer } = await asked;
  assert.deepEqual(called.body, answer);
  return [called.body.length, called.ms];
}
