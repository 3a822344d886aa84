import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Wireshark's programs, as far as tests of captures need them. */

const plugin = fileURLToPath(new URL("../../scripts/wireshark/posline.lua", import.meta.url));

/** Why no capture can be read here; false where it can. */
export const noTshark =
  spawnSync("tshark", ["--version"]).error === undefined ? false : "there is no tshark here: sudo apt-get install tshark";

/** What tshark makes of a capture: some fields of each packet. @param withPlugin Whether posline's plugin is there. */
export function fieldsOf(
  file: string,
  names: readonly string[],
  withPlugin = true,
): readonly Readonly<Record<string, string>>[] {
  const wanted = names.flatMap((name) => ["-e", name]);
  const text = tshark(file, ["-T", "fields", "-E", "separator=\u001f", ...wanted], withPlugin);
  return text
    .split("\n")
    .slice(0, -1)
    .map((row) => Object.fromEntries(row.split("\u001f").map((value, i) => [names[i] ?? "", value])));
}

/** What tshark prints of a capture. */
export function tshark(file: string, args: readonly string[], withPlugin = true): string {
  const script = withPlugin ? ["-X", `lua_script:${plugin}`] : [];
  // A box where these tests run may have plugins of its own; twice, so that each request knows its reply.
  return execFileSync("tshark", [...script, "-2", "-r", file, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** What capinfos says, and its exit code. */
export function capinfos(file: string): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync("capinfos", [file], { encoding: "utf8" });
  return { code: status, text: stdout + stderr.replace(/^Running as user .*\n/m, "") };
}
