import { openLog } from "../../src/core/log.ts";

/** A process that logs as it is told, for tests of what its reader sees. */
const [what = "", count = "0"] = process.argv.slice(2);
const log = openLog("info");
const say = (text: string) => process.stderr.write(`${text}\n`);

for (let i = 0; i < Number(count); i++) log.process("info", `line ${i} ${"x".repeat(200)}`);

if (what === "exit") {
  log.flush();
  process.exit(0);
}
if (what === "end") say("ends by itself");
if (what === "serve") {
  // Logs on command, and ends when its commands end.
  process.stdin.on("data", (bytes: Buffer) => {
    for (const command of bytes.toString().trim().split("\n")) {
      if (command === "flush") log.flush();
      else log.process("info", command);
      say(`did ${command}`);
    }
  });
  process.stdin.on("end", () => {
    log.flush();
    process.exit(7);
  });
  say("ready");
}
