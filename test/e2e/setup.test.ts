import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import pty from "@lydell/node-pty";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { merchantId, replyTo } from "../app/setup-box.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";

const folder = scratchFolder();
after(() => folder.remove());

/** A terminal on the network that has all three services. */
const terminal = createServer((socket) => {
  const decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    for (const item of decoder.push(bytes)) {
      if (item.kind !== "frame") continue;
      const reply = replyTo(Buffer.concat(item.payload).toString(), { services: ["fiscal", "bank", "qr"] });
      if (reply !== undefined) socket.write(Buffer.concat(frameOf(item.framing, [Buffer.from(reply)], "arc")));
    }
  });
}).listen(0, "127.0.0.1");
after(() => terminal.close());

test("posline setup at a terminal asks for the merchant's id without showing it, shows the file, and writes it on yes", async () => {
  if (!terminal.listening) await once(terminal, "listening");
  // A server that listens on TCP has an address of that kind.
  const { port } = terminal.address() as AddressInfo;
  const file = join(folder.path, "posline.json");
  const answers = [
    { to: /merchant's id of fiscal[^\n]*: $/, type: merchantId },
    { to: /Write this\? \[yes\/no\] /, type: "yes" },
  ];
  const child = pty.spawn(process.execPath, [bundle, "setup", "--line", `tcp:127.0.0.1:${port}`, "--config", file], {
    cols: 200,
  });
  let shown = "";
  child.onData((text) => {
    shown += text;
    const [next] = answers;
    if (next === undefined || !next.to.test(shown)) return;
    answers.shift();
    child.write(`${next.type}\r`);
  });
  const code = await new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode)));
  assert.equal(code, 0, shown);
  assert.doesNotMatch(shown, /SHOP-77/);
  assert.match(shown, /Test: qr answered \/check_connection/);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).services, {
    fiscal: { line: "till", merchantIdFile: "credentials/merchant-id" },
    bank: { line: "till" },
    qr: { line: "till" },
  });
  assert.equal(readFileSync(join(folder.path, "credentials", "merchant-id"), "utf8"), `${merchantId}\n`);
});
