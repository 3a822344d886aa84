// The key that a repository is signed with: which one of gpg's, and whether boxes take what it signs.
import { spawnSync } from "node:child_process";

/** How long before a key's end it is named: boxes need the renewed one until then. */
const soonMs = 60 * 24 * 60 * 60 * 1000;

/** The keys that gpg has under a name: each as its parts, the key itself and its subkeys. */
function keysOf(name) {
  const args = ["--batch", "--with-colons", "--list-secret-keys", "--", name];
  const { error, stdout } = spawnSync("gpg", args, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (error !== undefined) throw new Error("gpg is missing: sudo apt-get install gpg");
  const keys = [];
  for (const line of stdout.split("\n")) {
    const [record, validity, , , , madeS, endS, , , fingerprint, , uses] = line.split(":");
    if (record === "sec") keys.push([]);
    if (record === "sec" || record === "ssb") {
      const endMs = endS === "" ? Number.POSITIVE_INFINITY : Number(endS) * 1000;
      keys
        .at(-1)
        .push({ isRevoked: validity === "r", madeS: Number(madeS), endMs, signs: uses.includes("s"), fingerprint: "" });
    }
    const part = keys.at(-1)?.at(-1);
    if (record === "fpr") part.fingerprint = fingerprint;
  }
  return keys;
}

/** What a key signs with, which is its newest part, as gpg chooses; and what is wrong with it, with the command that cures it. */
function judged(parts, name) {
  const [key] = parts;
  const { fingerprint } = key;
  const signing = parts.filter(({ signs, isRevoked }) => signs && !isRevoked).sort((one, other) => one.madeS - other.madeS);
  const signs = signing.findLast(({ endMs }) => endMs > Date.now()) ?? signing.at(-1);
  const carry = "and bring the new posline.gpg to each box";
  if (key.isRevoked || signs === undefined)
    return {
      fingerprint,
      reason:
        `key ${fingerprint} is revoked or can't sign, and boxes refuse it: make another one by ` +
        `gpg --yes --quick-generate-key '${name}' ed25519 sign 2y, ${carry}`,
    };
  const ending = [...new Set([key, signs])].filter(({ endMs }) => endMs < Date.now() + soonMs);
  if (ending.length === 0) return { fingerprint };
  const endMs = Math.min(...ending.map((part) => part.endMs));
  const isOver = endMs <= Date.now();
  const renewals = ending.map((part) => {
    const subkey = part === key ? "" : ` ${part.fingerprint}`;
    return `gpg --quick-set-expire ${fingerprint} 2y${subkey}`;
  });
  const when = `${isOver ? "expired" : "expires"} on ${new Date(endMs).toISOString().slice(0, 10)}`;
  const text = `key ${fingerprint} ${when}, and boxes refuse from then on what it signed: ${renewals.join(" && ")}, ${carry}`;
  return isOver ? { fingerprint, reason: text } : { fingerprint, warning: text };
}

/**
 * The key to sign with, by its fingerprint; undefined if the operator said that nothing is to be signed. A key that expires soon is
 * named, and taken.
 * @throws Error if neither was said, or gpg has not exactly one such key that boxes take.
 */
export function signerOf({ "sign-with": name, unsigned }) {
  if (unsigned && name !== undefined) throw new Error("--unsigned and --sign-with exclude each other: leave one out");
  if (unsigned) return undefined;
  if (name === undefined)
    throw new Error(
      "a box can't tell an unsigned repository from a forged one: name a key by --sign-with KEY, or say --unsigned",
    );
  const keys = keysOf(name).map((parts) => judged(parts, name));
  if (keys.length === 0)
    throw new Error(
      `gpg has no secret key ${name}: gpg --list-secret-keys shows those it has, gpg --quick-generate-key makes one`,
    );
  const usable = keys.filter(({ reason }) => reason === undefined);
  if (usable.length === 0) throw new Error(keys.at(-1).reason);
  const [{ fingerprint, warning }] = usable;
  if (usable.length > 1) {
    const all = usable.map((each) => each.fingerprint).join(", ");
    throw new Error(`gpg has several keys ${name}: name the one that boxes have by its fingerprint: ${all}`);
  }
  if (warning !== undefined) console.error(`Soon no box takes the repository: ${warning}`);
  return fingerprint;
}
