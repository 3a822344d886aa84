import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { newerPackage, repositoryWith, throwAwayKey } from "../../proof/vm/packages.ts";
import { until } from "../support/until.ts";
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
}, async () => {
  const place = join(folder(), "apt");
  const pool = join(place, "pool", suite);
  mkdirSync(pool, { recursive: true });
  for (const each of [version, newer]) copyFileSync(debOf(each), join(pool, basename(debOf(each))));
  const again = deb(["--repository", place, "--unsigned", "--arch", "amd64", "--out", folder(), "--suite", suite]);
  assert.equal(again.status, 0, again.stderr);
  const list = readFileSync(join(place, "dists", suite, "main/binary-amd64/Packages"), "utf8");
  const listed = [...list.matchAll(/^Package: posline\nArchitecture: .*\nVersion: (.*)$/gm)].map(([, each]) => each);
  assert.deepEqual(listed.sort(), [version, newer]);
  // Made elsewhere, under the same name.
  const other = join(folder(), basename(debOf(version)));
  copyFileSync(debOf(newer), other);
  mkdirSync(join(place, "pool", "ring-2"));
  const { add } = (await import(new URL("../../scripts/deb/repository.mjs", import.meta.url).href)) as {
    readonly add: (repository: object, file: string) => Promise<void>;
  };
  await assert.rejects(
    add({ folder: place, suite: "ring-2" }, other),
    /^Error: pool\/ring-1\/posline_\S+_amd64\.deb has other bytes, and a version never changes: raise version in package\.json$/,
  );
  assert.deepEqual(readdirSync(join(place, "pool", "ring-2")), []);
});

test("--index offers what was copied into another suite, and no longer what was taken away", { skip: noApt }, () => {
  const copy = copied();
  const name = basename(debOf(newer));
  mkdirSync(join(copy, "pool/ring-2"));
  copyFileSync(join(copy, "pool", suite, name), join(copy, "pool/ring-2", name));
  rmSync(join(copy, "pool", suite, name));
  const { status, stdout, stderr } = deb(["--repository", copy, "--unsigned", "--index"]);
  assert.equal(status, 0, stderr);
  // The older one and the lab's are left, and the newer one is in the other.
  const said = [`${suite}: 2`, "ring-2: 1"].map((each) => `${join(copy, "dists", each)} packages, unsigned\n`);
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

test("--index makes readable for all what it writes and what lies there, whatever umask it and the copying had", {
  skip: noApt,
}, () => {
  const copy = copied();
  const ring2 = join(copy, "pool/ring-2");
  mkdirSync(ring2, { mode: 0o700 });
  copyFileSync(debOf(newer), join(ring2, basename(debOf(newer))));
  chmodSync(join(ring2, basename(debOf(newer))), 0o600);
  chmodSync(join(copy, "dists"), 0o700);
  const line = 'umask 077; exec "$@"';
  const args = [join(root, "scripts/deb.mjs"), "--repository", copy, "--unsigned", "--index"];
  execFileSync("sh", ["-c", line, "sh", process.execPath, ...args], { stdio: "ignore" });
  const places = [".", ...readdirSync(copy, { recursive: true, encoding: "utf8" })].map((name) => join(copy, name));
  const hidden = places.filter((place) => {
    const stat = statSync(place);
    const needed = stat.isDirectory() ? 0o555 : 0o444;
    return (stat.mode & needed) !== needed;
  });
  assert.deepEqual(hidden, []);
});

/** The environment of gpg with keys of its own, gone with the test. */
function gpgHome(t: TestContext, name: string): NodeJS.ProcessEnv {
  const env = throwAwayKey(join(folder(), "gnupg"), name);
  t.after(() => spawnSync("gpgconf", ["--kill", "all"], { env }));
  return env;
}

const gpg = (env: NodeJS.ProcessEnv, ...args: readonly string[]) =>
  execFileSync("gpg", ["--batch", "--quiet", "--passphrase", "", ...args], { env, encoding: "utf8", stdio: "pipe" });

/** The fingerprints of a key and its subkeys. */
const fingerprintsOf = (env: NodeJS.ProcessEnv, name: string): readonly string[] =>
  [...gpg(env, "--with-colons", "--list-secret-keys", name).matchAll(/^fpr:+([0-9A-F]+):/gm)].map(([, each = ""]) => each);

/** Everything that lies in a folder, by name. */
const everythingIn = (place: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(place, { recursive: true, encoding: "utf8" })
      .filter((name) => statSync(join(place, name)).isFile())
      .map((name) => [name, readFileSync(join(place, name), "latin1")]),
  );

test("--sign-with refuses an expired or revoked key before it writes anything, and names one that expires soon, each with the command that cures it", {
  skip: noApt,
}, async (t) => {
  const copy = copied();
  const before = everythingIn(copy);
  const env = gpgHome(t, "Good <good@shop.example>");
  gpg(env, "--quick-generate-key", "Expired <expired@shop.example>", "ed25519", "sign", "seconds=1");
  gpg(env, "--quick-generate-key", "Soon <soon@shop.example>", "ed25519", "sign", "10d");
  gpg(env, "--quick-generate-key", "Sub <sub@shop.example>", "ed25519", "cert", "never");
  const [sub = ""] = fingerprintsOf(env, "Sub");
  gpg(env, "--quick-add-key", sub, "ed25519", "sign", "seconds=1");
  gpg(env, "--quick-generate-key", "Revoked <revoked@shop.example>", "ed25519", "sign", "never");
  const [revoked = ""] = fingerprintsOf(env, "Revoked");
  const certificate = join(env["GNUPGHOME"] ?? "", "openpgp-revocs.d", `${revoked}.rev`);
  writeFileSync(certificate, readFileSync(certificate, "utf8").replace(/^:---/m, "---"));
  gpg(env, "--import", certificate);
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  const index = (name: string) => deb(["--repository", copy, "--index", "--sign-with", name], env);

  for (const name of ["Expired", "Sub"]) {
    const { status, stderr } = index(name);
    assert.equal(status, 1, stderr);
    const [, command = ""] =
      /^Cannot make the repository: key [0-9A-F]+ expired on \S+, and boxes refuse from then on what it signed: (gpg .*), and bring the new posline\.gpg to each box$/m.exec(
        stderr,
      ) ?? [];
    assert.deepEqual(everythingIn(copy), before, name);
    execFileSync("sh", ["-c", command.replaceAll("gpg ", "gpg --batch --passphrase '' ")], { env, stdio: "pipe" });
    const again = index(name);
    assert.deepEqual([again.status, again.stderr], [0, ""], command);
    rmSync(copy, { recursive: true });
    assert.equal(spawnSync("cp", ["-a", repository, copy]).status, 0);
  }

  const { status, stderr } = index("Revoked");
  assert.equal(status, 1);
  const [, made = ""] =
    / is revoked or can't sign, and boxes refuse it: make another one by (gpg .*), and bring /.exec(stderr) ?? [];
  assert.deepEqual(everythingIn(copy), before);
  execFileSync("sh", ["-c", made.replace("gpg ", "gpg --batch --passphrase '' ")], { env, stdio: "pipe" });
  const another = index("Revoked");
  assert.deepEqual([another.status, another.stderr], [0, ""], made);

  const soon = index("Soon");
  assert.equal(soon.status, 0);
  assert.match(
    soon.stderr,
    /^Soon no box takes the repository: key [0-9A-F]+ expires on \S+, and boxes refuse [^:]+: gpg --quick-set-expire [0-9A-F]+ 2y, and bring /,
  );
  gpg(env, "--quick-generate-key", "--yes", "Good <good@shop.example>", "ed25519", "sign", "2y");
  assert.match(
    index("Good").stderr,
    /gpg has several keys Good: name the one that boxes have by its fingerprint: [0-9A-F]{40}, [0-9A-F]{40}$/m,
  );
});

test("--index refuses by name a package in the pool of which a part is missing, and one that no box would be offered", {
  skip: noApt,
}, () => {
  const whole = readFileSync(debOf(newer));
  for (const [name, spoil, reason] of [
    [
      basename(debOf(newer)),
      (file: string) => truncateSync(file, whole.length / 2),
      "is no whole package: copy it there again",
    ],
    [basename(debOf(newer)), (file: string) => truncateSync(file, 100), "is no whole package: copy it there again"],
    [basename(debOf(newer)), (file: string) => truncateSync(file), "is no whole package: copy it there again"],
    [
      basename(debOf(newer)),
      (file: string) => writeFileSync(file, Buffer.concat([whole.subarray(0, 100_000), Buffer.alloc(whole.length - 100_000)])),
      "is no whole package: copy it there again",
    ],
    [
      basename(debOf(newer)),
      (file: string) => renameSync(file, join(dirname(file), "posline.deb")),
      "posline.deb would be offered to no box: its name must end with _ARCHITECTURE.deb",
    ],
  ] as const) {
    const copy = copied();
    spoil(join(copy, "pool", suite, name));
    const before = everythingIn(copy);
    const { status, stdout, stderr } = deb(["--repository", copy, "--unsigned", "--index"]);
    assert.deepEqual([status, stdout], [1, ""], stderr);
    assert.ok(stderr.startsWith(`Cannot make the repository: pool/${suite}/`) && stderr.includes(reason), stderr);
    assert.deepEqual(everythingIn(copy), before, reason);
  }
});

/** A gpg that runs this line of shell before it signs. */
function gpgThatFirst(line: string): string {
  const own = folder();
  const real = execFileSync("sh", ["-c", "command -v gpg"], { encoding: "utf8" }).trim();
  const script = `#!/bin/sh\ncase "$*" in *--clearsign*) ${line};; esac\nexec ${real} "$@"\n`;
  writeFileSync(join(own, "gpg"), script, { mode: 0o755 });
  return `${own}:${process.env["PATH"]}`;
}

test("--index puts index and signature in place together: a signing that fails changes nothing, and no Release is beside another one's InRelease", {
  skip: noApt,
}, async (t) => {
  const copy = copied();
  const before = everythingIn(copy);
  const env = gpgHome(t, "Own <own@shop.example>");
  rmSync(join(copy, "pool", suite, basename(debOf(newer))));
  delete (before as Record<string, string>)[join("pool", suite, basename(debOf(newer)))];
  mkdirSync(join(copy, "pool/ring-2"));
  const args = ["--repository", copy, "--sign-with", "Own", "--index"];
  const failed = deb(args, { ...env, PATH: gpgThatFirst("echo no passphrase >&2; exit 2") });
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /no passphrase/);
  assert.deepEqual(everythingIn(copy), before);

  const slow = { ...process.env, ...env, PATH: gpgThatFirst("sleep 1") };
  const child = spawn(process.execPath, [join(root, "scripts/deb.mjs"), ...args], { env: slow, stdio: "ignore" });
  const place = join(copy, "dists", suite);
  let looks = 0;
  while (child.exitCode === null) {
    const [signed, plain, still] = ["InRelease", "Release", "InRelease"].map((name) => {
      try {
        return readFileSync(join(place, name), "utf8").trim();
      } catch {
        // It is taken away for a moment.
        return undefined;
      }
    });
    assert.ok(signed !== undefined);
    if (signed === still && plain !== undefined) assert.ok(signed.includes(plain), "the InRelease of the Release beside it");
    looks++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(child.exitCode, 0);
  assert.ok(looks > 100, `${looks} looks`);
  assert.notEqual(readFileSync(join(place, "InRelease"), "latin1"), before[join("dists", suite, "InRelease")]);
});

test("--repository refuses a second publisher before it writes anything, and takes the next one once the first is killed", {
  skip: noApt,
}, async (t) => {
  const copy = copied();
  const env = gpgHome(t, "Own <own@shop.example>");
  const begun = join(folder(), "begun");
  const args = ["--repository", copy, "--sign-with", "Own", "--index"];
  const hanging = { ...process.env, ...env, PATH: gpgThatFirst(`: > ${begun}; sleep 20; exit 1`) };
  const first = spawn(process.execPath, [join(root, "scripts/deb.mjs"), ...args], { env: hanging, stdio: "ignore" });
  await until(() => existsSync(begun), "the first to sign");
  const before = everythingIn(copy);
  const second = deb(args, env);
  assert.equal(second.status, 1);
  assert.match(
    second.stderr,
    /^Cannot make the repository: another process publishes into \S+: run this again when it has ended$/m,
  );
  assert.deepEqual(everythingIn(copy), before);
  first.kill("SIGKILL");
  await once(first, "exit");
  await until(() => deb(args, env).status === 0, "the next one to publish");
  assert.equal(existsSync(join(copy, ".new")), false);
});
