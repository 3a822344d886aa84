import { readFileSync } from "node:fs";

/** The packages that a source file loads at run time, with all the files it imports. Imports of types load nothing. */
export function packagesLoadedBy(file: URL, seen: Set<string> = new Set()): ReadonlySet<string> {
  const packages = new Set<string>();
  if (seen.has(file.href)) {
    return packages;
  }
  seen.add(file.href);
  for (const [, target = ""] of readFileSync(file, "utf8").matchAll(/^(?:import|export)(?! type)[^;]*?from "([^"]+)";/gm)) {
    const loaded = target.startsWith(".") ? packagesLoadedBy(new URL(target, file), seen) : [target];
    for (const name of loaded) {
      packages.add(name);
    }
  }
  return packages;
}
