import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { PageKey } from "../../src/http/page-key.ts";
import { ask, BridgeProcess } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { folder, root } from "./packages.ts";

/**
 * The configurations of docs/proxy.md, as they stand there but for ports and the certificate's place, in the real proxies: what a till gets
 * through, and what nobody does, whatever name he writes.
 */

const name = "box.example";

interface Proxy {
  readonly program: string;
  readonly package: string;
  /** Writes its files into a folder, and gives its arguments. */
  readonly arguments: (block: string, files: string) => readonly string[];
  /** The status for a name that isn't the box's; undefined where the connection is closed. */
  readonly misnamed: number | undefined;
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: "/usr/sbin/nginx",
    package: "nginx-light",
    misnamed: undefined,
    arguments: (block, files) => {
      for (const each of ["body", "proxy", "other"]) mkdirSync(join(files, each));
      const temporary = ["fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path ${files}/other;`).join(" ");
      const http = `access_log off; client_body_temp_path ${files}/body; proxy_temp_path ${files}/proxy; ${temporary}`;
      const text = `daemon off; pid ${files}/pid; error_log stderr; events {}\nhttp { ${http}\n${block} }`;
      writeFileSync(join(files, "nginx.conf"), text);
      return ["-p", files, "-c", join(files, "nginx.conf")];
    },
  },
  caddy: {
    program: "/usr/bin/caddy",
    package: "caddy",
    misnamed: undefined,
    arguments: (block, files) => {
      writeFileSync(join(files, "Caddyfile"), `{\n  admin off\n  auto_https disable_redirects\n}\n${block}`);
      return ["run", "--adapter", "caddyfile", "--config", join(files, "Caddyfile")];
    },
  },
  apache: {
    program: "/usr/sbin/apache2",
    package: "apache2",
    misnamed: 421,
    arguments: (block, files) => {
      const modules = ["mpm_event", "authz_core", "authz_host", "alias", "ssl", "proxy", "proxy_http"];
      const loads = modules.map((each) => `LoadModule ${each}_module /usr/lib/apache2/modules/mod_${each}.so`);
      const own = [`PidFile ${files}/pid`, `ErrorLog ${files}/log`, `DefaultRuntimeDir ${files}`, `ServerName ${name}`];
      writeFileSync(join(files, "apache.conf"), [...loads, ...own, block].join("\n"));
      return ["-X", "-f", join(files, "apache.conf")];
    },
  },
};

/** A certificate of the box's name, made for this test. */
function certify(files: string): string {
  const [key, certificate] = [join(files, "box.key"), join(files, "box.pem")];
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const named = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  execFileSync("openssl", [...made, ...named, "-keyout", key, "-out", certificate], { stdio: "ignore" });
  return readFileSync(certificate, "utf8");
}

/** A running proxy, by whose name the box is asked. */
class Proxied {
  readonly #port: number;
  readonly #ca: string;
  readonly #child: ChildProcess;
  #said = "";

  constructor(
    kind: string,
    port: number,
    to: { readonly bank: number; readonly admin: number },
    changed: (text: string) => string,
  ) {
    const { program, arguments: argumentsOf } = proxies[kind] ?? assert.fail();
    const files = folder();
    this.#port = port;
    this.#ca = certify(files);
    const page = readFileSync(join(root, "docs/proxy.md"), "utf8");
    const [, block = ""] = new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
    const fitting = changed(block)
      .replaceAll(/(listen |Listen |\*:|:)8443/g, `$1${port}`)
      .replaceAll("/etc/ssl/certs", files)
      .replaceAll("/etc/ssl/private", files)
      .replace("127.0.0.1:8880", `127.0.0.1:${to.admin}`)
      .replace("127.0.0.1:8888", `127.0.0.1:${to.bank}`);
    const env = { PATH: process.env["PATH"] ?? "", HOME: files, XDG_DATA_HOME: files, XDG_CONFIG_HOME: files };
    this.#child = spawn(program, argumentsOf(fitting, files), { stdio: ["ignore", "ignore", "pipe"], env });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#said += text;
    });
  }

  async listens(): Promise<void> {
    const connects = () => {
      const socket = connect({ host: "127.0.0.1", servername: name, port: this.#port, ca: this.#ca });
      return new Promise<boolean>((resolve) => {
        socket.on("secureConnect", () => resolve(true));
        socket.on("error", () => resolve(false));
      }).finally(() => socket.destroy());
    };
    await until(async () => {
      assert.equal(this.#child.exitCode, null, this.#said);
      return connects();
    }, "the proxy to listen");
  }

  get origin(): string {
    return `https://${name}:${this.#port}`;
  }

  #options(method: string, path: string, headers: Record<string, string> = {}) {
    const at = { host: "127.0.0.1", servername: name, port: this.#port, ca: this.#ca, agent: false as const };
    return { ...at, method, path, headers: { Host: `${name}:${this.#port}`, ...headers } };
  }

  ask(method: string, path: string, body = "", headers: Record<string, string> = {}): Promise<Got> {
    return new Promise((resolve, reject) => {
      const sent = request(this.#options(method, path, headers), (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        answer.on("end", () => resolve({ status: answer.statusCode, outcome: answer.headers["x-posline-outcome"], text }));
        answer.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  /** The first piece of an answer that goes on, and no more of it. */
  firstPiece(path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const sent = request(this.#options("GET", path), (answer) => {
        answer.setEncoding("utf8").once("data", (piece: string) => {
          resolve(piece);
          sent.destroy();
        });
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  /** The status of a request whose first line has a whole URL, and whose Host is what its sender likes. */
  async forged(method: string, path: string, host: string, body = ""): Promise<number> {
    const socket = connect({ host: "127.0.0.1", servername: name, port: this.#port, ca: this.#ca });
    socket.on("error", () => {});
    const head = `${method} https://${name}:${this.#port}${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    await new Promise((resolve) => socket.once("close", resolve));
    return Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1] ?? 0);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGTERM");
    await closed;
  }
}

interface Got {
  readonly status: number | undefined;
  readonly outcome: string | string[] | undefined;
  readonly text: string;
}

const sale = '{"pay_id":"TLS-1","amount":1500,"currency_name":"EUR"}';
const testSale = '{"service":"bank","sale":{"amount":1,"currency":"EUR"}}';

for (const [kind, proxy] of Object.entries(proxies)) {
  const isHere = spawnSync(proxy.program, ["-v"]).error === undefined;
  const skip = isHere ? false : `there is no ${proxy.program} here: sudo apt-get install ${proxy.package}`;

  /** A bridge before a terminal that takes every sale, behind the proxy; `sold` are the sales that reached the terminal. */
  const behind = async (
    admin: object,
    body: (proxied: Proxied, bridge: BridgeProcess, sold: readonly string[]) => Promise<void>,
    changed = (text: string) => text,
  ) => {
    const files = folder();
    const sold: string[] = [];
    const terminal = new Terminal(
      join(files, "tty"),
      answering(({ text }) => {
        if (text.startsWith("/sale")) sold.push(text);
        return '{"status":"success","code":0}';
      }),
    );
    const [port = 0] = await freePorts(1);
    const config = { lines: { till: { path: terminal.link } }, services: { bank: { line: "till" } }, admin };
    const bridge = new BridgeProcess({ ...config, journal: { folder: files } }, { env: { POSLINE_ADMIN_PORT: "0" } });
    let proxied: Proxied | undefined;
    try {
      await bridge.state("till", "idle");
      proxied = new Proxied(kind, port, { bank: await bridge.port("bank"), admin: await bridge.port("admin") }, changed);
      await proxied.listens();
      await body(proxied, bridge, sold);
    } finally {
      await proxied?.end();
      await bridge.stop("SIGKILL");
      terminal.unplug();
    }
  };

  test(`${kind} as proxy.md configures it relays calls over TLS, and knows one name`, { skip }, () =>
    behind({ allowHosts: [name] }, async (proxied, bridge, sold) => {
      const direct = await ask(await bridge.port("bank"), "POST", "/terminals", "");
      assert.deepEqual(await proxied.ask("POST", "/terminals"), { status: 200, outcome: "answered", text: direct.text });
      assert.equal((await proxied.ask("POST", "/sale", sale)).outcome, "answered");
      // posline's own refusals come through as they are.
      const refused = await proxied.ask("POST", "/sale", sale, { Origin: "https://other.example" });
      assert.deepEqual([refused.status, refused.outcome], [403, "not-sent"]);
      const misnamed = await proxied.ask("POST", "/sale", sale, { Host: "other.example" }).catch(() => undefined);
      assert.deepEqual([misnamed?.status, misnamed?.outcome], [proxy.misnamed, undefined]);
      const large = await proxied.ask("POST", "/sale", " ".repeat(300_000)).catch(() => undefined);
      // By the proxy itself, by posline, or by a proxy whose connection posline has closed meanwhile.
      assert.ok(large === undefined || large.status === 413 || (large.status === 502 && large.outcome === undefined));
      assert.equal(sold.length, 1);
      // The admin port, below a path.
      assert.equal((await proxied.ask("GET", "/posline/healthz")).status, 200);
      assert.match(await proxied.firstPiece("/posline/events?recent=3"), /^id: [0-9a-f]+-\d+\nevent: hello\n/);
      const { keyFile } = JSON.parse((await proxied.ask("GET", "/posline/page/paths.json")).text);
      const session = { Authorization: `Bearer ${new PageKey(readFileSync(keyFile, "utf8")).session()}` };
      const page = (headers: Record<string, string>) => proxied.ask("POST", "/posline/test", testSale, headers);
      assert.equal((await page({ ...session, Origin: "https://other.example" })).status, 403);
      assert.equal((await page({ Origin: proxied.origin })).status, 401);
      assert.equal(sold.length, 1);
      assert.equal((await page({ ...session, Origin: proxied.origin })).status, 200);
      await until(() => sold.length === 2, "the test sale");
    }),
  );

  test(`${kind} as proxy.md configures it lets only the tills' network call`, { skip }, () =>
    behind(
      { allowHosts: [name] },
      async (proxied, _bridge, sold) => {
        for (const path of ["/sale", "/posline/status"]) {
          const got = await proxied.ask(path === "/sale" ? "POST" : "GET", path, sale).catch(() => undefined);
          assert.ok(got === undefined || got.status === 403, path);
        }
        assert.deepEqual(sold, []);
      },
      (text) => text.replace(/(allow|remote_ip|Require ip) 127.0.0.1/, "$1 192.0.2.7"),
    ),
  );

  if (kind === "nginx") {
    test(
      "nginx that passes on the Host that a caller wrote, as an earlier page had it, changes nothing for him",
      { skip },
      () =>
        behind(
          { allowHosts: [name] },
          async (proxied, _bridge, sold) => {
            assert.equal(await proxied.forged("GET", "/posline/status", "localhost"), 200, "a Host that passes");
            assert.equal(await proxied.forged("POST", "/posline/test", "localhost", testSale), 401);
            assert.deepEqual(sold, []);
          },
          (text) => text.replace("$host:$server_port", "$http_host"),
        ),
    );
  }

  for (const allowHosts of [[], [name]]) {
    const named = `allowHosts [${allowHosts}]`;
    test(`${kind} as proxy.md configures it makes no stranger one of this box by the name he writes: ${named}`, { skip }, () =>
      behind({ allowHosts }, async (proxied, _bridge, sold) => {
        for (const host of ["localhost", "127.0.0.1:8880", "[::1]"]) {
          const statuses = await Promise.all([
            proxied.forged("GET", "/posline/status", host),
            proxied.forged("POST", "/posline/test", host, testSale),
            proxied.forged("POST", "/posline/journal/settle", host, '{"key":"A","as":"done","note":"seen"}'),
          ]);
          assert.deepEqual(statuses, allowHosts.length === 0 ? [421, 421, 421] : [200, 401, 401], host);
        }
        assert.deepEqual(sold, []);
      }),
    );
  }
}
