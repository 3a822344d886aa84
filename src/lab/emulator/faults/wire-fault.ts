type PlainKind =
  | "no-answer"
  /** The answer comes when the next request has come, right before that one's. */
  | "after-next"
  | "corrupt"
  | "truncated"
  | "wrong-length"
  | "noise"
  /** Harmless: the CRC of the answer holds the bytes 02 and 03 as far as it can (fiscal frames write 03 as 20). */
  | "reserved-crc";

type TimedKind =
  /** The answer comes so much later than it would have. */
  | "late"
  /** With pauses so long between them. */
  | "pieces"
  /** With a pause so long between. */
  | "twice"
  /** The line is lost for so long in place of the answer. */
  | "unplug";

/** A fault of an answer on its way, after the request was carried out. Named as in flags, in the control API and in the table of amounts. */
export type WireFault =
  | { [Kind in PlainKind]: { readonly kind: Kind } }[PlainKind]
  | { [Kind in TimedKind]: { readonly kind: Kind; readonly ms: number } }[TimedKind];

export type WireFaultKind = WireFault["kind"];

/** The milliseconds that a kind may be given, both bounds included, and its default. */
interface MsRange {
  readonly min: number;
  readonly max: number;
  readonly usual: number;
}

/** As long as the longest time-out that a till or a bridge may have: ten minutes. */
const longestMs = 600_000;

/** Each kind with its milliseconds; undefined if it has none. */
const msRanges: Readonly<Record<PlainKind, undefined> & Record<TimedKind, MsRange>> = {
  "no-answer": undefined,
  late: { min: 1, max: longestMs, usual: 5_000 },
  "after-next": undefined,
  corrupt: undefined,
  truncated: undefined,
  "wrong-length": undefined,
  // Longer than anything of a frame may take (contracts, Limits: header 3 s, payload 5 s).
  pieces: { min: 1, max: 6_000, usual: 300 },
  noise: undefined,
  twice: { min: 0, max: longestMs, usual: 0 },
  unplug: { min: 1, max: longestMs, usual: 2_000 },
  "reserved-crc": undefined,
};

// The keys of `msRanges` are the kinds.
export const wireFaultKinds = Object.keys(msRanges) as readonly WireFaultKind[];

/**
 * Reads a fault as flags and the control API write it: a kind, and milliseconds for those that have some, as in `late:5000`.
 * @throws RangeError saying what is wrong and what is allowed.
 */
export function parseWireFault(text: string): WireFault {
  const [name = "", written, ...more] = text.split(":");
  const kind = wireFaultKinds.find((each) => each === name);
  if (kind === undefined) {
    throw new RangeError(
      `Cannot read the fault "${text}": there is no fault of that name: use one of ${wireFaultKinds.join(", ")}`,
    );
  }
  if (!isTimed(kind)) {
    if (written === undefined) return { kind };
    throw new RangeError(`Cannot read the fault "${text}": ${kind} has no time: leave out the colon`);
  }
  const range = msRanges[kind];
  const ms = written === undefined ? range.usual : Number(written);
  if (more.length > 0 || !/^\d+$/.test(written ?? "0") || ms < range.min || ms > range.max) {
    const allowed = `${kind} alone (${range.usual} ms), or ${kind}:<ms> with a whole number from ${range.min} to ${range.max}`;
    throw new RangeError(`Cannot read the fault "${text}": its time is not valid: use ${allowed}`);
  }
  return { kind, ms };
}

const isTimed = (kind: WireFaultKind): kind is TimedKind => msRanges[kind] !== undefined;

/**
 * Reads a fault with the share of the answers that it is injected into, as in `corrupt=0.05` or `late:5000=0.1`.
 * @throws RangeError saying what is wrong and what is allowed.
 */
export function parseFaultChance(text: string): { readonly fault: WireFault; readonly share: number } {
  const equals = text.lastIndexOf("=");
  if (equals === -1) throw new RangeError(`Cannot read the chance "${text}": it has no share: write it as ${text}=0.05`);
  const share = text.slice(equals + 1);
  if (!/^(0|1|[01]?\.\d+)$/.test(share) || Number(share) > 1) {
    throw new RangeError(
      `Cannot read the chance "${text}": its share is not valid: use a decimal number from 0 to 1, as in 0.05`,
    );
  }
  return { fault: parseWireFault(text.slice(0, equals)), share: Number(share) };
}
