import { isObject, type JsonObject } from "../core/json-object.ts";
import { JsonError, parseJsonOnce } from "../core/json-syntax.ts";
import { check, type Node } from "./check.ts";

/**
 * Reads a text as a JSON object of this shape, each of its keys once, and adds each problem to `problems`.
 * @returns the object without what is wrong; empty if it is none.
 */
export function checkObject(node: Node, text: string, problems: string[]): JsonObject {
  try {
    const json = parseJsonOnce(text, problems);
    // Of an object, what is left is one.
    if (isObject(json)) return (check(node, json, "", problems) ?? {}) as JsonObject;
    problems.push(`the body must be a JSON object: its keys are ${Object.keys(node.properties ?? {}).join(", ")}`);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    problems.push(error.message);
  }
  return {};
}
