import { tcpBench } from "../../line/benches.ts";
import { testExchange } from "../../line/exchange.ts";

/** Tests src/line/line.ts over src/device/tcp-port.ts. */

testExchange(tcpBench, "a line over TCP");
