import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Box, textAt } from "./box.ts";

/** The folder of the USB device that a tty belongs to. */
export async function adapterFolder({ sys }: Box, node: string): Promise<string | undefined> {
  const device = await realpath(join(sys, "class", "tty", basename(node), "device")).catch(() => undefined);
  if (device === undefined) return undefined;
  for (let at = device; dirname(at) !== at && basename(at) !== "devices"; at = dirname(at)) {
    if ((await textAt(at, "idVendor")) !== undefined) return at;
  }
  return undefined;
}

/** Where udev reads rules: of two with one name, the first is in force. */
export function ruleFolders({ etc, run, usr }: Box): readonly string[] {
  return [etc, run, join(usr, "lib")].map((folder) => join(folder, "udev", "rules.d"));
}
