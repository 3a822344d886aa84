import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { variableNames } from "../../src/config/overrides.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { exitCodes } from "../../src/core/exit.ts";
import {
  commandLine,
  folder,
  listOf,
  makePackages,
  missing,
  noDpkg,
  packageIn,
  root,
  textIn,
  unpack,
  version,
} from "./packages.ts";

let out = "";
let tree = "";

let commands: ReadonlyMap<string, readonly string[]> = new Map();

const publisher = { DEB_MAINTAINER: "Till Ltd <pos@till.example>", DEB_HOMEPAGE: "https://till.example/posline" };

before(() => {
  if (noDpkg !== false) return;
  out = makePackages("all", publisher);
  tree = unpack(packageIn(out, "amd64"));
  commands = commandLine();
});

test("npm run deb makes the same bytes twice, in another time zone and language", { skip: noDpkg }, () => {
  const again = makePackages("amd64", { ...publisher, TZ: "Pacific/Chatham", LANG: "de_DE.UTF-8", LC_ALL: "de_DE.UTF-8" });
  assert.ok(readFileSync(packageIn(out, "amd64")).equals(readFileSync(packageIn(again, "amd64"))));
});

test("npm run deb -- --arch all makes one package for each architecture", { skip: noDpkg }, () => {
  const names = ["amd64", "arm64", "armhf"].map((arch) => `posline_${version}_${arch}.deb`);
  assert.deepEqual(readdirSync(out).sort(), [`posline-lab_${version}_all.deb`, ...names]);
  for (const arch of ["amd64", "arm64", "armhf"]) {
    const field = (name: string) =>
      execFileSync("dpkg-deb", ["--field", packageIn(out, arch), name], { encoding: "utf8" }).trim();
    assert.equal(field("Architecture"), arch);
    assert.equal(field("Version"), version);
    assert.match(field("Depends"), /nodejs \(>= 20\.19\)/);
  }
});

test("a package holds what belongs to it, and nothing else", { skip: noDpkg }, () => {
  const files = listOf(packageIn(out, "amd64")).filter(({ mode }) => !mode.startsWith("d"));
  const documents = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" });
  const maintained = ["architecture.md", "decisions.md", "development.md", "proof.md"];
  const pages = documents.filter((name) => name.endsWith(".md") && !maintained.includes(name)).sort();
  assert.deepEqual(files.map(({ path }) => path).sort(), [
    "/etc/posline/posline.json",
    "/usr/bin/posline",
    "/usr/lib/posline/main.cjs",
    "/usr/lib/posline/more.cjs",
    ...["de.json", "en.json", "icon.svg", "index.html", "page.css", "page.js"].map((name) => `/usr/lib/posline/page/${name}`),
    "/usr/lib/posline/posline.cjs",
    "/usr/lib/posline/prebuilds/linux-x64/@serialport+bindings-cpp.glibc.node",
    "/usr/lib/systemd/system/posline-gateway.service",
    "/usr/lib/systemd/system/posline-setup.socket",
    "/usr/lib/systemd/system/posline-setup@.service",
    "/usr/lib/systemd/system/posline-tap.socket",
    "/usr/lib/systemd/system/posline.service",
    "/usr/lib/systemd/system/posline.socket",
    "/usr/lib/sysusers.d/posline.conf",
    "/usr/lib/udev/rules.d/60-posline.rules",
    "/usr/lib/udev/rules.d/91-posline-brltty.rules",
    "/usr/share/bash-completion/completions/posline",
    "/usr/share/doc/posline/README.md",
    "/usr/share/doc/posline/changelog.gz",
    "/usr/share/doc/posline/copyright",
    ...pages.map((name) => `/usr/share/doc/posline/docs/${name}`),
    "/usr/share/man/man1/posline.1.gz",
    "/usr/share/man/man5/posline.json.5.gz",
    "/usr/share/posline/examples/gateway.json",
    "/usr/share/posline/examples/grafana-dashboard.json",
    "/usr/share/posline/examples/posline-chromium.json",
    "/usr/share/posline/examples/posline.lua",
    "/usr/share/posline/examples/posline.rules.yml",
    "/usr/share/posline/examples/prometheus.yml",
    "/usr/share/posline/posline.schema.json",
    "/usr/share/zsh/vendor-completions/_posline",
  ]);
});

test("posline-lab holds the lab alone, and needs posline of its own version", { skip: noDpkg }, () => {
  const file = join(out, `posline-lab_${version}_all.deb`);
  const files = listOf(file).filter(({ mode }) => !mode.startsWith("d"));
  assert.deepEqual(files.map(({ path }) => path).sort(), [
    "/usr/lib/posline/examples.json",
    "/usr/lib/posline/lab.cjs",
    "/usr/share/doc/posline-lab/changelog.gz",
    "/usr/share/doc/posline-lab/copyright",
    ...["Till.java", "receipt.cs", "receipt.py", "shop.py"].map((name) => `/usr/share/posline/examples/${name}`),
    ...["cs", "go", "html", "php", "py", "sh"].map((language) => `/usr/share/posline/examples/till.${language}`),
  ]);
  assert.equal(execFileSync("dpkg-deb", ["--field", file, "Depends"], { encoding: "utf8" }).trim(), `posline (= ${version})`);
});

test("without posline-lab its commands name it, and the others are there", { skip: noDpkg }, () => {
  const program = join(tree, "usr/lib/posline/posline.cjs");
  for (const words of [["emulate"], ["rehearse", "--list"], ["serve", "--emulated"]]) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: "utf8" });
    assert.equal(status, exitCodes.unavailable, words.join(" "));
    assert.match(stderr, /it is in the package posline-lab: sudo apt-get install posline-lab/);
  }
  assert.match(execFileSync(process.execPath, [program, "--help"], { encoding: "utf8" }), /posline serve/);
});

test("a package holds the prebuilds of its own architecture alone", { skip: noDpkg }, () => {
  const prebuilds = (arch: string) =>
    listOf(packageIn(out, arch)).flatMap(({ path }) => (path.endsWith(".node") ? [path.replace("/usr/lib/posline/", "")] : []));
  assert.deepEqual(prebuilds("amd64"), ["prebuilds/linux-x64/@serialport+bindings-cpp.glibc.node"]);
  assert.deepEqual(prebuilds("arm64"), ["prebuilds/linux-arm64/@serialport+bindings-cpp.armv8.glibc.node"]);
  assert.deepEqual(prebuilds("armhf"), ["prebuilds/linux-arm/@serialport+bindings-cpp.armv7.glibc.node"]);
});

test("everything in a package is root's, and nobody else may write it", { skip: noDpkg }, () => {
  for (const { mode, owner, path } of listOf(packageIn(out, "amd64"))) {
    assert.equal(owner, "root/root", path);
    if (!mode.startsWith("l")) assert.match(mode, /^.rw[x-]r-[x-]r-[x-]$/, path);
  }
});

test("no path of the machine that made it is in a package", { skip: noDpkg }, () => {
  // 1: there is none.
  assert.equal(spawnSync("grep", ["-rqF", root, tree]).status, 1);
});

test("the default configuration is a conffile, so that an upgrade keeps what was changed in it", { skip: noDpkg }, () => {
  assert.equal(textIn(tree, "DEBIAN/conffiles"), "/etc/posline/posline.json\n");
});

test("the maintainer scripts are scripts that sh takes, and never restart or stop the socket on an upgrade", {
  skip: noDpkg,
}, () => {
  for (const name of ["postinst", "prerm", "postrm"]) {
    execFileSync("sh", ["-n", join(tree, "DEBIAN", name)]);
    assert.match(textIn(tree, `DEBIAN/${name}`), /^#!\/bin\/sh\nset -e\n/);
  }
  assert.doesNotMatch(textIn(tree, "DEBIAN/postinst"), /(?:stop|restart) posline\.socket/);
  // All that prerm does is for a removal.
  const prerm = textIn(tree, "DEBIAN/prerm")
    .replaceAll(/^#.*\n/gm, "")
    .trim();
  assert.match(prerm, /^set -e\n+if \[ "\$1" = remove \] .*then\n(?: {2}.*\n)*fi$/);
});

/** Runs a package's postinst in a folder that stands for the system; what only a real one has does nothing. */
function configured(mode: number, group: string | undefined): { readonly mode: number; readonly called: string } {
  const [system, bin] = [folder(), folder()];
  mkdirSync(join(system, "etc/posline"), { recursive: true });
  const config = join(system, "etc/posline/posline.json");
  writeFileSync(config, readFileSync(join(tree, "etc/posline/posline.json")));
  chmodSync(config, mode);
  if (group !== undefined) writeFileSync(join(system, "etc/group"), `root:x:0:\nposline:x:${group}:\nlp:x:7:posline\n`);
  else writeFileSync(join(system, "etc/group"), "root:x:0:\n");
  const called = join(system, "called");
  writeFileSync(called, "");
  for (const name of ["systemd-sysusers", "deb-systemd-helper", "deb-systemd-invoke", "systemctl", "udevadm", "chgrp"]) {
    const note = name === "chgrp" ? `echo "chgrp $*" >> ${called}` : "exit 0";
    writeFileSync(join(bin, name), `#!/bin/sh\n${note}\n`, { mode: 0o755 });
  }
  // Nobody has overridden anything.
  writeFileSync(join(bin, "dpkg-statoverride"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  execFileSync("sh", [join(tree, "DEBIAN/postinst"), "configure", ""], {
    env: { PATH: `${bin}:${process.env["PATH"] ?? ""}`, DPKG_ROOT: system },
  });
  return { mode: statSync(config).mode & 0o777, called: readFileSync(called, "utf8").replaceAll(system, "") };
}

test("a package's postinst gives the configuration to root and the service's group alone, and keeps another choice", {
  skip: noDpkg,
}, () => {
  const given = { mode: 0o640, called: "chgrp 990 /etc/posline/posline.json\n" };
  assert.deepEqual(configured(0o644, "990"), given);
  for (const mode of [0o600, 0o640, 0o660]) assert.deepEqual(configured(mode, "990"), { mode, called: "" });
  // The service's group already, and readable by all: somebody has wanted that.
  assert.deepEqual(configured(0o644, String(process.getegid?.())), { mode: 0o644, called: "" });
  assert.deepEqual(configured(0o644, undefined), { mode: 0o644, called: "" });
});

/** What a new installation says, by postinst, on a box with these adapters in its /sys. */
function installing(adapters: Readonly<Record<string, Readonly<Record<string, string>>>>, ignored = ""): string {
  const [system, bin] = [folder(), folder()];
  mkdirSync(join(system, "etc"));
  writeFileSync(join(system, "etc/group"), "root:x:0:\n");
  for (const [name, attributes] of Object.entries(adapters)) {
    const usb = join(system, "sys/devices/usb1", name);
    mkdirSync(join(usb, "interface", name), { recursive: true });
    for (const [attribute, value] of Object.entries(attributes)) writeFileSync(join(usb, attribute), `${value}\n`);
    mkdirSync(join(system, "sys/class/tty", name), { recursive: true });
    symlinkSync(join(usb, "interface", name), join(system, "sys/class/tty", name, "device"));
  }
  for (const name of ["systemd-sysusers", "deb-systemd-helper", "deb-systemd-invoke", "systemctl"])
    writeFileSync(join(bin, name), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  const udevadm = `#!/bin/sh\ncase "$*" in info*${ignored || "nothing"}) echo 1 ;; esac\n`;
  writeFileSync(join(bin, "udevadm"), udevadm, { mode: 0o755 });
  return execFileSync("sh", [join(tree, "DEBIAN/postinst"), "configure", ""], {
    env: { PATH: `${bin}:${process.env["PATH"] ?? ""}`, DPKG_ROOT: system },
    encoding: "utf8",
  });
}

test("a package's postinst says which adapters posline has been given, and the rule that keeps one out", {
  skip: noDpkg,
}, () => {
  const adapters = {
    ttyUSB0: { idVendor: "0403", idProduct: "6001", serial: "A9KJ3X7Q" },
    ttyUSB1: { idVendor: "1a86", idProduct: "7523" },
    // A serial number that would end the rule's text says nothing.
    ttyACM0: { idVendor: "2341", idProduct: "0043", serial: '1", RUN+="/bin/evil' },
  };
  const told = installing(adapters);
  const rules = {
    ttyUSB0: 'ATTRS{idVendor}=="0403", ATTRS{idProduct}=="6001", ATTRS{serial}=="A9KJ3X7Q"',
    ttyUSB1: 'ATTRS{idVendor}=="1a86", ATTRS{idProduct}=="7523"',
    ttyACM0: 'ATTRS{idVendor}=="2341", ATTRS{idProduct}=="0043"',
  };
  for (const [name, rule] of Object.entries(rules)) assert.ok(told.includes(`  /dev/${name}  ${rule}\n`), told);
  assert.match(told, /\/etc\/udev\/rules\.d\/59-posline\.rules/);
  const next = "Next: sudo posline setup, which finds the terminal and writes /etc/posline/posline.d/terminal.json";
  assert.ok(told.endsWith(`  ${rules.ttyACM0}, ENV{POSLINE_IGNORE}="1"\n${next}\n`), told);
  assert.doesNotMatch(installing(adapters, "ttyUSB0"), /\/dev\/ttyUSB0/);
  assert.match(installing({}), /there is none now/);
});

test("a package names the maintainer and the homepage of whoever builds it", { skip: noDpkg }, () => {
  const control = textIn(tree, "DEBIAN/control");
  assert.match(control, /^Maintainer: Till Ltd <pos@till\.example>$/m);
  assert.match(control, /^Homepage: https:\/\/till\.example\/posline$/m);
  assert.match(textIn(tree, "usr/share/doc/posline/changelog.gz"), / -- Till Ltd <pos@till\.example> {2}/);
});

test("a package's changelog has each entry that CHANGELOG.md has of its version", { skip: noDpkg }, () => {
  const sections = readFileSync(join(root, "CHANGELOG.md"), "utf8").split(/^## /m);
  const own = sections.find((each) => each.startsWith(version)) ?? "";
  const entries = own.split(/^- /m).slice(1);
  assert.ok(entries.length > 0, `CHANGELOG.md has no entry of ${version}`);
  const packaged = textIn(tree, "usr/share/doc/posline/changelog.gz");
  assert.ok(packaged.startsWith(`posline (${version}) stable; urgency=medium\n`), packaged);
  const text = packaged.replaceAll(/\s+/g, " ");
  for (const entry of entries) assert.ok(text.includes(entry.split(/^#/m, 1).join("").replaceAll(/\s+/g, " ").trim()), entry);
});

test("changelog() takes the release's own entries with their kind, and refuses a release that has none", async () => {
  const { changelog } = (await import(new URL("../../scripts/deb/control.mjs", import.meta.url).href)) as {
    readonly changelog: (release: object, markdown: string) => string;
  };
  const release = {
    name: "posline",
    version: "0.2.0",
    date: new Date(0),
    publisher: { maintainer: "Till <till@till.example>" },
  };
  const markdown =
    "# Changelog\n\n## Next\n\n- no\n\n## 0.2.0\n\n### Added\n\n- one\n  more\n\n### Fixed\n\n- two\n\n## 0.1.0\n\n- old\n";
  assert.match(
    changelog(release, markdown),
    /^posline \(0\.2\.0\) .*\n\n {2}\* Added: one more\n {2}\* Fixed: two\n\n -- Till/,
  );
  assert.throws(() => changelog({ ...release, version: "0.2" }, markdown), /CHANGELOG\.md has no heading for 0\.2: /);
});

test("scripts/deb.mjs refuses a maintainer or a homepage that dpkg could not read, and says how to write it", {
  skip: noDpkg,
}, () => {
  const wrong = { DEB_MAINTAINER: "Till Ltd\nPriority: required", DEB_HOMEPAGE: "till.example" };
  for (const [name, value] of Object.entries(wrong)) {
    const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/deb.mjs"), "--out", folder()], {
      env: { ...process.env, [name]: value },
      encoding: "utf8",
    });
    assert.equal(status, 1);
    assert.ok(stderr.startsWith(`Cannot make the package: ${name} is ${JSON.stringify(value)}: write `), stderr);
  }
});

test("lintian finds no error", { skip: noDpkg || missing("lintian", "sudo apt-get install lintian") }, () => {
  const { status, stdout } = spawnSync("lintian", ["--fail-on", "error,warning", packageIn(out, "amd64")], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
});

test("the packaged program starts, and is the version that the package says", { skip: noDpkg }, () => {
  const program = join(tree, "usr/lib/posline/posline.cjs");
  assert.match(readFileSync(program, "utf8"), /^#!\/usr\/bin\/node\n/);
  assert.equal(execFileSync(process.execPath, [program, "--version"], { encoding: "utf8" }).trim(), version);
});

/** A man page as it is read, without roff's own. */
const page = (path: string) => textIn(tree, path).replaceAll("\\-", "-").replaceAll("\\(aq", "'");

test("posline(1) names every command with all its flags", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man1/posline.1.gz");
  assert.ok(commands.size >= 8);
  for (const [name, flags] of commands) {
    const [, part = ""] = text.split(new RegExp(`^\\.SS posline ${name}\\b.*$`, "m"));
    const own = part.split(/^\.S[SH] /m)[0] ?? "";
    assert.notEqual(own, "", name);
    for (const flag of flags) assert.match(own, new RegExp(`^\\.B .*${flag}\\b`, "m"), `${name} ${flag}`);
  }
});

test("posline(1) names every exit code and every variable of the environment", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man1/posline.1.gz");
  for (const code of Object.values(exitCodes)) assert.match(text, new RegExp(`^\\.B ${code}$`, "m"));
  for (const name of variableNames) assert.match(text, new RegExp(`\\b${name}\\b`));
});

test("posline.json(5) names every key of the configuration", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man5/posline.json.5.gz");
  const schema: unknown = JSON.parse(textIn(tree, "usr/share/posline/posline.schema.json"));
  const keys = new Set<string>();
  const collect = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("properties" in node && typeof node.properties === "object" && node.properties !== null) {
      for (const key of Object.keys(node.properties)) keys.add(key);
    }
    for (const value of Object.values(node)) collect(value);
  };
  collect(schema);
  assert.ok(keys.has("baudRate") && keys.has("allowOrigins"));
  for (const key of keys) assert.match(text, new RegExp(`^\\.B (?:.*\\.)?${key.replace("$", "\\$")}$`, "m"), key);
});

/** What bash offers for the last of these words. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _posline; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const file = join(tree, "usr/share/bash-completion/completions/posline");
  const text = execFileSync("bash", ["-c", script, "bash", file, ...words], { encoding: "utf8" });
  return text.split("\n").filter((line) => line !== "");
}

test("bash completes every command, its flags, and the services and routes of call", { skip: noDpkg }, () => {
  const first = offered("posline", "");
  for (const [name, flags] of commands) {
    assert.ok(first.includes(name), name);
    const own = offered("posline", name, "--");
    for (const flag of flags) assert.ok(own.includes(flag) || own.includes(flag.replace("--", "--no-")), `${name} ${flag}`);
  }
  assert.deepEqual(offered("posline", "call", "ba"), ["bank"]);
  const routes = ["test", ...contracts.bank.routes.map(({ path }) => path.slice(1))];
  assert.deepEqual(offered("posline", "call", "bank", ""), routes);
  assert.deepEqual(offered("posline", "emulate", "--service", "q"), ["qr"]);
});

const noZsh = missing("zsh", "sudo apt-get install zsh");

test("zsh takes its completion", { skip: noDpkg || noZsh }, () => {
  execFileSync("zsh", ["-n", join(tree, "usr/share/zsh/vendor-completions/_posline")]);
});

test("zsh's completion names every command, its flags and routes", { skip: noDpkg }, () => {
  const text = textIn(tree, "usr/share/zsh/vendor-completions/_posline");
  assert.match(text, /^#compdef posline\n/);
  for (const [name, flags] of commands) {
    assert.match(text, new RegExp(`^ {4}'${name}:`, "m"));
    const [, part = ""] = text.split(new RegExp(`^ {4}${name}\\)$`, "m"));
    for (const flag of flags)
      assert.match(part.split(";;")[0] ?? "", new RegExp(`'\\*?--(?:no-)?${flag.slice(2)}\\[`), `${name} ${flag}`);
  }
  for (const { path } of contracts.fiscal.routes) assert.match(text, new RegExp(`compadd .*\\b${path.slice(1)}\\b`));
});
