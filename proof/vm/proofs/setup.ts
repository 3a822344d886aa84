import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type BoxProof, seconds } from "../proof.ts";
import { merchantId } from "../terminal.ts";

const file = "/etc/posline/posline.json";

/** From the package's own file to a terminal that is tested through the service, with nobody at the keyboard and the cable plugged in last. */
export const setup: BoxProof = {
  name: "setup",
  shows:
    "ttyUSB0 plugged in while posline setup waits: found, written, taken by the service, tested; a second run changes nothing",
  isFirst: true,
  async run({ box, figure }) {
    const { guest, terminal } = box;
    await terminal.unplug();
    await guest.until("ls /dev/ttyUSB0 2>&1", /No such file/);
    await guest.sh("rm -f /etc/posline/credentials/*");
    await guest.sh(`cat > ${file} <<'END'\n${readFileSync("systemd/posline.json", "utf8")}END`);
    await guest.sh(
      `chgrp posline ${file}; chmod 640 ${file}; systemctl restart posline; echo ${merchantId} > /root/merchant-id`,
    );
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
    const { lines } = JSON.parse(await guest.sh(`cat ${file}`));
    assert.match(lines.till.path, /^\/dev\/serial\/by-id\/usb-/);
    assert.equal(await guest.sh(`stat -c '%U:%G %a' ${file}`), "root:posline 640");
    assert.equal(await guest.sh("stat -c '%U:%G %a' /etc/posline/credentials/merchant-id"), "root:root 640");
    await box.answers("READY");
    const written = await guest.sh(`md5sum ${file}`);
    // The emulated processor may be too slow for the first question to the service.
    await guest.until("posline setup --yes", /says: line till is idle.*: nothing to change/);
    assert.equal(await guest.sh(`md5sum ${file}`), written);
  },
};
