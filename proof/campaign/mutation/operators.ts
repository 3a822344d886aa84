import { parse } from "@babel/parser";

/**
 * What is changed in a source, one change a mutant: a test that holds a behaviour must fail when the code does something else.
 *
 * Only changes that the compiler accepts are made, since others would be found without a test: a number becomes its neighbour, a
 * condition its opposite, a statement goes. Names, types and the words of unions stay.
 */
export interface Mutant {
  /** Offsets in the source: what stands there is replaced. */
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly operator: string;
  readonly from: string;
  /** Empty for a statement that goes. */
  readonly to: string;
}

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly loc: { readonly start: { readonly line: number } };
  readonly [key: string]: unknown;
}

const swapped: Readonly<Record<string, readonly string[]>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "===": ["!=="],
  "!==": ["==="],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "&": ["|"],
  "|": ["&"],
  "^": ["&"],
  "<<": [">>"],
  ">>": ["<<"],
  ">>>": ["<<"],
  "&&": ["||"],
  "||": ["&&"],
  "+=": ["-="],
  "-=": ["+="],
  "++": ["--"],
  "--": ["++"],
};

const renamed = new Map([
  ["min", "max"],
  ["max", "min"],
  ["some", "every"],
  ["every", "some"],
]);

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

class Finder {
  readonly mutants: Mutant[] = [];
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  visit(node: SyntaxNode): void {
    if (node.type.startsWith("Import") || node.type.startsWith("Export") || node.type.startsWith("TS")) {
      // Of these, only a value that is exported or cast is code.
      for (const value of [node["declaration"], node["expression"]]) if (isNode(value)) this.visit(value);
      return;
    }
    this.#mutate(node);
    for (const child of childrenOf(node)) if (!this.#isName(node, child) && !this.#isLoopStep(node, child)) this.visit(child);
  }

  #isName(node: SyntaxNode, child: SyntaxNode): boolean {
    return (child === node["key"] || child === node["property"]) && node["computed"] !== true;
  }

  /** `i++` of a loop: without it, it never ends, which shows nothing. */
  #isLoopStep(node: SyntaxNode, child: SyntaxNode): boolean {
    return node.type === "ForStatement" && child === node["update"];
  }

  #text(node: SyntaxNode): string {
    return this.#source.slice(node.start, node.end);
  }

  /** In parentheses where another operator could bind it otherwise. */
  #operand(node: SyntaxNode): string {
    return /^(?:Binary|Logical|TSAs)/.test(node.type) ? `(${this.#text(node)})` : this.#text(node);
  }

  #add(node: SyntaxNode, operator: string, to: string): void {
    const { start, end } = node;
    this.mutants.push({ start, end, line: node.loc.start.line, operator, from: this.#text(node), to });
  }

  #swapOperator(node: SyntaxNode, left: SyntaxNode, right: SyntaxNode): void {
    const operator = String(node["operator"]);
    const isText = [left, right].some(({ type }) => type === "StringLiteral" || type === "TemplateLiteral");
    if (operator === "+" && isText) return;
    if (operator === "??") {
      this.#add(node, "operator", this.#text(left));
      return;
    }
    for (const other of swapped[operator] ?? [])
      this.#add(node, "operator", `${this.#operand(left)} ${other} ${this.#operand(right)}`);
  }

  #mutate(node: SyntaxNode): void {
    const { left, right, argument, test, callee, expression } = node;
    switch (node.type) {
      case "BinaryExpression":
      case "LogicalExpression":
      case "AssignmentExpression":
        if (isNode(left) && isNode(right)) this.#swapOperator(node, left, right);
        break;
      case "UpdateExpression":
        if (isNode(argument))
          this.#add(
            node,
            "operator",
            this.#text(node).replace(/\+\+|--/, (is) => swapped[is]?.[0] ?? is),
          );
        break;
      case "UnaryExpression":
        if (isNode(argument) && ["!", "-"].includes(String(node["operator"])))
          this.#add(node, "operator", this.#text(argument));
        break;
      case "IfStatement":
      case "ConditionalExpression":
        if (isNode(test)) for (const to of ["true", "false"]) this.#add(test, "condition", to);
        break;
      case "WhileStatement":
      case "ForStatement":
        if (isNode(test) && test.type !== "BooleanLiteral") this.#add(test, "condition", "false");
        break;
      case "NumericLiteral":
        this.#add(node, "number", String(Number(node["value"]) + 1));
        if (node["value"] === 1) this.#add(node, "number", "0");
        break;
      case "BooleanLiteral":
        this.#add(node, "boolean", String(node["value"] !== true));
        break;
      case "StringLiteral":
        // A single word is mostly one of a union, which the compiler holds.
        if (String(node["value"]).includes(" ")) this.#add(node, "text", '""');
        break;
      case "TemplateLiteral":
        this.#add(node, "text", '""');
        break;
      case "ArrayExpression":
        if (Array.isArray(node["elements"]) && node["elements"].length > 0) this.#add(node, "list", "[]");
        break;
      case "CallExpression":
        if (isNode(callee) && callee.type === "MemberExpression" && isNode(callee["property"]))
          this.#rename(node, callee["property"]);
        break;
      case "ExpressionStatement":
        if (isNode(expression)) this.#mutateStatement(node, expression);
        break;
    }
  }

  #rename(call: SyntaxNode, name: SyntaxNode): void {
    const other = renamed.get(this.#text(name));
    if (other === undefined) return;
    const source = this.#source;
    this.#add(call, "function", source.slice(call.start, name.start) + other + source.slice(name.end, call.end));
  }

  #mutateStatement(statement: SyntaxNode, expression: SyntaxNode): void {
    const { callee, argument } = expression;
    if (isNode(callee) && callee.type === "Super") return;
    if (expression.type === "AwaitExpression" && isNode(argument)) this.#add(expression, "await", this.#text(argument));
    this.#add(statement, "statement", "");
  }
}

/** All mutants of a TypeScript source, in the order of the source. */
export function mutantsOf(source: string): readonly Mutant[] {
  const finder = new Finder(source);
  const { program } = parse(source, { sourceType: "module", plugins: ["typescript"], createParenthesizedExpressions: true });
  for (const statement of program.body) if (isNode(statement)) finder.visit(statement);
  return finder.mutants.sort((one, other) => one.start - other.start || other.end - one.end);
}

interface Group {
  readonly start: number;
  readonly end: number;
  readonly mutants: { readonly mutant: Mutant; readonly id: number }[];
}

/**
 * The source with all of its mutants in it, each behind `on(id)`, an expression that is true where that mutant is to run: one
 * build serves for all.
 */
export function withMutants(source: string, mutants: readonly Mutant[], firstId: number, on: (id: number) => string): string {
  const groups: Group[] = [];
  for (const [index, mutant] of mutants.entries()) {
    const last = groups.at(-1);
    const entry = { mutant, id: firstId + index };
    if (last?.start === mutant.start && last.end === mutant.end) last.mutants.push(entry);
    else groups.push({ start: mutant.start, end: mutant.end, mutants: [entry] });
  }
  let next = 0;
  function text(from: number, until: number): string {
    let out = "";
    let at = from;
    for (let group = groups[next]; group !== undefined && group.end <= until; group = groups[next]) {
      next += 1;
      out += source.slice(at, group.start) + choice(group, text(group.start, group.end));
      at = group.end;
    }
    return out + source.slice(at, until);
  }
  function choice({ mutants }: Group, original: string): string {
    const [{ mutant, id } = { mutant: undefined, id: 0 }] = mutants;
    if (mutant?.operator === "statement") return `{if(!(${on(id)})){${original}}}`;
    return `(${mutants.map((each) => `${on(each.id)}?(${each.mutant.to}):`).join("")}(${original}))`;
  }
  return text(0, source.length);
}
