import { make } from "./dom.ts";
import { type TextKey, text } from "./texts.ts";

/** What is known of something, each fact with its name. */

/** A list of facts, of which the known ones are shown. */
export function factsOf(facts: Readonly<Partial<Record<TextKey, string | undefined>>>): HTMLElement {
  const list = make("dl", "facts");
  for (const [name, value] of Object.entries(facts)) {
    // Object.entries forgets the keys' type.
    if (value !== undefined) list.append(make("div", "", make("dt", "", text(name as TextKey)), make("dd", "", value)));
  }
  return list;
}
