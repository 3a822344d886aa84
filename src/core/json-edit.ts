import { findNodeAtLocation, type Node, parseTree, visit } from "jsonc-parser";

/** Changes members of a JSON text and leaves every other byte as its author wrote it: what a person reads as a diff is the change alone. */

/** A member by its keys from the outermost object on. */
export interface JsonEdit {
  readonly path: readonly [string, ...string[]];
  /** undefined takes the member out. */
  readonly value: unknown;
}

/**
 * @param text A JSON object. An edit whose member or value is there already changes nothing.
 * @throws Error for what is not an object: a bug of the caller, who has parsed the text.
 */
export function editJson(text: string, edits: readonly JsonEdit[]): string {
  return edits.reduce((edited, { path, value }) => {
    const root = parseTree(edited);
    if (root?.type !== "object") throw new Error("Cannot edit the text: it is not a JSON object");
    return value === undefined ? without(edited, root, path) : withMember(edited, root, { path, value });
  }, text);
}

function withMember(text: string, root: Node, { path, value }: JsonEdit): string {
  const there = findNodeAtLocation(root, [...path]);
  if (there !== undefined) {
    const written = text.slice(there.offset, there.offset + there.length);
    if (JSON.stringify(JSON.parse(written)) === JSON.stringify(value)) return text;
    return spliced(text, there.offset, there.length, valueText(value));
  }
  const [key = "", ...parents] = path.toReversed();
  const [outer, ...others] = parents.toReversed();
  if (outer !== undefined && findNodeAtLocation(root, [outer, ...others]) === undefined) {
    return withMember(text, root, { path: [outer, ...others], value: { [key]: value } });
  }
  const parent = outer === undefined ? root : findNodeAtLocation(root, [outer, ...others]);
  if (parent?.type !== "object") throw new Error("Cannot edit the text: a member stands where an object belongs");
  const member = `${JSON.stringify(key)}: ${valueText(value)}`;
  const indent = "  ".repeat(path.length);
  const last = parent.children?.at(-1);
  if (last === undefined) return spliced(text, parent.offset, parent.length, `{\n${indent}${member}\n${indent.slice(2)}}`);
  const isOneLine = !text.slice(parent.offset, parent.offset + parent.length).includes("\n");
  return spliced(text, last.offset + last.length, 0, isOneLine ? `, ${member}` : `,\n${indent}${member}`);
}

function without(text: string, root: Node, path: readonly string[]): string {
  const member = findNodeAtLocation(root, [...path])?.parent;
  const siblings = member?.parent?.children;
  if (member === undefined || siblings === undefined) return text;
  const at = siblings.indexOf(member);
  const [before, after] = [siblings[at - 1], siblings[at + 1]];
  // With the comma, and the white space before the member or behind it.
  const from = before === undefined ? member.offset : before.offset + before.length;
  const to = before === undefined && after !== undefined ? after.offset : member.offset + member.length;
  return spliced(text, from, to - from, "");
}

/** Shows no text of a member that has one of these names, however its name is written: `\u004b` is a K. */
export function withoutTextsOf(names: ReadonlySet<string>, text: string): string {
  const pieces: string[] = [];
  let [member, end] = ["", 0];
  visit(text, {
    onObjectProperty: (name) => {
      member = name;
    },
    onLiteralValue: (value, offset, length) => {
      if (typeof value !== "string" || !names.has(member)) return;
      pieces.push(text.slice(end, offset), '"****"');
      end = offset + length;
    },
  });
  return [...pieces, text.slice(end)].join("");
}

const spliced = (text: string, offset: number, length: number, put: string) =>
  `${text.slice(0, offset)}${put}${text.slice(offset + length)}`;

/** A value on one line, with a space inside each brace, as the package's file has it. */
function valueText(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${valueText(each)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
