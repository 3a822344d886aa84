import { ask, bankConfig, startResponder, type Bridge } from "./bridges.ts";
import { inWorkshop, } from "./processes.ts";
import { benchCpu, freePort, processorMs } from "./machine.ts";
import { writeFileSync, mkdirSync } from "node:fs";
await inWorkshop(async (w) => {
  const port = await freePort(); const [link, responder] = await startResponder(w, "x");
  writeFileSync(w.path("c.json"), bankConfig(link, port, 115200));
  mkdirSync("/tmp/prof", { recursive: true });
  const prof = process.argv[2] === "prof" ? ["--cpu-prof", "--cpu-prof-interval", "100", "--cpu-prof-dir=/tmp/prof"] : [];
  const p = w.start("posline", [process.execPath, ...prof, "/tmp/posdist/posline.cjs", "serve", "--config", w.path("c.json")], { cpu: benchCpu });
  const b: Bridge = { kind: "posline", port, process: p, responder };
  w.occupyOtherCpus();
  await ask(w, b, { clients: 8, count: 20000, warmup: 2000 });
  for (const clients of [1, 8]) {
  const m = processorMs(p.pid), r = processorMs(responder.pid);
  const f = await ask(w, b, { clients, count: 20000, warmup: 0 });
  console.log(clients, f, "bridge us", (processorMs(p.pid) - m) / 20, "responder us", (processorMs(responder.pid) - r) / 20);
  }
  p.signal("SIGTERM"); await p.ended;
});
