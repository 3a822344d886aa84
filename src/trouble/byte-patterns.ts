/**
 * The look of bytes that are not an answer. Each fault of a serial line has a look of its own; an experienced eye sees the same in a hex
 * dump.
 */
export type BytePattern =
  | "echo"
  | "at commands"
  | "login prompt"
  | "web server"
  | "till"
  | "damaged answer"
  | "text"
  | "other baud rate"
  | "break"
  | "unknown";

/** Bytes of a sent frame that must come back to be called an echo: fewer may come by chance. */
const echoBytes = 6;

/**
 * Says what bytes look like.
 * @param sent What was sent before they came.
 */
export function bytePatternOf(bytes: Buffer, sent: readonly Buffer[]): BytePattern {
  const text = bytes.toString("latin1");
  // A console echoes what is typed, so its prompt stands beside an echo.
  if (isConsole(bytes)) return "login prompt";
  if (sent.some((frame) => frame.length >= echoBytes && isEcho(bytes, frame))) return "echo";
  if (isWebServer(bytes)) return "web server";
  if (isRequest(bytes)) return "till";
  if (/(?:^|[\r\n\0])\s*AT(?:[+&%EZHIQDSV^][\w+?=&;,"^]*)?[\r\n]/i.test(text) || /^AT[+&]/.test(text)) return "at commands";
  if (/"status"\s*:/.test(text)) return "damaged answer";
  if (mostlyText(bytes)) return "text";
  if (bytes.every((byte) => byte === 0)) return "break";
  return looksSampled(bytes) ? "other baud rate" : "unknown";
}

/** True if a line of text in the bytes begins as a computer's console does: its system's name, a prompt for a login, or a shell's. */
export function isConsole(bytes: Buffer): boolean {
  const text = bytes.toString("latin1");
  return /(?:^|[\r\n])(?:Debian|Raspbian|Ubuntu|[\w.-]+ login:|Password:|\[?[\w-]+@[\w.-]+[: ].*[#$] $)/.test(text);
}

/** True if the bytes begin as a web server's answer does. */
export function isWebServer(bytes: Buffer): boolean {
  return /^HTTP\/1\.[01] \d{3}/.test(bytes.toString("latin1"));
}

/** True if the bytes are a request as tills send it, in its frame or without: terminals send none. */
export function isRequest(bytes: Buffer): boolean {
  const framed = bytes[0] === 2 ? 1 : bytes[0] === 0 ? 4 : 0;
  const text = bytes.subarray(framed, framed + 64).toString("latin1");
  // A checksum of two bytes may follow.
  return /^(?:command=|:\d{1,5})?\/[a-z_]{3,}(?:[\n&]|.{0,2}$)/s.test(text);
}

/** True if the line gives back what is sent into it: the whole frame, or its beginning if the other end swallows some bytes. */
function isEcho(bytes: Buffer, frame: Buffer): boolean {
  if (bytes.includes(frame)) return true;
  const payload = frame.subarray(frame[0] === 2 ? 1 : 4, -echoBytes);
  return payload.length >= echoBytes && bytes.includes(payload);
}

function mostlyText(bytes: Buffer): boolean {
  let printable = 0;
  for (const byte of bytes) if ((byte >= 0x20 && byte < 0x7f) || byte === 0x0d || byte === 0x0a || byte === 0x09) printable++;
  return bytes.length >= 3 && printable >= 0.9 * bytes.length;
}

/**
 * True if the bytes look sampled at another rate: runs of ones and zeros instead of letters. Slower bits read fast give few changes; faster
 * bits read slowly leave mostly set ones, since the stop bits and the idle line are ones.
 */
function looksSampled(bytes: Buffer): boolean {
  if (bytes.length < 2) return false;
  let few = 0;
  let high = 0;
  for (const byte of bytes) {
    const changes = byte ^ (byte >>> 1);
    let count = 0;
    for (let bit = 0; bit < 7; bit++) count += (changes >>> bit) & 1;
    if (count <= 2) few++;
    if (byte >= 0x80) high++;
  }
  return few >= 0.6 * bytes.length || high >= 0.4 * bytes.length;
}
