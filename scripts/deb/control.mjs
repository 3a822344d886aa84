// The texts of a Debian package: control, changelog, copyright and what lintian is told.

/**
 * @typedef {{ maintainer: string, homepage: string | undefined }} Publisher
 * @typedef {"posline" | "posline-standalone" | "posline-lab"} PackageName
 * @typedef {{ name: PackageName, version: string, date: Date, architecture: string, publisher: Publisher }} Release
 */

/**
 * Who answers for the package, and where it is at home: of whoever builds it, by the environment. They are part of the package, so
 * the same commit gives the same bytes only with the same ones.
 * @throws Error naming the variable that dpkg could not read.
 */
export function publisherOf({
  DEB_MAINTAINER: maintainer = "posline maintainers <maintainers@posline.invalid>",
  DEB_HOMEPAGE: homepage,
}) {
  if (!/^[^<>\n]+ <[^<>@\s]+@[^<>@\s]+>$/.test(maintainer))
    throw new Error(`DEB_MAINTAINER is ${JSON.stringify(maintainer)}: write it as "Name <name@example.org>"`);
  if (homepage !== undefined && !/^https?:\/\/\S+$/.test(homepage))
    throw new Error(`DEB_HOMEPAGE is ${JSON.stringify(homepage)}: write a URL that begins with https://`);
  return { maintainer, homepage };
}

const described = `relay HTTP calls of tills to payment and fiscal terminals
 A till calls three services on localhost: fiscal (receipts), bank (card
 payments) and qr (QR payments). posline relays each request over a serial
 line to the terminal and brings its answer back, byte for byte.
 .
 It never gives a call an answer that was meant for another, never sends
 anything twice that could move money, print or change state, and never says
 "failed" where the truth is "unknown".`;

const ofLab = `posline's terminal without hardware, and its judges
 What nobody needs at a counter: posline emulate plays the terminal, posline
 rehearse plays a shop in which things go wrong for a till, posline certify
 judges a terminal, posline replay looks at a recording, and posline openapi
 prints the services as OpenAPI documents.`;

/** What the serial prebuilds need at least (symbols GLIBC_2.28, GLIBCXX_3.4.21), and the units and maintainer scripts. */
const always = ["libc6 (>= 2.28)", "libgcc-s1 (>= 3.5)", "libstdc++6 (>= 5.2)", "systemd (>= 252)", "udev"];

/** A version as dpkg orders it: 1.0.0-rc.1 comes before 1.0.0. */
export const debianVersion = (version) => version.replaceAll("-", "~");

export function control({ name, version, architecture, publisher }, installedKiB) {
  const isLab = name === "posline-lab";
  const standalone = name === "posline-standalone";
  const other = standalone ? "posline" : "posline-standalone";
  const same = `posline (= ${debianVersion(version)})`;
  const needs = [...(standalone ? [] : ["nodejs (>= 20.19)"]), ...always];
  const fields = [
    ["Package", name],
    ["Version", debianVersion(version)],
    ["Architecture", architecture],
    ["Maintainer", publisher.maintainer],
    ["Installed-Size", String(installedKiB)],
    // The lab is a part of one program, which shares its modules.
    ["Depends", isLab ? same : needs.join(", ")],
    // Either gives the same command, units and files, so an installed one is exchanged for the other.
    ...(isLab ? [] : [["Conflicts", other]]),
    // Till examples were in these before.
    ["Replaces", isLab ? "posline, posline-standalone" : other],
    ...(standalone ? [["Provides", same]] : []),
    ["Section", "net"],
    ["Priority", "optional"],
    ...(publisher.homepage === undefined ? [] : [["Homepage", publisher.homepage]]),
    [
      "Description",
      isLab
        ? ofLab
        : standalone
          ? `${described}\n .\n This variant carries its own Node.js, for systems whose nodejs is too old.`
          : described,
    ],
  ];
  return `${fields.map(([field, value]) => `${field}: ${value}`).join("\n")}\n`;
}

/**
 * A changelog as dpkg reads it, from the project's own: the entries of the release, each after its kind (Added, Changed, Fixed).
 * @throws Error for a release of which the project's own says nothing.
 */
export function changelog(release, markdown) {
  const section = markdown.split(/^## /m).find((each) => /^[^\s,]*/.exec(each)[0] === release.version);
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no heading for ${release.version}: write "## ${release.version}"`);
  const entries = section
    .split(/^### /m)
    .flatMap((part, n) => entriesOf(part).map((text) => wrapped(n === 0 ? text : `${part.split("\n", 1)[0]}: ${text}`)));
  const head = `${release.name} (${debianVersion(release.version)}) stable; urgency=medium`;
  return `${head}\n\n${entries.join("\n")}\n\n -- ${release.publisher.maintainer}  ${rfcDate(release.date)}\n`;
}

const entriesOf = (markdown) =>
  [...markdown.matchAll(/^- (.*(?:\n {2}\S.*)*)/gm)].map(([, text = ""]) => text.replace(/\s+/g, " "));

/** One entry in lines of at most 78 columns. */
function wrapped(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (`${lines.at(-1)} ${word}`.length > 74) lines.push("");
    lines[lines.length - 1] += lines.at(-1) === "" ? word : ` ${word}`;
  }
  return lines.map((line, n) => `${n === 0 ? "  * " : "    "}${line}`).join("\n");
}

/** A date as RFC 5322 writes it, in no zone of this machine. */
function rfcDate(date) {
  return date.toUTCString().replace("GMT", "+0000");
}

const indented = (text) =>
  text
    .trim()
    .split("\n")
    .map((line) => (line.trim() === "" ? " ." : ` ${line.trimEnd()}`))
    .join("\n");

/** The Apache licence's text, which Debian has once for all packages and takes from none (Policy 12.5). */
const apacheText = /^ *Apache License\n *Version 2\.0,[\s\S]*?limitations under the License\.$/gm;
const apachePlace = "Apache License, Version 2.0: on Debian systems its text is /usr/share/common-licenses/Apache-2.0.";

/** Machine-readable copyright: the project's licence, and those of what its bundle holds. */
export function copyright(release, { licence, bundled }) {
  const holder = /^Copyright \(c\) (.*)$/m.exec(licence)?.[1] ?? "the posline authors";
  const parts = [
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: posline",
    `Files: *\nCopyright: ${holder}\nLicense: Expat`,
    "Files: usr/lib/posline/*\nCopyright: the authors named in the texts below\nLicense: Expat and bundled\n" +
      `Comment: The program holds the packages listed below, each under the licence that follows its name.${
        release.name === "posline-standalone"
          ? `\n Its Node.js has the licences of /usr/share/doc/${release.name}/node-licences.gz.`
          : ""
      }`,
    `License: Expat\n${indented(licence.replace(/^MIT License\n+Copyright.*\n+/, ""))}`,
    `License: bundled\n${indented(bundled.replaceAll(apacheText, apachePlace))}`,
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Why lintian's finding is none here; only the standalone variant needs that. */
export function overrides({ name }) {
  return [
    "# Node's own binary with posline inside: its libraries are part of it, as the Node project builds and tests them.",
    `${name}: embedded-library *`,
    `${name}: hardening-no-pie [usr/lib/posline/posline]`,
    "# posline lies in a note of the binary, which strip would cut off.",
    `${name}: unstripped-binary-or-object [usr/lib/posline/posline]`,
    "",
  ].join("\n");
}
