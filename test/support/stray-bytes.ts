/** Bytes that a line brings beside its terminal's answers: turnarounds of RS-485, breaks, power-ups, and devices that say more than asked. */
export interface Stray {
  readonly name: string;
  readonly before: Buffer;
  readonly behind: Buffer;
  /** Milliseconds between those and the answer; 0: all of it in one write. */
  readonly apartMs: number;
}

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const none = Buffer.alloc(0);

const before = (name: string, bytes: Buffer, apartMs = 0): Stray => ({ name, before: bytes, behind: none, apartMs });

/** None of them looks like the beginning of an answer: with half of one beside it, which answer is whose isn't known. */
export const strays: readonly Stray[] = [
  before("a zero", hex("00")),
  before("two zeros", hex("0000")),
  before("three zeros, which with the header's are an empty frame", hex("000000")),
  before("four zeros", hex("00000000")),
  before("five zeros", hex("0000000000")),
  before("seven zeros", hex("00000000000000")),
  before("FF of a turnaround", hex("ff")),
  before("a break", hex("00ff")),
  before("FF and a zero", hex("ff00")),
  before("bytes of a wrong speed", hex("fe 80 00 ff c0 00 f8")),
  before("a modem's command", Buffer.from("AT\r\r")),
  before("a line end", Buffer.from("\r\n")),
  before("STX", hex("02")),
  before("STX and ETX", hex("02 41 42 43 44 45 03")),
  before("a brace", Buffer.from("{")),
  before("a header that announces 300 kB", hex("00 05")),
  before("a header that announces 8 MB", hex("00 7f")),
  before("a whole frame with a wrong checksum", hex("00000001 41 1234")),
  before("the end of an echo", Buffer.from('":"A-1"}\x7a\x12', "latin1")),
  before("200 bytes", Buffer.from("U\xfe".repeat(100), "latin1")),
  before("a zero, 20 ms before", hex("00"), 20),
  before("FF, 99 ms before", hex("ff"), 99),
  before("a header that announces 300 kB, 20 ms before", hex("00 05"), 20),
  { name: "an ACK before and behind", before: hex("06"), behind: hex("06"), apartMs: 0 },
  { name: "a zero before, a line end behind", before: hex("00"), behind: Buffer.from("\r\n"), apartMs: 0 },
  { name: "a break before, FF behind, 5 ms apart", before: hex("00ff"), behind: hex("ff"), apartMs: 5 },
  { name: "a line end behind", before: none, behind: Buffer.from("\r\n"), apartMs: 0 },
  { name: "FF behind, 20 ms later", before: none, behind: hex("ff"), apartMs: 20 },
  { name: "four zeros behind", before: none, behind: hex("00000000"), apartMs: 0 },
  { name: "a zero behind", before: none, behind: hex("00"), apartMs: 0 },
];

/** Numbers from 0 to 1, the same ones each time. */
export function drawnFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Up to 12 bytes before and 4 behind, mostly such as mean something to a framer. */
export function randomStray(draw: () => number): Stray {
  const byte = () => (draw() < 0.5 ? ([0, 0, 0xff, 2, 3, 0x7b][Math.floor(draw() * 6)] ?? 0) : Math.floor(draw() * 256));
  const bytes = (most: number) => Buffer.from(Array.from({ length: Math.floor(draw() * (most + 1)) }, byte));
  return { name: "random", before: bytes(12), behind: draw() < 0.3 ? bytes(4) : none, apartMs: draw() < 0.2 ? 10 : 0 };
}

/** One of the kinds or a random one, by a number. */
export function strayOf(number: number): Stray {
  const at = Math.floor(number) % (2 * strays.length);
  return strays[at] ?? randomStray(drawnFrom(number));
}

/** What is to be sent of an answer, and how many milliseconds pass behind each piece. */
export function strayed(answer: Buffer, { before, behind, apartMs }: Stray): readonly (readonly [Buffer, number])[] {
  if (apartMs === 0) return [[Buffer.concat([before, answer, behind]), 0]];
  const pieces: readonly (readonly [Buffer, number])[] = [
    [before, apartMs],
    [answer, apartMs],
    [behind, 0],
  ];
  return pieces.filter(([bytes]) => bytes.length > 0);
}
