import { openLog } from "../../src/core/log.ts";

/** A process that logs as it is told, for tests of what its reader sees. */
const [what = "", count = "0", journald, socket] = process.argv.slice(2);
const log = openLog("info", {
  journald: journald !== undefined,
  ...(socket === undefined ? {} : { journaldSocket: socket }),
});
const say = (text: string) => process.stderr.write(`${text}\n`);

/** What went over a line is always written, however much it is. */
const answered = {
  service: "bank",
  route: "/check",
  key: "x".repeat(100),
  outcome: "answered",
  httpStatus: 200,
  status: "success",
  code: 0,
  queueMs: 0,
  lineMs: 0,
  requestBytes: 0,
  replyBytes: 0,
  left: false,
  message: undefined,
} as const;

for (let i = 0; i < Number(count); i++) log.exchange({ ...answered, requestId: `line ${i}` });

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
      else if (command === "health") say(JSON.stringify({ state: log.state, dropped: log.dropped }));
      else if (command === "flood") for (let n = 0; n < 10_000; n++) log.exchange({ ...answered, requestId: `line ${n}` });
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
