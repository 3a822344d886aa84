import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

/** The rooms of `src/` import each other as docs/architecture.md says: its table has each room's floor. */

const root = new URL("../..", import.meta.url).pathname;

const rows = [...readFileSync(join(root, "docs/architecture.md"), "utf8").matchAll(/^\| (\d+) \| `([a-z/]+)` \|/gm)];
const floors = new Map(rows.map(([, floor, room]) => [room ?? "", Number(floor)]));

/** What joins the wings, and belongs to no floor. */
const entries = new Set(["main.ts", "lab/lab.ts"]);

/** The one import from the bridge of the lab. */
const door = "cli/lab.ts -> lab/lab.ts";

/** Packages that one room alone imports at run time. */
const owners: ReadonlyMap<string, string> = new Map([
  ["@serialport/bindings-cpp", "device"],
  ["@serialport/parser-byte-length", "capture"],
  ["pino", "core"],
  ["jsonc-parser", "core"],
  ["yargs", "cli"],
  ["typebox", "contract"],
  ["@prometheus-io/client", "admin"],
]);

function roomOf(file: string): string {
  const [first = "", second = ""] = file.split("/");
  return first === "lab" ? `lab/${second}` : first;
}

type Import = { readonly from: string; readonly to: string; readonly isType: boolean };

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
const imports: readonly Import[] = files.flatMap((from) =>
  [
    ...readFileSync(join(root, "src", from), "utf8").matchAll(
      /^(?:import|export) (type )?[^;]*?from "([^"]+)";|import\("([^"]+)"\)/gm,
    ),
  ].map(([, type, fixed, lazy]) => {
    const path = fixed ?? lazy ?? "";
    return { from, to: path.startsWith(".") ? normalize(join(dirname(from), path)) : path, isType: type !== undefined };
  }),
);

test("each room stands in the table, and each room of the table in src", () => {
  const rooms = new Set(files.filter((file) => file.includes("/") && !entries.has(file)).map(roomOf));
  assert.deepEqual([...floors.keys()].sort(), [...rooms].sort());
});

test("a room imports only rooms of lower floors, and nothing of the bridge imports the lab but its door", () => {
  const wrong = imports.flatMap(({ from, to }) => {
    if (!to.endsWith(".ts") || entries.has(from) || `${from} -> ${to}` === door) return [];
    const [here, there] = [roomOf(from), roomOf(to)];
    const isUp = here !== there && !((floors.get(there) ?? Number.NaN) < (floors.get(here) ?? Number.NaN));
    const isIntoLab = there.startsWith("lab") && !here.startsWith("lab");
    return isUp || isIntoLab ? [`${from} -> ${to}`] : [];
  });
  assert.deepEqual(wrong, []);
  assert.ok(
    imports.some(({ from, to }) => `${from} -> ${to}` === door),
    "the door is there",
  );
});

test("no two files import each other, types included", () => {
  const graph = new Map(files.map((file) => [file, imports.filter(({ from }) => from === file).map(({ to }) => to)]));
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    assert.ok(!way.includes(file), `a circle: ${[...way.slice(way.indexOf(file)), file].join(" -> ")}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});

test("each larger package has the one room that imports it", () => {
  for (const [name, owner] of owners) {
    const importers = imports.filter(({ to, isType }) => !isType && (to === name || to.startsWith(`${name}/`)));
    assert.deepEqual([...new Set(importers.map(({ from }) => roomOf(from)))], [owner], name);
  }
});

test("a name is exported by one room: one word has one meaning", () => {
  const roomsOf = new Map<string, Set<string>>();
  // The page names what it reads as the admin port does that writes it.
  for (const file of files.filter((each) => !entries.has(each) && each !== "page/answers.ts")) {
    const exported = /^export (?:abstract )?(?:async )?(?:class|interface|type|function|const) (\w+)/gm;
    for (const [, name = ""] of readFileSync(join(root, "src", file), "utf8").matchAll(exported))
      roomsOf.set(name, (roomsOf.get(name) ?? new Set()).add(roomOf(file)));
  }
  assert.ok(roomsOf.size > 1_000, `${roomsOf.size} names were looked at`);
  const repeated = [...roomsOf]
    .filter(([, rooms]) => rooms.size > 1)
    .map(([name, rooms]) => `${name}: ${[...rooms].join(", ")}`);
  assert.deepEqual(repeated, []);
});
