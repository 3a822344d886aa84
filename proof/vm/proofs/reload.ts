import assert from "node:assert/strict";
import { endedAs } from "../box.ts";
import { adapterSerial } from "../machine.ts";
import type { BoxProof } from "../proof.ts";
import { assertRelayed } from "./install.ts";

/** The configuration is read anew while a sale is in flight. */

export const reload: BoxProof = {
  name: "reload",
  shows:
    "a valid configuration takes effect without dropping the exchange in flight; an invalid one is refused, with the reason",
  async run({ box, figure }) {
    const { guest, terminal } = box;
    const before = await box.vitals();

    const sale = await box.saleInFlight("L-1");
    await guest.write("/etc/posline/posline.json", '{ "lines": { "till": { "path": "/dev/ttyUSB0", "baudrate": 9600 } } }');
    const refused = await guest.run("systemctl reload posline");
    terminal.release();
    assert.equal((await sale.ended).status, 200, "the exchange in flight ends");
    const log = await guest.until("journalctl -o cat -u posline -n 20 --no-pager", /baudrate/);
    figure(log.split("\n").find((line) => line.includes("baudrate")) ?? `exit code ${refused.code}`);
    await box.call("bank", "/check", '{"pay_id":"L-1"}');
    await assertRelayed(box, "bank", "/check", '{"pay_id":"L-1"}');

    const kept = await box.saleInFlight("L-2");
    await box.configure({ path: `usb:0403:6001:${adapterSerial}`, baudRate: 9_600 });
    await guest.sh("systemctl reload posline");
    terminal.release();
    await endedAs(kept.ended, 200, "answered");
    await terminal.unplug();
    terminal.plug(9_600);
    await box.answers("L-2");
    assert.equal(await guest.sh(`stty -F ${await box.device()} speed`), "9600");
    const after = await box.vitals();
    assert.equal(after.pid, before.pid, "a reload is no restart");
    figure(
      `usb:0403:6001:${adapterSerial} at 9600 baud took effect in process ${after.pid}, and the sale in flight was answered`,
    );
  },
};
