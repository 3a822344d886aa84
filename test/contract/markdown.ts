/**
 * Reads the contract documents, which are kept word for word beside the tests: their tables, and the lists of fields that
 * stand in cells and sentences. Nothing here knows a field by name, so a document that changes changes what the tests ask.
 */

/** A field as a document states it; undefined where it leaves a thing open. */
export interface DocumentedField {
  readonly name: string;
  readonly type: string | undefined;
  readonly required: boolean | undefined;
}

export type Row = Readonly<Record<string, string>>;

/** The text of a section, from its heading to the next heading of any level; the heading may go on after these words. */
export function section(document: string, heading: string): string {
  const lines = document.split("\n");
  const headings = lines.map((line) => (/^#+ /.test(line) ? line.replace(/^#+ /, "") : undefined));
  const exact = headings.indexOf(heading);
  const start = exact === -1 ? headings.findIndex((words) => words?.startsWith(`${heading} (`)) : exact;
  if (start === -1) {
    throw new Error(`The document has no section ${heading}`);
  }
  const end = headings.findIndex((words, i) => i > start && words !== undefined);
  return lines.slice(start + 1, end === -1 ? undefined : end).join("\n");
}

/** The n-th table of a text, a row as an object by the names of its columns. */
export function table(text: string, n = 0): readonly Row[] {
  const tables: string[][] = [[]];
  for (const line of text.split("\n")) {
    if (line.startsWith("|")) {
      tables.at(-1)?.push(line);
    } else if (tables.at(-1)?.length !== 0) {
      tables.push([]);
    }
  }
  const [head, , ...rows] = tables[n] ?? [];
  if (head === undefined || rows.length === 0) {
    throw new Error(`There is no table ${n}`);
  }
  const names = cells(head);
  return rows.map((row) => Object.fromEntries(cells(row).map((cell, i) => [names[i] ?? "", cell])));
}

function cells(line: string): readonly string[] {
  return line
    .slice(1, line.lastIndexOf("|"))
    .split("|")
    .map((cell) => cell.trim());
}

/** What follows a phrase, up to the end of its sentence; throws where the document no longer has the phrase. */
export function after(text: string, phrase: string): string {
  const start = text.indexOf(phrase);
  if (start === -1) {
    throw new Error(`The document does not say: ${phrase}`);
  }
  const rest = text.slice(start + phrase.length);
  const end = rest.search(/\.(\s|$)/);
  return end === -1 ? rest : rest.slice(0, end);
}

const notNames = /^(none|all|rest|at least|empty|status success)\b/;

/**
 * The fields of a list such as `a (int64, required), b, c (string, optional)`, split where no parenthesis is open. Pieces that
 * are remarks ("all but items optional") aren't fields.
 */
export function fields(list: string, fallback: Partial<DocumentedField> = {}): readonly DocumentedField[] {
  return pieces(list)
    .filter((piece) => !notNames.test(piece))
    .map((piece) => {
      const name = /^[A-Za-z_]+/.exec(piece)?.[0] ?? piece;
      const notes = piece.slice(name.length);
      const type = typeIn(notes) ?? fallback.type;
      const required = /\brequired\b| R\b/.test(notes) ? true : /\boptional\b/.test(notes) ? false : fallback.required;
      return { name, type, required };
    });
}

function pieces(list: string): readonly string[] {
  const found: string[] = [];
  let depth = 0;
  let piece = "";
  for (const character of list) {
    depth += character === "(" ? 1 : character === ")" ? -1 : 0;
    if ((character === "," || character === ";") && depth === 0) {
      found.push(piece);
      piece = "";
    } else {
      piece += character;
    }
  }
  return [...found, piece].map((item) => item.trim().replace(/^and /, "")).filter((item) => item !== "");
}

/** The type that a cell or note begins with, in one spelling: `long` is an int64. */
export function typeIn(notes: string): string | undefined {
  const words: readonly (readonly [RegExp, string])[] = [
    [/\barray\b/, "array"],
    [/\b(?:integer )?int64\b|\blong\b/, "int64"],
    [/\bint32\b|\binteger\b/, "int32"],
    [/\bboolean\b/, "boolean"],
    [/\bstrings?\b/, "string"],
    [/\bobject\b/, "object"],
  ];
  // The first word of a type in reading order, since a remark may name another type later
  const found = words.map(([pattern, type]) => ({ at: notes.search(pattern), type })).filter(({ at }) => at !== -1);
  return found.sort((a, b) => a.at - b.at)[0]?.type;
}

/** The fields of a table with the columns Field and, perhaps, Type and Required. A cell may name several fields. */
export function tableFields(rows: readonly Row[]): readonly DocumentedField[] {
  return rows.flatMap((row) => {
    const required = row["Required"] === undefined ? undefined : row["Required"] === "yes";
    return pieces(row["Field"] ?? "").map((name) => ({ name, type: typeIn(row["Type"] ?? ""), required }));
  });
}
