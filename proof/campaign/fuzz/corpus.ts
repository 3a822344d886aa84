import { readFileSync } from "node:fs";
import { isObject, type JsonObject } from "../../../src/core/json-object.ts";
import examplesJson from "../../../src/lab/openapi/examples.json" with { type: "json" };
import framesJson from "../../../test/vectors/frames.json" with { type: "json" };

/** What inputs are made from: golden frames, the contracts' examples, and the files of `test/vectors/corpus`. */

/** Golden frames, as they stand on the wire. */
export const frames: readonly Buffer[] = framesJson.frames.map(({ wire }) => Buffer.from(wire, "hex"));

/** Of each example of the contracts its service, route, request and answer. */
export interface Example {
  readonly service: "fiscal" | "bank" | "qr";
  readonly route: string;
  readonly request: JsonObject;
  readonly answer: JsonObject;
}

export const examples: readonly Example[] = (["fiscal", "bank", "qr"] as const).flatMap((service) =>
  examplesJson[service].map((example) => ({
    service,
    route: example.route,
    request: "request" in example && isObject(example.request) ? example.request : {},
    answer: isObject(example.answer) ? example.answer : {},
  })),
);

/** A file of the corpus. */
export function corpusText(name: string): string {
  return readFileSync(new URL(`../../../test/vectors/corpus/${name}`, import.meta.url), "utf8");
}

/** Its pieces, which stand between lines of `----`. */
export function corpusTexts(name: string): readonly string[] {
  return corpusText(name).split(/^----\n/m);
}

/** Its lines. */
export function corpusLines(name: string): readonly string[] {
  return corpusText(name)
    .split("\n")
    .filter((line) => line !== "");
}
