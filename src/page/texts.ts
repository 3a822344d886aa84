import { decimalsOf } from "../core/money.ts";
import { addressOf } from "./dom.ts";
import type english from "./en.json";

/** The page's words, one file for each language, and its ways to write times and numbers. */

export type TextKey = keyof typeof english;

/** Languages in which there are texts, as they name themselves. */
export const languages = { en: "English", de: "Deutsch" } as const;

export type Language = keyof typeof languages;

const languageKey = "posline-language";

let texts: Readonly<Partial<Record<string, string>>> = {};
let clock = new Intl.DateTimeFormat("en", { timeStyle: "medium" });
let dateAndTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
let numbers = new Intl.NumberFormat("en");
/** The present language's way to write a number of so many decimals. */
let moneys: Map<number, Intl.NumberFormat> = new Map();
let locale = "en";

const isLanguage = (name: string): name is Language => Object.hasOwn(languages, name);

/** The language that was chosen here before, or the first of the browser's that the page has. */
export function preferredLanguage(): Language {
  const wanted = [stored(), ...navigator.languages.map((name) => name.slice(0, 2).toLowerCase())];
  return wanted.find((name): name is Language => name !== undefined && isLanguage(name)) ?? "en";
}

function stored(): string | undefined {
  try {
    return localStorage.getItem(languageKey) ?? undefined;
  } catch {
    return undefined; // The browser keeps nothing for this page.
  }
}

/** Remembers a choice, where the browser keeps anything. */
export function rememberLanguage(language: Language): void {
  try {
    localStorage.setItem(languageKey, language);
  } catch {}
}

/** Fetches a language's texts, and writes them into the page's fixed places: elements with `data-text` and `data-label`. */
export async function useLanguage(language: Language): Promise<void> {
  const response = await fetch(addressOf(`page/${language}.json`));
  if (!response.ok) throw new Error(`Cannot show the page in ${languages[language]}: HTTP ${response.status}`);
  // The file has the keys of en.json: a test compares them.
  texts = (await response.json()) as typeof english;
  // Times in the browser's own form, if it has this language.
  locale = navigator.languages.find((name) => name.startsWith(language)) ?? language;
  clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
  dateAndTime = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
  numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  moneys = new Map();
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll<HTMLElement>("[data-text]")) {
    each.textContent = optionalText(each.dataset["text"] ?? "") ?? "";
  }
  for (const each of document.querySelectorAll<HTMLElement>("[data-label]")) {
    each.setAttribute("aria-label", optionalText(each.dataset["label"] ?? "") ?? "");
  }
}

/** A text with its `{places}` filled in. */
export function text(key: TextKey, places: Readonly<Record<string, string | number>> = {}): string {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (place, name: string) => {
    const value = places[name];
    return value === undefined ? place : typeof value === "number" ? numbers.format(value) : value;
  });
}

/** A text whose key is made of what posline says; undefined for a word that is not known yet. */
export function optionalText(key: string): string | undefined {
  return Object.hasOwn(texts, key) ? texts[key] : undefined;
}

export const timeOfDay = (time: Date): string => (Number.isNaN(time.getTime()) ? "?" : clock.format(time));

export const dayAndTime = (time: Date): string => (Number.isNaN(time.getTime()) ? "?" : dateAndTime.format(time));

/** Minor units as money, "15.00 EUR"; if the currency isn't known, as minor units. */
export function moneyOf(digits: string, currency = ""): string {
  const places = decimalsOf(digits, currency);
  if (places === undefined) return text("minorUnits", { digits, currency }).trim();
  let format = moneys.get(places);
  if (format === undefined) {
    format = new Intl.NumberFormat(locale, { minimumFractionDigits: places, maximumFractionDigits: places });
    moneys.set(places, format);
  }
  return `${format.format(Number(digits) / 10 ** places)} ${currency}`;
}

/** Milliseconds for people: "8.7 ms", "30 s", "2 min". */
export function durationOf(ms: number): string {
  if (ms < 1_000) return text("ms", { n: ms < 100 ? Math.round(ms * 10) / 10 : Math.round(ms) });
  if (ms < 120_000) return text("s", { n: ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1_000) });
  if (ms < 7_200_000) return text("min", { n: Math.round(ms / 60_000) });
  return text("h", { n: Math.round(ms / 3_600_000) });
}

/** Words for how long ago something was, in whole seconds: they are written anew each second. */
export const agoText = (ms: number): string =>
  ms < 1_500 ? text("justNow") : text("ago", { time: durationOf(Math.round(ms / 1_000) * 1_000) });
