// What a package installs, and where.
import { chmod, cp, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { gzip, installedKiB, put } from "./archive.mjs";
import { readCommands, readRoutes, readSchema } from "./commands.mjs";
import { bashCompletion, zshCompletion } from "./completion.mjs";
import { changelog, control, copyright, overrides } from "./control.mjs";
import { manPage } from "./man.mjs";
import { configPage } from "./man-config.mjs";

/** The folders of prebuilds by Debian's names of architectures. */
export const architectures = { amd64: "linux-x64", arm64: "linux-arm64", armhf: "linux-arm" };

const copies = [
  ["systemd/posline.service", "usr/lib/systemd/system/posline.service"],
  ["systemd/posline.socket", "usr/lib/systemd/system/posline.socket"],
  ["systemd/posline-tap.socket", "usr/lib/systemd/system/posline-tap.socket"],
  ["systemd/posline-setup.socket", "usr/lib/systemd/system/posline-setup.socket"],
  ["systemd/posline-setup@.service", "usr/lib/systemd/system/posline-setup@.service"],
  ["systemd/posline-gateway.service", "usr/lib/systemd/system/posline-gateway.service"],
  ["systemd/60-posline.rules", "usr/lib/udev/rules.d/60-posline.rules"],
  ["systemd/91-posline-brltty.rules", "usr/lib/udev/rules.d/91-posline-brltty.rules"],
  ["systemd/posline.sysusers", "usr/lib/sysusers.d/posline.conf"],
  ["systemd/posline.json", "etc/posline/posline.json"],
];

/** The program: a script for the system's Node, or an executable with a Node of its own. */
async function putProgram(tree, root, { architecture, executable }) {
  const folder = architectures[architecture];
  const from = join(root, "dist/prebuilds", folder);
  for (const name of await readdir(from)) {
    await put(tree, `usr/lib/posline/prebuilds/${folder}/${name}`, await readFile(join(from, name)));
  }
  for (const name of await readdir(join(root, "dist/page"))) {
    await put(tree, `usr/lib/posline/page/${name}`, await readFile(join(root, "dist/page", name)));
  }
  await put(tree, "usr/lib/posline/more.cjs", await readFile(join(root, "dist/more.cjs")));
  await mkdir(join(tree, "usr/bin"), { recursive: true });
  if (executable === undefined) {
    const text = await readFile(join(root, "dist/posline.cjs"), "utf8");
    await put(tree, "usr/lib/posline/main.cjs", await readFile(join(root, "dist/main.cjs")));
    // The distribution's Node, whatever else comes first in somebody's PATH.
    await put(tree, "usr/lib/posline/posline.cjs", text.replace(/^#!.*/, "#!/usr/bin/node"), 0o755);
    await symlink("../lib/posline/posline.cjs", join(tree, "usr/bin/posline"));
  } else {
    await cp(executable, join(tree, "usr/lib/posline/posline"));
    await chmod(join(tree, "usr/lib/posline/posline"), 0o755);
    await symlink("../lib/posline/posline", join(tree, "usr/bin/posline"));
  }
}

/** What explains the program, made by asking the program; the same for every architecture. */
export function manualsOf(root, { version, date }) {
  const bundle = join(root, "dist/posline.cjs");
  const about = { version, date: date.toISOString().slice(0, 10) };
  const commands = readCommands(bundle);
  const routes = readRoutes(bundle);
  const schema = readSchema(bundle);
  return new Map([
    ["usr/share/man/man1/posline.1.gz", gzip(manPage(commands, about))],
    ["usr/share/man/man5/posline.json.5.gz", gzip(configPage(schema, about))],
    ["usr/share/bash-completion/completions/posline", bashCompletion(commands, routes)],
    ["usr/share/zsh/vendor-completions/_posline", zshCompletion(commands, routes)],
    ["usr/share/posline/posline.schema.json", `${JSON.stringify(schema)}\n`],
  ]);
}

/** Pages for those who change posline: no package has them, as package.json says for npm's. */
export const forMaintainers = ["architecture.md", "decisions.md", "development.md", "proof.md"];

/** What dpkg and Debian's policy want of each package. */
async function putLegal(tree, root, release) {
  const doc = `usr/share/doc/${release.name}`;
  const [licence, bundled, news] = await Promise.all(
    ["LICENSE", "dist/LICENSES.txt", "CHANGELOG.md"].map((name) => readFile(join(root, name), "utf8")),
  );
  await put(tree, `${doc}/copyright`, copyright(release, { licence, bundled }));
  await put(tree, `${doc}/changelog.gz`, gzip(changelog(release, news)));
}

async function putDocuments(tree, root, release, runtimeLicence) {
  const doc = `usr/share/doc/${release.name}`;
  await putLegal(tree, root, release);
  const found = (await readdir(join(root, "docs"), { recursive: true })).filter((name) => !forMaintainers.includes(name));
  const pages = ["README.md", ...found.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];
  // Not compressed each, since they link to each other, and the package as a whole is compressed better.
  for (const page of pages) await put(tree, `${doc}/${page}`, await readFile(join(root, page)));
  await putExamples(tree, root, [
    "systemd/kiosk/posline-chromium.json",
    "systemd/gateway.json",
    "scripts/wireshark/posline.lua",
    ...["prometheus.yml", "posline.rules.yml", "grafana-dashboard.json"].map((name) => `scripts/prometheus/${name}`),
  ]);
  if (runtimeLicence !== undefined) await put(tree, `${doc}/node-licences.gz`, gzip(runtimeLicence));
  if (runtimeLicence !== undefined) await put(tree, `usr/share/lintian/overrides/${release.name}`, overrides(release));
}

/** Not below the package's own name: README and man page name one place for all packages. */
async function putExamples(tree, root, names) {
  for (const name of names) {
    const text = await readFile(join(root, name));
    // A shell's script may be run as it is; for Python's, lintian would have the package depend on Python.
    const mode = text.subarray(0, 9).equals(Buffer.from("#!/bin/sh")) ? 0o755 : undefined;
    await put(tree, `usr/share/posline/examples/${name.split("/").at(-1)}`, text, mode);
  }
}

async function putControl(tree, root, release) {
  for (const name of ["postinst", "prerm", "postrm"]) {
    await put(tree, `DEBIAN/${name}`, await readFile(join(root, "scripts/deb/maintainer", name)), 0o755);
  }
  await put(tree, "DEBIAN/conffiles", "/etc/posline/posline.json\n");
  await put(tree, "DEBIAN/control", control(release, await installedKiB(tree)));
}

/**
 * Fills an empty folder with a package.
 * @param {string} tree
 * @param {string} root The project.
 * @param {object} what
 * @param {import("./control.mjs").Release} what.release
 * @param {ReadonlyMap<string, string | Buffer>} what.manuals
 * @param {{ executable: string, licence: string } | undefined} what.runtime The program with its own Node, if it is standalone.
 */
export async function fill(tree, root, { release, manuals, runtime }) {
  await putProgram(tree, root, { architecture: release.architecture, executable: runtime?.executable });
  for (const [from, to] of copies) await put(tree, to, await readFile(join(root, from)));
  for (const [path, contents] of manuals) await put(tree, path, contents);
  await putDocuments(tree, root, release, runtime?.licence);
  await putControl(tree, root, release);
}

/** Fills an empty folder with the lab's package, the same for every architecture: its file, what its documents show, and tills to copy. */
export async function fillLab(tree, root, release) {
  for (const name of ["lab.cjs", "examples.json"]) {
    await put(tree, `usr/lib/posline/${name}`, await readFile(join(root, "dist", name)));
  }
  await putLegal(tree, root, release);
  const tills = (await readdir(join(root, "docs/tills"))).filter((name) => !name.endsWith(".md"));
  await putExamples(
    tree,
    root,
    tills.map((name) => `docs/tills/${name}`),
  );
  await put(tree, "DEBIAN/control", control(release, await installedKiB(tree)));
}
