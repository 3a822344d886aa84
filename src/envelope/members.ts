import type { JsonObject } from "../core/json-object.ts";

/**
 * The few members of a JSON object that posline looks at, read without building the rest of it.
 *
 * `JSON.parse` makes an object of every value: 8 MiB of empty lists take 120 MB of heap, and while that grows no other line is served.
 * Here the bytes are walked once by the grammar of RFC 8259, in constant memory, and only what is wanted becomes a value. What is
 * taken is what `JSON.parse` takes as an object.
 */

/**
 * Bytes of one member that become a value; a larger one becomes an empty value of its kind. The longest honest one, the operations of
 * seven payment systems, takes a few kB.
 */
const memberBytesMax = 256 * 1024;

/** Bytes of a member that is short: ids and words. */
const shortBytesMax = 64;

/** Why a text wasn't read, as it stands behind "it is". */
export type Unread = "no JSON object" | "nested too deeply";

const malformed = "no JSON object";
const tooDeep = "nested too deeply";

/** The members that are wanted: `true` for the whole member, names where only some of its own members are. */
export interface WantedMembers {
  readonly [name: string]: true | WantedMembers;
}

/** A wanted name in the form in which it is looked for. */
interface Name {
  readonly name: string;
  readonly index: number;
  readonly bytes: Buffer;
  /** The names that are wanted of its members; undefined when all of it is. */
  readonly inner: Names | undefined;
}

/** WantedMembers names, made ready once. They are letters of ASCII and underscores. */
export class Names {
  readonly #byLength: readonly (readonly Name[])[];

  constructor(wanted: WantedMembers) {
    const byLength: Name[][] = [];
    for (const [index, [name, inner]] of Object.entries(wanted).entries()) {
      const bytes = Buffer.from(name);
      const same = byLength[bytes.length] ?? [];
      same.push({ name, index, bytes, inner: inner === true ? undefined : new Names(inner) });
      byLength[bytes.length] = same;
    }
    this.#byLength = Array.from(byLength, (names) => names ?? []);
  }

  /** The wanted name that a key is, if it is one: `text[from, to)` is what stands between its quotes. */
  find(text: Buffer, from: number, to: number): Name | undefined {
    const names = this.#byLength[to - from];
    if (names !== undefined) for (const name of names) if (isAt(name.bytes, text, from)) return name;
    // With escapes it is longer, by five bytes a letter at most.
    if (to - from > 6 * this.#byLength.length) return undefined;
    for (let at = from; at < to; at++) if (text[at] === backslash) return this.#findEscaped(text, from, to);
    return undefined;
  }

  #findEscaped(text: Buffer, from: number, to: number): Name | undefined {
    for (const names of this.#byLength) for (const name of names) if (isEscaped(name.bytes, text, from, to)) return name;
    return undefined;
  }
}

/** Whether a key with escapes is this name: `pay\u005fid` is `pay_id` to whoever parses it. The short escapes stand for no letter. */
function isEscaped(name: Buffer, text: Buffer, from: number, to: number): boolean {
  let at = from;
  for (const byte of name) {
    if (text[at] === byte) at++;
    else if (text[at] === backslash && text[at + 1] === letterU && hexAt(text, at + 2) === byte) at += 6;
    else return false;
  }
  return at === to;
}

function hexAt(text: Buffer, from: number): number {
  let value = 0;
  for (let at = from; at < from + 4; at++) value = value * 16 + hexDigit(text[at] ?? 0);
  return value;
}

/** Where a wanted member's value stands. */
interface Slot {
  readonly name: Name;
  /** White space may stand before the value. */
  from: number;
  to: number;
  /** Of a list: all its items are strings. */
  texts: boolean;
  /** The value is an object, and `inner` has what is wanted of it. */
  entered: boolean;
  inner: Members | undefined;
}

/** The wanted members that an object has; of one that stands there twice the last, as `JSON.parse` has it. */
export class Members {
  /** The first wanted name that stands there twice. */
  twice: string | undefined;
  readonly #text: Buffer;
  readonly #names: Names;
  /** Those of the object in which this one stands. */
  readonly outer: Members | undefined;
  readonly #slots: (Slot | undefined)[] = [];
  /** The one whose value is being walked. */
  #current: Slot | undefined;

  constructor(text: Buffer, names: Names, outer?: Members) {
    this.#text = text;
    this.#names = names;
    this.outer = outer;
  }

  /** A member's value; undefined when it isn't there. */
  value(name: string): unknown {
    const slot = this.#slots.find((each) => each?.name.name === name);
    return slot === undefined ? undefined : this.#valueOf(slot);
  }

  /** All of them as an object. */
  get json(): JsonObject {
    const json: Record<string, unknown> = {};
    for (const slot of this.#slots) if (slot !== undefined) json[slot.name.name] = this.#valueOf(slot);
    return json;
  }

  #valueOf({ from: before, to, texts, entered, inner }: Slot): unknown {
    if (entered) return inner?.json;
    const text = this.#text;
    const from = afterSpace(text, before);
    if (to - from <= memberBytesMax) return shortValue(text, from, to) ?? JSON.parse(text.toString("utf8", from, to));
    const first = text[from];
    if (first === curlyOpen) return {};
    if (first === squareOpen) return texts ? [] : [null];
    return first === quote ? "" : undefined;
  }

  // --- while it is walked

  /** A key stands at `text[from, to)`, and its value begins at `value` or behind white space there. */
  begin(from: number, to: number, value: number): void {
    const name = this.#names.find(this.#text, from, to);
    this.#current = name === undefined ? undefined : this.#slotOf(name, value);
  }

  #slotOf(name: Name, value: number): Slot {
    let slot = this.#slots[name.index];
    if (slot === undefined) {
      slot = { name, from: value, to: value, texts: true, entered: false, inner: undefined };
      this.#slots[name.index] = slot;
    } else {
      this.twice ??= name.name;
      slot.from = value;
      slot.texts = true;
      slot.entered = false;
    }
    return slot;
  }

  /** The value is an object: gives its members, where only some of them are wanted. */
  enter(): Members | undefined {
    const slot = this.#current;
    if (slot?.name.inner === undefined) return undefined;
    // Made once, however often the name stands there.
    slot.inner ??= new Members(this.#text, slot.name.inner, this);
    slot.inner.#forget();
    slot.entered = true;
    return slot.inner;
  }

  #forget(): void {
    for (let i = 0; i < this.#slots.length; i++) this.#slots[i] = undefined;
  }

  /** The value is a list, and has an item that is no string. */
  item(): void {
    if (this.#current !== undefined) this.#current.texts = false;
  }

  /** The value ends before `to`. */
  end(to: number): void {
    if (this.#current === undefined) return;
    this.#current.to = to;
    this.#current = undefined;
  }
}

/** What most members are, sooner than by `JSON.parse`: a short text of plain ASCII, or a few digits. */
function shortValue(text: Buffer, from: number, to: number): string | number | undefined {
  if (to - from > shortBytesMax) return undefined;
  if (text[from] === quote) {
    for (let at = from + 1; at < to - 1; at++) if ((text[at] ?? 0) >= 0x80 || text[at] === backslash) return undefined;
    return text.toString("latin1", from + 1, to - 1);
  }
  let value = 0;
  for (let at = from; at < to; at++) {
    const byte = text[at] ?? 0;
    if (!isDigit(byte)) return undefined;
    value = value * 10 + byte - 0x30;
  }
  return Number.isSafeInteger(value) ? value : undefined;
}

const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const squareOpen = 0x5b;
const backslash = 0x5c;
const letterU = 0x75;
const curlyOpen = 0x7b;
/** `]` and `}` stand two behind `[` and `{`. */
const closing = 2;

/** What opened each depth that is open but the innermost. Shared by walks that need no more: one is over before another begins. */
const usualOpened = new Uint8Array(64);

/** The same with room for twice as many. */
function moreRoom(opened: Uint8Array): Uint8Array {
  const larger = new Uint8Array(2 * opened.length);
  larger.set(opened);
  return larger;
}

/**
 * Walks a text and gives the members that are wanted of it, or says why it can't. It is written for speed: of the densest JSON, 8 MiB
 * take some 50 ms of one core.
 * @param depthMax How deep objects and lists may nest.
 */
export function readMembers(text: Buffer, names: Names, depthMax = 2 ** 30 - 1): Members | Unread {
  const top = new Members(text, names);
  /** The innermost object of which members are wanted, and its depth. */
  let wanted: Members | undefined;
  let wantedDepth = 0;
  let depth = 0;
  let opened: Uint8Array = usualOpened;
  /** What opened the innermost that is open. */
  let open = 0;
  let at = afterSpace(text, 0);
  if (text[at] !== curlyOpen) return malformed;
  for (;;) {
    // A value begins here, or white space before it.
    let byte = text[at] ?? 0;
    if (byte <= space) {
      at = afterSpace(text, at);
      byte = text[at] ?? 0;
    }
    if (depth === wantedDepth + 1 && byte !== quote) wanted?.item();
    if (byte === quote) at = stringEnd(text, at + 1);
    else if (isDigit(byte)) at = numberEnd(text, at);
    else if (byte === curlyOpen || byte === squareOpen) {
      if (depth === depthMax) return tooDeep;
      if (depth === opened.length) opened = moreRoom(opened);
      if (depth === wantedDepth && byte === curlyOpen) {
        const inner = wanted === undefined ? top : wanted.enter();
        if (inner !== undefined) {
          wanted = inner;
          wantedDepth++;
        }
      }
      opened[depth++] = open;
      open = byte;
      byte = text[++at] ?? 0;
      if (byte <= space) {
        at = afterSpace(text, at);
        byte = text[at] ?? 0;
      }
      if (byte !== open + closing) {
        if (open === curlyOpen) at = afterKey(text, at, depth === wantedDepth ? wanted : undefined);
        if (at < 0) return malformed;
        continue;
      }
    } else at = otherEnd(text, at, byte);
    if (at < 0) return malformed;
    // A value has ended, or what just opened is about to close.
    for (;;) {
      if (depth === wantedDepth) wanted?.end(at);
      byte = text[at] ?? 0;
      if (byte <= space) {
        at = afterSpace(text, at);
        byte = text[at] ?? 0;
      }
      if (byte === comma) {
        at = open === curlyOpen ? afterKey(text, at + 1, depth === wantedDepth ? wanted : undefined) : at + 1;
        if (at < 0) return malformed;
        break;
      }
      if (byte !== open + closing) return malformed;
      if (depth === wantedDepth) {
        wanted = wanted?.outer;
        wantedDepth--;
      }
      at++;
      open = opened[--depth] ?? 0;
      if (depth === 0) return afterSpace(text, at) === text.length ? top : malformed;
    }
  }
}

/** Steps over a key and its colon, to the value or the white space before it; -1 when there is none. */
function afterKey(text: Buffer, start: number, wanted: Members | undefined): number {
  const from = (text[start] ?? 0) <= space ? afterSpace(text, start) : start;
  if (text[from] !== quote) return -1;
  const end = stringEnd(text, from + 1);
  if (end < 0) return -1;
  const colonAt = (text[end] ?? 0) <= space ? afterSpace(text, end) : end;
  if (text[colonAt] !== colon) return -1;
  wanted?.begin(from + 1, end - 1, colonAt + 1);
  return colonAt + 1;
}

function afterSpace(text: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = text[at];
    if (byte !== space && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at++;
  }
}

/** Behind the closing quote of a string whose text begins here; -1 when it has none, or holds what a string can't. */
function stringEnd(text: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = text[at++] ?? 0;
    if (byte === quote) return at;
    if (byte < space) return -1;
    if (byte === backslash) {
      const escaped = text[at++];
      if (escaped === letterU) {
        for (const end = at + 4; at < end; at++) if (!(hexDigit(text[at] ?? 0) >= 0)) return -1;
      } else if (!isEscape(escaped)) {
        return -1;
      }
    }
  }
}

/** One of `"\/bfnrt`. */
function isEscape(byte: number | undefined): boolean {
  switch (byte) {
    case 0x22:
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true;
    default:
      return false;
  }
}

/** NaN for what is no hex digit. */
function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

const words = [Buffer.from("true"), Buffer.from("false"), Buffer.from("null")];

/** Behind a negative number or a word that begins here; -1 when there is neither. */
function otherEnd(text: Buffer, at: number, first: number): number {
  if (first === 0x2d) return numberEnd(text, at + 1);
  for (const word of words) if (word[0] === first) return isAt(word, text, at) ? at + word.length : -1;
  return -1;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function numberEnd(text: Buffer, from: number): number {
  let at = from;
  let byte = text[at] ?? 0;
  if (!isDigit(byte)) return -1;
  // A zero stands alone.
  if (byte === 0x30) byte = text[++at] ?? 0;
  else while (isDigit(byte)) byte = text[++at] ?? 0;
  if (byte === 0x2e) {
    byte = text[++at] ?? 0;
    if (!isDigit(byte)) return -1;
    while (isDigit(byte)) byte = text[++at] ?? 0;
  }
  if (byte === 0x65 || byte === 0x45) {
    byte = text[++at] ?? 0;
    if (byte === 0x2b || byte === 0x2d) byte = text[++at] ?? 0;
    if (!isDigit(byte)) return -1;
    while (isDigit(byte)) byte = text[++at] ?? 0;
  }
  return at;
}

function isAt(bytes: Buffer, text: Buffer, from: number): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== text[from + i]) return false;
  return true;
}
