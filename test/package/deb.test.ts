import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { listOf, makePackages, missing, noDpkg, packageIn, root, textIn, unpack, version } from "./packages.ts";

let out = "";
let tree = "";

before(() => {
  if (noDpkg !== false) return;
  out = makePackages("all");
  tree = unpack(packageIn(out, "amd64"));
});

test("npm run deb makes the same bytes twice, in another time zone and language", { skip: noDpkg }, () => {
  const again = makePackages("amd64", { TZ: "Pacific/Chatham", LANG: "de_DE.UTF-8", LC_ALL: "de_DE.UTF-8" });
  assert.ok(readFileSync(packageIn(out, "amd64")).equals(readFileSync(packageIn(again, "amd64"))));
});

test("npm run deb -- --arch all makes one package for each architecture", { skip: noDpkg }, () => {
  const names = ["amd64", "arm64", "armhf"].map((arch) => `posline_${version}_${arch}.deb`);
  assert.deepEqual(readdirSync(out).sort(), names);
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
  assert.deepEqual(files.map(({ path }) => path).sort(), [
    "/etc/posline/posline.json",
    "/usr/bin/posline",
    "/usr/lib/posline/posline.cjs",
    "/usr/lib/posline/prebuilds/linux-x64/@serialport+bindings-cpp.glibc.node",
    "/usr/lib/systemd/system/posline-gateway.service",
    "/usr/lib/systemd/system/posline.service",
    "/usr/lib/systemd/system/posline.socket",
    "/usr/lib/sysusers.d/posline.conf",
    "/usr/lib/udev/rules.d/60-posline.rules",
    "/usr/lib/udev/rules.d/91-posline-brltty.rules",
    "/usr/share/bash-completion/completions/posline",
    "/usr/share/doc/posline/README.md.gz",
    "/usr/share/doc/posline/changelog.gz",
    "/usr/share/doc/posline/copyright",
    "/usr/share/man/man1/posline.1.gz",
    "/usr/share/man/man5/posline.json.5.gz",
    "/usr/share/posline/examples/gateway.json",
    "/usr/share/posline/examples/posline-chromium.json",
    "/usr/share/posline/posline.schema.json",
    "/usr/share/zsh/vendor-completions/_posline",
  ]);
});

test("a package holds the prebuilds of its own architecture alone", { skip: noDpkg }, () => {
  const prebuilds = (arch: string) =>
    listOf(packageIn(out, arch)).flatMap(({ path }) => (path.endsWith(".node") ? [path.replace("/usr/lib/posline/", "")] : []));
  assert.deepEqual(prebuilds("amd64"), ["prebuilds/linux-x64/@serialport+bindings-cpp.glibc.node"]);
  assert.deepEqual(prebuilds("arm64"), ["prebuilds/linux-arm64/@serialport+bindings-cpp.armv8.glibc.node"]);
  // Debian's nodejs says ARMv7 of itself, Raspberry Pi OS's ARMv6.
  assert.deepEqual(prebuilds("armhf"), [
    "prebuilds/linux-arm/@serialport+bindings-cpp.armv6.glibc.node",
    "prebuilds/linux-arm/@serialport+bindings-cpp.armv7.glibc.node",
  ]);
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
