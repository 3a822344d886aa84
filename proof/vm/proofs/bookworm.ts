import { Box, checkOf, saleOf } from "../box.ts";
import { imageOf } from "../image.ts";
import { standaloneOf } from "../packages.ts";
import { type BareProof, seconds } from "../proof.ts";
import { assertInstalled, assertRelayed } from "./install.ts";

/** Debian 12: systemd 252, no Node that posline could use, and so the package that brings its own. */

export const bookworm: BareProof = {
  name: "bookworm",
  shows: "posline-standalone on Debian 12 without Node: active, listening, hardened; unplug and replug",
  isBare: true,
  async run({ isShort, figure }) {
    const box = new Box(await imageOf("bookworm"));
    const { guest, terminal } = box;
    try {
      figure(`booted in ${seconds(await box.machine.boot())}, ${(await guest.sh("systemctl --version")).split("\n")[0]}`);
      await guest.put(await standaloneOf("amd64"), "/root/posline.deb");
      await guest.sh("dpkg -i /root/posline.deb </dev/null", 300_000);
      await assertInstalled({ box, isShort, figure });
      await box.ready();
      const [bytes, ms] = await assertRelayed(box, "bank", "/sale", saleOf("B-1"));
      figure(`the terminal's bytes through ttyUSB0, ${bytes} in ${seconds(ms)}`);
      const sale = await box.saleInFlight("B-2");
      await terminal.unplug();
      const { status, outcome } = await sale.ended;
      terminal.release();
      terminal.plug();
      const backMs = await box.answers("B-2");
      figure(`unplugged mid-sale: ${status} ${outcome}; answered ${seconds(backMs)} after the plug`);
      await assertRelayed(box, "bank", "/check", checkOf("B-2"));
    } catch (error) {
      console.log(await box.log());
      throw error;
    } finally {
      await box.remove();
    }
  },
};
