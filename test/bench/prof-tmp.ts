import { startBridge, ask, type BridgeKind } from "./bridges.ts";
import { inWorkshop, processorMs } from "./processes.ts";
import { readFileSync, readdirSync } from "node:fs";
const stat = (pid: number) => { const f = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" "); return [Number(f[11]) * 10, Number(f[12]) * 10] as const; };
const tasks = (pid: number) => Object.fromEntries(readdirSync(`/proc/${pid}/task`).map(t => [readFileSync(`/proc/${pid}/task/${t}/comm`,"utf8").trim() + t, Number(readFileSync(`/proc/${pid}/task/${t}/schedstat`, "utf8").split(" ")[0]) / 1e6]));
await inWorkshop(async (w) => {
  const bs = [];
  for (const k of ["posline", "fastify"] as BridgeKind[]) { const b = await startBridge(w, k, { pace: { baudRate: 115200, pieceBytes: 8 } }); await ask(w, b, { clients: 4, count: 150, warmup: 0 }); bs.push(b); }
  for (let i = 0; i < 3; i++) for (const b of bs) {
    const s = stat(b.process.pid), m = processorMs(b.process.pid), t = tasks(b.process.pid);
    await ask(w, b, { clients: 4, count: 100, warmup: 0 });
    const s2 = stat(b.process.pid), m2 = processorMs(b.process.pid), t2 = tasks(b.process.pid);
    console.log(b.kind, "utime", s2[0] - s[0], "stime", s2[1] - s[1], "schedstat", (m2 - m).toFixed(0), Object.entries(t2).map(([k, v]) => [k, (v - (t[k] ?? 0)).toFixed(1)]).filter(([, v]) => Number(v) > 1).join(" "));
  }
});
