import { test } from "node:test";
import { relayBench, tcpBench } from "../../line/benches.ts";
import { testExchange } from "../../line/exchange.ts";
import { absent } from "../../support/relay.ts";

/**
 * Tests src/line/line.ts, src/device/tcp-port.ts. At the other end is a terminal, or a program of Debian's with a tty.
 */

testExchange(tcpBench, "a line over TCP");

for (const program of ["ser2net", "socat"] as const) {
  const skip = absent(program);
  if (skip === false) testExchange(() => relayBench(program), `${program} and a real tty`);
  else test(`Line over ${program} and a real tty`, { skip }, () => {});
}
