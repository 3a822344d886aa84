import assert from "node:assert/strict";
import { adapterById } from "../machine.ts";
import type { BoxProof } from "../proof.ts";
import { CabledTill } from "../till.ts";

/** The other way round: a till at the other end of the cable, and services that are reached over HTTP. */

/** Where the emulator answers inside the box, since the bridge's ports are PID 1's. */
const ports = { bank: 9888, qr: 9887, fiscal: 9008 } as const;

const config = {
  lines: { till: { path: adapterById } },
  services: Object.fromEntries(
    Object.entries(ports).map(([service, port]) => [service, { line: "till", upstream: `http://127.0.0.1:${port}` }]),
  ),
};

export const gateway: BoxProof = {
  name: "gateway",
  shows: "posline-gateway.service under its hardening: what a till asks through ttyUSB0 is answered by services over HTTP",
  async run({ box, figure }) {
    const { guest, terminal, machine } = box;
    await box.installLab();
    await guest.sh("systemctl stop posline.service");
    await terminal.unplug();
    const env = Object.entries(ports).map(([service, port]) => `-E POSLINE_${service.toUpperCase()}_PORT=${port}`);
    await guest.sh(`systemd-run -q -u emulator ${env.join(" ")} posline emulate --no-admin`);
    await guest.until(`curl -s -X POST http://127.0.0.1:${ports.bank}/supported_operations`, /success/);
    const till = new CabledTill(machine.cable, 0);
    try {
      await guest.write("/etc/posline/gateway.json", JSON.stringify(config));
      await guest.sh("systemctl start posline-gateway.service");
      await guest.until("journalctl -o cat -b -u posline-gateway --no-pager", /opened/);
      const answer = await till.ask('/sale\n{"pay_id":"W-1","amount":1500,"currency_name":"EUR"}', "", 20_000);
      assert.match(answer ?? "no answer", /"success"/);
      const [status, security] = [
        await guest.sh("systemctl show -P StatusText posline-gateway.service"),
        await guest.sh("systemctl is-active posline-gateway.service"),
      ];
      figure(`a sale over the line: ${answer}; ${security}: ${status}`);
    } finally {
      till.hangUp();
      await guest.run(
        "systemctl stop posline-gateway.service emulator.service; rm -f /etc/posline/gateway.json; dpkg -r posline-lab",
      );
    }
  },
};
