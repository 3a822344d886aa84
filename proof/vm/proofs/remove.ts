import assert from "node:assert/strict";
import type { BoxProof } from "../proof.ts";

/** The package goes, and later its traces. */

export const remove: BoxProof = {
  name: "remove",
  shows: "the package is removed and purged: ports closed, the configuration kept until the purge, nothing left after it",
  isFirst: true,
  async run({ box: { guest }, figure }) {
    await guest.sh("dpkg -r posline", 300_000);
    assert.doesNotMatch(await guest.sh("ss -Hltn"), /:8888 /);
    assert.equal((await guest.run("pgrep -f posline.cjs")).out, "");
    await guest.sh("test -e /etc/posline/posline.json");
    await guest.sh("dpkg -P posline", 300_000);
    const left = await guest.sh(
      "find / -xdev -name '*posline*' -not -path '/root/*' -not -path '/var/log/journal/*' 2>/dev/null || true",
    );
    const failed = await guest.sh("systemctl list-units --all --no-legend 'posline*'");
    figure(`left after the purge: ${left === "" ? "nothing" : left}${failed === "" ? "" : `; units: ${failed}`}`);
    assert.equal(left, "");
  },
};
