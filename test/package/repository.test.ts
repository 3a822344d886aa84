import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { before, test } from "node:test";
import { newerPackage, repositoryWith, throwAwayKey } from "../../proof/vm/packages.ts";
import { folder, makePackages, missing, noDpkg, packageIn, root, version } from "./packages.ts";

/** The repository of `npm run deb -- --repository`, as apt takes it: with folders of its own, so that nothing of this machine changes. */

const noApt =
  noDpkg ||
  missing("apt-get", "a Debian system has it") ||
  missing("apt-ftparchive", "sudo apt-get install apt-utils") ||
  missing("gpg", "sudo apt-get install gpg");

const suite = "ring-1";
const newer = `${version}+newer`;

/** A folder with the packages of both versions. */
let out = "";
/** The signed repository that has them. */
let repository = "";

before(() => {
  if (noApt !== false) return;
  out = makePackages("amd64");
  newerPackage(packageIn(out, "amd64"), out);
  repository = repositoryWith(
    readdirSync(out).map((name) => join(out, name)),
    suite,
    folder(),
  );
});

const debOf = (its: string) => join(out, `posline_${its}_amd64.deb`);

/** What the packages ask for: a box has that. */
const needed = ["nodejs", "libc6", "libgcc-s1", "libstdc++6", "systemd", "udev"];

/** A box of which there are only apt's folders. */
class AptBox {
  readonly #folder = folder();
  readonly #env: NodeJS.ProcessEnv;

  /** @param has The version of posline that it has. */
  constructor(source: string, key: string, has: string) {
    for (const name of [
      "etc/apt/apt.conf.d",
      "etc/apt/preferences.d",
      "var/lib/apt/lists/partial",
      "var/cache/apt/archives/partial",
    ])
      mkdirSync(join(this.#folder, name), { recursive: true });
    const others = needed.map((name) => `Package: ${name}\nVersion: 999\nArchitecture: amd64\n`);
    const own = execFileSync("dpkg-deb", ["--field", debOf(has)], { encoding: "utf8" });
    const installed = [...others, own].map((fields) => `${fields.trim()}\nStatus: install ok installed\n`);
    writeFileSync(join(this.#folder, "status"), installed.join("\n"));
    const signedBy = join(this.#folder, "posline.gpg");
    copyFileSync(key, signedBy);
    writeFileSync(join(this.#folder, "etc/apt/sources.list"), `deb [signed-by=${signedBy}] file:${source} ${suite} main\n`);
    const config = join(this.#folder, "apt.conf");
    const options = { Dir: this.#folder, "Dir::State::status": join(this.#folder, "status"), "APT::Architecture": "amd64" };
    // apt's own user couldn't read a test's folder.
    const lines = Object.entries({ ...options, "APT::Sandbox::User": "" }).map(([name, value]) => `${name} "${value}";\n`);
    writeFileSync(config, `${lines.join("")}APT::Architectures { "amd64"; };\n`);
    this.#env = { ...process.env, APT_CONFIG: config, LC_ALL: "C" };
  }

  pin(text: string): void {
    writeFileSync(join(this.#folder, "etc/apt/preferences.d/posline"), text);
  }

  apt(program: "apt-get" | "apt-cache", ...args: readonly string[]): { readonly status: number | null; readonly said: string } {
    const { status, stdout, stderr } = spawnSync(program, args, { env: this.#env, encoding: "utf8" });
    return { status, said: `${stdout}${stderr}` };
  }
}

/** A box that has read the index. */
function updated(has: string): AptBox {
  const box = new AptBox(repository, join(repository, "posline.gpg"), has);
  const { status, said } = box.apt("apt-get", "update");
  assert.equal(status, 0, said);
  assert.doesNotMatch(said, /^[WE]:/m, said);
  return box;
}

test("apt-get update takes the signed repository without a warning, and is offered both versions", { skip: noApt }, () => {
  const { said } = updated(version).apt("apt-cache", "policy", "posline");
  const offered = [...said.matchAll(/^ (\*\*\*| {3}) (\S+) 500$/gm)].map(([, mark = "", each]) => [mark.trim(), each]);
  assert.deepEqual(
    offered,
    [
      ["", newer],
      ["***", version],
    ],
    said,
  );
});

test("apt-get upgrade takes the newer version, with the origin and suite that unattended-upgrades goes by", {
  skip: noApt,
}, () => {
  const { said } = updated(version).apt("apt-get", "-s", "upgrade");
  assert.ok(said.includes(`Inst posline [${version}] (${newer} posline:${suite} [amd64])`), said);
});

test("a pin and --allow-downgrades take a box back to the older version, and no upgrade leaves it", { skip: noApt }, () => {
  const [, pin = ""] =
    /^```text\n(Package: posline\n[\s\S]*?)^```/m.exec(readFileSync(join(root, "docs/fleet.md"), "utf8")) ?? [];
  assert.match(pin, /^Pin-Priority: 1001$/m);
  const box = updated(newer);
  const pinned = pin.replace(/^(Pin: version) .*$/m, `$1 ${version}`);
  box.pin(pinned);
  const wish = ["-s", "-y", "install", `posline=${version}`];
  assert.notEqual(box.apt("apt-get", ...wish).status, 0, "only if a downgrade is allowed");
  const { status, said } = box.apt("apt-get", ...wish, "--allow-downgrades");
  assert.equal(status, 0, said);
  assert.ok(said.includes(`Inst posline [${newer}] (${version} posline:${suite} [amd64])`), said);
  const back = updated(version);
  back.pin(pinned);
  assert.doesNotMatch(back.apt("apt-get", "-s", "upgrade").said, /^Inst /m);
});

/** A copy of the repository, to be spoiled. */
function copied(): string {
  const copy = join(folder(), "copy");
  assert.equal(spawnSync("cp", ["-a", repository, copy]).status, 0);
  return copy;
}

test("apt-get update refuses a list that was changed after it was signed", { skip: noApt }, () => {
  const copy = copied();
  const lists = join(copy, "dists", suite, "main/binary-amd64");
  rmSync(join(lists, "by-hash"), { recursive: true });
  appendFileSync(join(lists, "Packages"), "\nPackage: posline\nVersion: 9\nArchitecture: amd64\nFilename: x\nSize: 1\n");
  const box = new AptBox(copy, join(copy, "posline.gpg"), version);
  const { status, said } = box.apt("apt-get", "update");
  assert.notEqual(status, 0, said);
  assert.match(said, /^E: .*(?:unexpected size|Hash Sum mismatch)/m);
  assert.doesNotMatch(box.apt("apt-cache", "policy", "posline").said, / 9 /);
});

test("apt-get update refuses a repository that another key has signed, and one that nobody has", { skip: noApt }, () => {
  const stranger = repositoryWith([], suite, folder());
  const box = new AptBox(repository, join(stranger, "posline.gpg"), version);
  assert.match(box.apt("apt-get", "update").said, /^[WE]: .*(?:NO_PUBKEY|not signed)/m);

  const copy = copied();
  const { status, stderr } = deb(["--repository", copy, "--unsigned", "--index"]);
  assert.equal(status, 0, stderr);
  assert.equal(existsSync(join(copy, "dists", suite, "InRelease")), false, "the old signature is gone");
  assert.match(new AptBox(copy, join(copy, "posline.gpg"), version).apt("apt-get", "update").said, /^E: .*not signed/m);
});

/** Runs scripts/deb.mjs. */
function deb(args: readonly string[], env: Readonly<Record<string, string | undefined>> = {}) {
  return spawnSync(process.execPath, [join(root, "scripts/deb.mjs"), ...args], {
    env: { ...process.env, SOURCE_DATE_EPOCH: "1767225600", ...env },
    encoding: "utf8",
  });
}

test("--repository keeps the versions that lie there, the same one too, and refuses it with other bytes", {
  skip: noApt,
}, () => {
  const place = join(folder(), "apt");
  const pool = join(place, "pool", suite);
  mkdirSync(pool, { recursive: true });
  for (const each of [version, newer]) copyFileSync(debOf(each), join(pool, basename(debOf(each))));
  const args = ["--repository", place, "--unsigned", "--arch", "amd64", "--out", folder(), "--suite"];
  const again = deb([...args, suite]);
  assert.equal(again.status, 0, again.stderr);
  const list = readFileSync(join(place, "dists", suite, "main/binary-amd64/Packages"), "utf8");
  assert.deepEqual([...list.matchAll(/^Version: (.*)$/gm)].map(([, each]) => each).sort(), [version, newer]);
  const { status, stderr } = deb([...args, "ring-2"], { DEB_HOMEPAGE: "https://other.example" });
  assert.equal(status, 1);
  assert.match(
    stderr,
    /pool\/ring-1\/posline_\S+_amd64\.deb has other bytes, and a version never changes: raise version in package\.json$/m,
  );
});

test("--index offers what was copied into another suite, and no longer what was taken away", { skip: noApt }, () => {
  const copy = copied();
  const name = basename(debOf(newer));
  mkdirSync(join(copy, "pool/ring-2"));
  copyFileSync(join(copy, "pool", suite, name), join(copy, "pool/ring-2", name));
  rmSync(join(copy, "pool", suite, name));
  const { status, stdout, stderr } = deb(["--repository", copy, "--unsigned", "--index"]);
  assert.equal(status, 0, stderr);
  const said = [suite, "ring-2"].map((each) => `${join(copy, "dists", each)}: 1 packages, unsigned\n`);
  assert.equal(stdout, said.join(""));
  assert.deepEqual(readdirSync(join(copy, "pool")).sort(), [suite, "ring-2"]);
});

test("--repository says what is missing before it makes a package", { skip: noApt }, () => {
  const home = join(folder(), "gnupg");
  const { GNUPGHOME } = throwAwayKey(home, "Own <own@shop.example>");
  const place = join(folder(), "apt");
  const there = ["--repository", place];
  const wrong: readonly (readonly [readonly string[], NodeJS.ProcessEnv, RegExp])[] = [
    [there, {}, /can't tell an unsigned repository from a forged one: name a key by --sign-with KEY, or say --unsigned$/],
    [[...there, "--sign-with", "Nobody"], { GNUPGHOME }, /gpg has no secret key Nobody: /],
    [[...there, "--sign-with", "Own", "--unsigned"], { GNUPGHOME }, /--unsigned and --sign-with exclude each other/],
    [[...there, "--unsigned"], { PATH: folder() }, /apt-ftparchive is missing: sudo apt-get install apt-utils$/],
    [["--repository", debOf(version), "--unsigned"], {}, /cannot write into \S+ \(\w+\): name a folder of yours$/],
    [[...there, "--unsigned", "--suite", "Ring 1"], {}, /unknown suite Ring 1: /],
    [["--suite", "ring-1"], {}, /--suite needs --repository FOLDER$/],
  ];
  for (const [args, env, reason] of wrong) {
    const { status, stdout, stderr } = deb(args, env);
    assert.equal(status, 1, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr.trimEnd(), reason);
  }
  spawnSync("gpgconf", ["--kill", "all"], { env: { ...process.env, GNUPGHOME } });
});
