import { memoryBench } from "./benches.ts";
import { testExchange } from "./exchange.ts";

/** Tests src/line/line.ts. */

testExchange(memoryBench, "a line in memory");
