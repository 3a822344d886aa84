import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { certificate, key } from "../http/certificate.ts";
import { ask } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { until } from "../support/until.ts";
import { folder, root } from "./packages.ts";

/** The configuration of nginx in docs/remote-tills.md, as it stands there but for ports, name and certificate. */

const nginx = "/usr/sbin/nginx";
const noNginx =
  spawnSync(nginx, ["-v"]).error === undefined ? false : "there is no nginx here: sudo apt-get install nginx-light";

/** A server with the documentation's block, which logs nothing and keeps its files in a folder of its own. */
async function proxied(port: number, bank: number, admin: number): Promise<ChildProcess> {
  const [, block = ""] = /```nginx\n([\s\S]*?)```/.exec(readFileSync(join(root, "docs/remote-tills.md"), "utf8")) ?? [];
  const files = folder();
  writeFileSync(join(files, "box.pem"), certificate);
  writeFileSync(join(files, "box.key"), key);
  for (const name of ["body", "proxy", "other"]) mkdirSync(join(files, name));
  const server = block
    .replace("listen 8443", `listen 127.0.0.1:${port}`)
    .replaceAll("box.example", "localhost")
    .replace("/etc/ssl/certs", files)
    .replace("/etc/ssl/private", files)
    .replace("127.0.0.1:8880", `127.0.0.1:${admin}`)
    .replace("127.0.0.1:8888", `127.0.0.1:${bank}`);
  const temporary = ["fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${files}/other;`).join(" ");
  writeFileSync(
    join(files, "nginx.conf"),
    `daemon off; pid ${files}/pid; error_log stderr; events {}
http { access_log off; client_body_temp_path ${files}/body; proxy_temp_path ${files}/proxy; ${temporary}
${server} }`,
  );
  const child = spawn(nginx, ["-p", files, "-c", join(files, "nginx.conf")], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const listens = () =>
    overTls(port, "GET", "/terminals").then(
      () => true,
      () => {
        assert.equal(child.exitCode, null, said);
        return false;
      },
    );
  await until(listens, "nginx to listen");
  return child;
}

interface Got {
  readonly status: number | undefined;
  readonly outcome: string | string[] | undefined;
  readonly text: string;
}

function overTls(port: number, method: string, path: string, body = "", headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "localhost",
      servername: "localhost",
      family: 4,
      port,
      method,
      path,
      ca: certificate,
      agent: false as const,
      headers,
    };
    const sent = request(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      answer.on("end", () => resolve({ status: answer.statusCode, outcome: answer.headers["x-posline-outcome"], text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** The first piece of an answer that goes on, and no more of it. */
function firstPieceOverTls(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "localhost",
      servername: "localhost",
      family: 4,
      port,
      path,
      ca: certificate,
      agent: false as const,
    };
    const sent = request(options, (answer) => {
      answer.setEncoding("utf8").once("data", (piece: string) => {
        resolve(piece);
        sent.destroy();
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("nginx as remote-tills.md configures it relays calls over TLS, and refuses another name", { skip: noNginx }, async () => {
  const posline = new PoslineProcess(["serve", "--emulated"]);
  let child: ChildProcess | undefined;
  try {
    const bank = await posline.port("bank");
    await until(async () => (await ask(bank, "POST", "/terminals", "")).status === 200, "the line");
    const [port = 0] = await freePorts(1);
    const admin = await posline.port("admin");
    child = await proxied(port, bank, admin);
    const direct = await ask(bank, "POST", "/terminals", "");
    const relayed = await overTls(port, "POST", "/terminals");
    assert.deepEqual(relayed, { status: 200, outcome: "answered", text: direct.text });
    const sale = '{"pay_id":"TLS-1","amount":1500,"currency_name":"EUR"}';
    assert.equal((await overTls(port, "POST", "/sale", sale)).outcome, "answered");
    // posline's own refusals come through as they are.
    const refused = await overTls(port, "POST", "/sale", sale, { Origin: "https://other.example" });
    assert.deepEqual([refused.status, refused.outcome], [403, "not-sent"]);
    const misnamed = await overTls(port, "POST", "/sale", sale, { Host: "other.example" });
    assert.deepEqual([misnamed.status, misnamed.outcome], [421, undefined]);
    const large = await overTls(port, "POST", "/sale", " ".repeat(300_000)).catch(() => undefined);
    if (large !== undefined) assert.deepEqual([large.status, large.outcome], [413, undefined]);
    // The admin port, below a path.
    assert.equal((await overTls(port, "GET", "/posline/healthz")).status, 200);
    assert.match(await firstPieceOverTls(port, "/posline/events?recent=3"), /^id: [0-9a-f]+-\d+\nevent: hello\n/);
    const control = (origin: string) => overTls(port, "POST", "/posline/emulator", '{"reset":true}', { Origin: origin });
    assert.equal((await control(`https://localhost:${port}`)).status, 200);
    assert.equal((await control("https://other.example")).status, 403);
  } finally {
    if (child !== undefined && child.exitCode === null) {
      const closed = once(child, "close");
      child.kill("SIGTERM");
      await closed;
    }
    await posline.ended("SIGTERM");
  }
});
