import { memoryBench } from "./benches.ts";
import { testExchange } from "./exchange.ts";

testExchange(memoryBench, "a line in memory");
