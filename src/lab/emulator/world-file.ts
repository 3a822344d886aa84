import { ConfigError } from "../../config/config.ts";
import { reason } from "../../config/secrets.ts";
import { readJson, readText, type WrittenFile } from "../../config/written-file.ts";
import { isObject } from "../../core/json-object.ts";
import { builtInWorld, type World, worldOf, worldSections } from "./world.ts";
import { type WorldShape, worldSchema } from "./world-schema.ts";

/** A world in a file that a person writes: JSON with comments, checked as the configuration is, and printed as an example to begin with. */

/**
 * The world of a file; without one, the built-in world.
 * @throws ConfigError with every problem there is.
 */
export function loadWorld(path?: string): World {
  if (path === undefined) return builtInWorld;
  const file: WrittenFile = { path, what: "world", comments: true };
  const problems: string[] = [];
  // The schema has the file's shape; what was wrong is left out, and is among the problems.
  const shape = (readJson(file, textOf(file), worldSchema, problems) ?? {}) as WorldShape;
  // Places in a list are the file's only while nothing was left out of it.
  if (problems.length === 0) refuseTwice(shape, problems);
  if (problems.length > 0) throw new ConfigError(problems, path, "world");
  return worldOf(shape);
}

function textOf(file: WrittenFile): string {
  try {
    return readText(file, []);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([reason(error, file.path)], file.path, "world");
  }
}

/** Refuses what may be there only once, since of two only the first would ever be found. */
function refuseTwice({ bank, qr, fiscal }: WorldShape, problems: string[]): void {
  const once = (path: string, name: string | undefined, seen: Map<string, string>) => {
    if (name === undefined) return;
    const first = seen.get(name);
    if (first === undefined) seen.set(name, path);
    else problems.push(`${path}: ${name} is at ${first} already: keep only one`);
  };
  const each = <T>(path: string, list: readonly T[] = [], nameOf: (entry: T) => string | undefined = String) => {
    const seen = new Map<string, string>();
    for (const [index, entry] of list.entries()) once(`${path}[${index}]`, nameOf(entry), seen);
  };
  each("bank.terminals", bank?.terminals, ({ terminal, merchant }) =>
    merchant === undefined ? `terminal ${terminal} without merchant` : `terminal ${terminal} with merchant ${merchant}`,
  );
  each("bank.operations", bank?.operations);
  const currencies = new Map<string, string>();
  const named = Object.entries(bank?.currencies ?? {});
  for (const [name] of named) once(`bank.currencies.${name}`, name, currencies);
  for (const [name, others] of named) {
    for (const [index, other] of others.entries()) once(`bank.currencies.${name}[${index}]`, other, currencies);
  }
  each("qr.systems", qr?.systems, ({ name }) => name);
  for (const [index, { operations }] of (qr?.systems ?? []).entries()) each(`qr.systems[${index}].operations`, operations);
  each("fiscal.operations", fiscal?.operations);
  each("fiscal.payments", fiscal?.payments);
  const { departments = "any", taxes = "any" } = fiscal ?? {};
  if (departments !== "any") each("fiscal.departments", departments, ({ departmentCode }) => departmentCode);
  if (taxes !== "any") each("fiscal.taxes", taxes, ({ taxCode }) => taxCode);
}

/** A world as a file that is read as that world: every setting, under its description. */
export function worldText(world: World): string {
  const written = worldSections.map((section) => {
    const { description, properties } = worldSchema.properties[section];
    const described = new Map(Object.entries<{ readonly description: string }>(properties));
    const entries = Object.entries(world[section]).map(([key, value]) => {
      const sentences = described.get(key)?.description.split(/(?<=\.) /) ?? [];
      return `${commentsOf(sentences, "    ")}    ${JSON.stringify(key)}: ${valueText(value, "    ")}`;
    });
    return `${commentsOf([description], "  ")}  ${JSON.stringify(section)}: {\n${entries.join(",\n")}\n  }`;
  });
  return `{\n${commentsOf(["What a file leaves out is as it is here."], "  ")}\n${written.join(",\n\n")}\n}\n`;
}

const commentsOf = (lines: readonly string[], indent: string) => lines.map((line) => `${indent}// ${line}\n`).join("");

/** The longest value that is written on one line. */
const columnsMax = 110;

/** A value on one line if it fits, else with each of its parts on its own. */
function valueText(value: unknown, indent: string): string {
  const flat = flatText(value);
  if (typeof value !== "object" || value === null || indent.length + flat.length <= columnsMax) return flat;
  const inner = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((each) => valueText(each, inner))
    : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${valueText(each, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

function flatText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatText).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${flatText(each)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
