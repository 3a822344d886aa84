import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Box } from "../box.ts";
import { type BoxProof, seconds } from "../proof.ts";
import { merchantId } from "../terminal.ts";

const file = "/etc/posline/posline.json";
/** What a setup writes. */
const dropIn = "/etc/posline/posline.d/terminal.json";

/** The box as the package leaves it, and the cable not plugged in. */
async function fresh({ guest, terminal }: Box): Promise<void> {
  await terminal.unplug();
  await guest.until("ls /dev/ttyUSB0 2>&1", /No such file/);
  await guest.sh("rm -rf /etc/posline/credentials/* /etc/posline/posline.d");
  await guest.sh(`cat > ${file} <<'END'\n${readFileSync("systemd/posline.json", "utf8")}END`);
  await guest.sh(`chgrp posline ${file}; chmod 640 ${file}; systemctl restart posline`);
}

/** From the package's own file to a terminal that is tested through the service, with nobody at the keyboard and the cable plugged in last. */
export const setup: BoxProof = {
  name: "setup",
  shows:
    "ttyUSB0 plugged in while posline setup waits: found, written, taken by the service, tested; a second run changes nothing; the same from the status page",
  isFirst: true,
  async run({ box, figure }) {
    const { guest, terminal } = box;
    await fresh(box);
    await guest.sh(`echo ${merchantId} > /root/merchant-id`);
    const command = "posline setup --yes --merchant-id-file /root/merchant-id";
    const job = await guest.start(`${command} | tee /root/setup.log; exit \${PIPESTATUS[0]}`, 180_000);
    await guest.until("cat /root/setup.log", /Plug the terminal in/);
    const began = performance.now();
    terminal.plug(115_200);
    const { code, out } = await job.ended;
    figure(`from the plug to the last test ${seconds(performance.now() - began)}`);
    assert.equal(code, 0, out);
    for (const service of ["fiscal", "bank", "qr"])
      assert.match(out, new RegExp(`^Test: ${service} answered .* through posline`, "m"));
    const { lines } = JSON.parse(await guest.sh(`cat ${dropIn}`));
    assert.match(lines.till.path, /^\/dev\/serial\/by-id\/usb-/);
    assert.equal(await guest.sh(`stat -c '%U:%G %a' ${dropIn}`), "root:posline 640");
    assert.equal(await guest.sh("stat -c '%U:%G %a' /etc/posline/credentials/merchant-id"), "root:root 640");
    await box.answers("READY");
    const written = await guest.sh(`md5sum ${file} ${dropIn}`);
    // The emulated processor may be too slow for the first question to the service.
    await guest.until("posline setup --yes", /says: line till is idle.*: nothing to change/);
    assert.equal(await guest.sh(`md5sum ${file} ${dropIn}`), written);
    await fromPage(box, figure);
  },
};

/** The same from the status page, by its requests: root's part is the helper's, and the service is restarted for the secret. */
async function fromPage(box: Box, figure: (text: string) => void): Promise<void> {
  const { guest, terminal } = box;
  await fresh(box);
  const setup = "http://localhost:8880/setup";
  const code = `"{\\"code\\":\\"$(posline page | sed 's/.*#code=//')\\"}"`;
  const exchanged = `curl -s --data-raw ${code} http://localhost:8880/page/session | sed 's/.*"session":"//; s/".*//'`;
  // One of its own for each: a restart ends them.
  const post = (body: object) =>
    guest.sh(`curl -s -H "Authorization: Bearer $(${exchanged})" --data-raw '${JSON.stringify(body)}' ${setup}`);
  /** Waits for a question, and gives its number. */
  const asked = async (what: string) => {
    const view = await guest.until(`curl -s ${setup}`, new RegExp(`"for":"${what}"`));
    return JSON.parse(view)
      .messages.filter((each: object) => "ask" in each)
      .at(-1).ask;
  };
  const refused = "(runuser -u nobody -- curl -s --unix-socket /run/posline/setup.sock http://x/ || echo refused $?)";
  assert.match(await guest.sh(refused), /refused 7/);
  assert.equal(await guest.sh("stat -c '%U:%G %a' /run/posline/page/key"), "posline:posline 640");
  assert.match(await guest.sh("runuser -u nobody -- posline page 2>&1 || echo refused $?"), /EACCES.*sudo[\s\S]*refused 69/);
  assert.match(await guest.sh(`curl -s --data-raw '{}' ${setup}`), /open the address that sudo posline page prints/);
  assert.match(await post({}), /"isRunning":true/);
  assert.match(await post({}), /another setup is under way/);
  await asked("device");
  assert.match(await guest.sh("systemctl list-units 'posline-setup@*' --no-legend"), /running/);
  figure(`the helper is exposed to ${await guest.sh("systemd-analyze security 'posline-setup@0' --no-pager | tail -1")}`);
  const began = performance.now();
  terminal.plug(115_200);
  await post({ ask: await asked("merchant-id"), answer: merchantId });
  const write = await asked("write");
  const pid = await guest.sh("systemctl show -P MainPID posline");
  await post({ ask: write, answer: "yes" });
  await guest.until("systemctl show -P MainPID posline", new RegExp(`^(?!0$|${pid}$)\\d+$`));
  for (const service of ["fiscal", "bank", "qr"]) {
    await guest.until(`curl -s --data-raw '{"service":"${service}"}' http://localhost:8880/test`, /"outcome":"answered"/);
  }
  figure(`from the status page, from the plug to the last test ${seconds(performance.now() - began)}`);
  assert.equal(await guest.sh(`stat -c '%U:%G %a' ${dropIn}`), "root:posline 640");
  assert.equal(await guest.sh("stat -c '%U:%G %a' /etc/posline/credentials/merchant-id"), "root:root 640");
  await guest.until("systemctl list-units 'posline-setup@*' --no-legend", /^$/);
  await guest.sh("systemctl mask --now posline-setup.socket");
  await post({});
  await guest.until(`curl -s ${setup}`, /setup.sock can't be used \((?:ENOENT|ECONNREFUSED)\)/);
  await guest.sh("systemctl unmask posline-setup.socket && systemctl start posline-setup.socket");
  assert.doesNotMatch(await guest.sh("journalctl -u posline -u 'posline-setup@*' -o cat"), new RegExp(merchantId));
}
