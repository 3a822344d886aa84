import { execSync } from "node:child_process";
import { ask, type BridgeKind, startBridge } from "./bridges.ts";
import { inWorkshop } from "./processes.ts";

await inWorkshop(async (w) => {
  const bs = [];
  for (const k of ["posline"] as BridgeKind[]) {
    bs.push(await startBridge(w, k, { pace: { baudRate: 115200, pieceBytes: 8 } }));
  }
  for (let i = 0; i < 14; i++)
    for (const b of bs) {
      try {
        await ask(w, b, { clients: 4, count: 150, warmup: 0 });
      } catch (e) {
        console.log(i, b.kind, String(e).slice(0, 200));
        console.log(
          execSync(
            `(timeout 2 strace -f -p ${b.process.pid} 2>&1 | head -20; timeout 2 strace -f -p ${b.responder.pid} 2>&1 | head; cat /proc/${b.responder.pid}/wchan /proc/${b.process.pid}/wchan; tail -3 ${w.dir}/${b.kind}*resp*log; ls -la /proc/${b.process.pid}/fd) || true`,
            { encoding: "utf8" },
          ),
        );
        console.log(b.process.log().slice(-600));
      }
    }
});
