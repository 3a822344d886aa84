/** The page's few operations on its document. Text gets into it as text alone: nothing here takes HTML. */

/** The element with this id, of a class. @throws Error if the page has none: page and script are not of one version. */
export function byId(id: string): HTMLElement;
export function byId<T extends Element>(id: string, kind: new () => T): T;
export function byId(id: string, kind: new () => Element = HTMLElement): Element {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`Cannot show the page: it has no ${kind.name} with the id ${id}: load it again`);
}

/** The URL of a path below the page's own, for `fetch`, which refuses relative ones if a user and a password stand in the address bar. */
export const addressOf = (path: string): string => new URL(path, location.origin + location.pathname).href;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className !== "") made.className = className;
  made.append(...children);
  return made;
}

/** Makes an element with posline's own text, or a terminal's: that is English, whatever the page's language is. */
export function makeEnglish(tag: "p" | "code" | "span", className: string, text: string): HTMLElement {
  const made = make(tag, className, text);
  made.lang = "en";
  return made;
}

/** Sets an element's text if it is another one: an unchanged text costs nothing and isn't read out again. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
