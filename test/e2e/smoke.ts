import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import { bundle } from "../support/posline-process.ts";

/**
 * The smoke test of the finished bundle, as `npm start` runs it: the emulated bridge, and the commands that it prints, pasted into a
 * shell: for each service, for a declined sale, and for the control API.
 */

const env = { ...process.env, POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" };
const child = spawn(process.execPath, [bundle, "serve", "--emulated"], { env, stdio: ["ignore", "ignore", "pipe"] });
let greeting = "";
child.stderr?.setEncoding("utf8").on("data", (text: string) => {
  greeting += text;
});
const deadline = performance.now() + 10_000;
while (!greeting.includes("Stop it with")) {
  assert.ok(performance.now() < deadline, `no greeting came: ${greeting}`);
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const commands = greeting.split("\n").filter((line) => line.startsWith("  curl "));
assert.equal(commands.length, contractNames.length + 2, "a command for each service, a declined sale and the control API");
let answers = "";
for (const command of commands) {
  const shell = spawn("bash", ["-c", `${command.trim().replace("curl ", "curl -sS -i ")}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let answer = "";
  shell.stdout?.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  await once(shell, "close");
  answers += answer;
  assert.match(answer, /^HTTP\/1\.1 200 OK/, command);
  if (command.endsWith("/emulator")) {
    assert.match(answer, /"outcome": "declined"/, command);
    continue;
  }
  assert.match(answer, /X-Posline-Outcome: answered/, command);
  assert.match(answer, /"status":"success"/, command);
}
assert.match(answers, /"APPROVED"/);
assert.match(answers, /"status":"ERROR"/);
child.kill("SIGTERM");
const [code] = await once(child, "exit");
assert.equal(code, 0);
console.log(`smoke: ${commands.length} pasted commands answered over an emulated line by ${Object.keys(contracts).join(", ")}`);
