import assert from "node:assert/strict";
import { type Box, endedAs, saleOf } from "../box.ts";
import type { BoxProof } from "../proof.ts";

/** The disk under the journal of money is full, and then broken. */

/** Mounts a small disk over the service's folder, in a file that can be taken away under it. */
const mounted = [
  "systemctl stop posline.service",
  "mkdir -p /mnt/small && mount -t tmpfs -o size=96M none /mnt/small",
  "truncate -s 64M /mnt/small/disk && mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=1 /mnt/small/disk",
  "mount -o loop /mnt/small/disk /var/lib/posline && chown posline:posline /var/lib/posline && chmod 700 /var/lib/posline",
].join(" && ");
const unmounted = "systemctl stop posline.service; umount /var/lib/posline; umount /mnt/small; systemctl start posline.service";

export const disk: BoxProof = {
  name: "disk",
  shows: "a full disk, and one that fails: relays go on, loudly; with onFailure refuse nothing is sent unrecorded",
  async run({ box, figure }) {
    const { guest } = box;
    await guest.sh(mounted);
    try {
      // Full before the journal has its place.
      await guest.run("head -c 70000000 /dev/zero > /var/lib/posline/filler; sync");
      await guest.sh("systemctl start posline.service");
      await box.answers("READY");
      await assertSold(box, "D-1", [200, "answered"]);
      figure(`full: sale 200 answered; ${await loudest(box)}`);

      await box.configure({}, { journal: { onFailure: "refuse" } });
      await guest.sh("systemctl restart posline.service");
      await box.answers("READY");
      figure(`full, and onFailure "refuse": sale ${await assertSold(box, "D-2", [503, "not-sent"])}`);
      await guest.sh("rm /var/lib/posline/filler; sync");
      await guest.until(`curl -s -o /dev/null -w '%{http_code}' -d '${saleOf("D-3")}' http://127.0.0.1:8888/sale`, /^200$/);
      figure("room again: sale 200 answered, without a restart");

      // The journal has its place by now, and the disk under it takes nothing any more.
      await box.configure();
      await guest.sh("systemctl restart posline.service");
      await box.answers("READY");
      await guest.run("truncate -s 4096 /mnt/small/disk; head -c 120000000 /dev/zero > /mnt/small/filler");
      for (const key of ["D-4", "D-5"]) await assertSold(box, key, [200, "answered"]);
      figure(`failing: sales 200 answered; ${await loudest(box)}`);
    } finally {
      await guest.run(unmounted);
    }
  },
};

/** Sells, and compares how that ended, and whether the terminal was asked. @returns the ending, and what posline says. */
async function assertSold(box: Box, key: string, ending: readonly [number, string]): Promise<string> {
  const { status, outcome, body } = await endedAs(box.call("bank", "/sale", saleOf(key)), ...ending);
  assert.equal(box.terminal.count("/sale", `"${key}"`), status === 200 ? 1 : 0);
  return `${status} ${outcome} ${body.toString()}`;
}

/** What journald has of the journal of money at priority error since this process began. */
async function loudest({ guest }: Box): Promise<string> {
  const errors = "journalctl -o cat -p err --no-pager _PID=$(systemctl show -P MainPID posline.service)";
  const log = await guest.until(errors, /journal/);
  return log.split("\n").at(-1) ?? "";
}
