import type { ServiceName } from "../core/call.ts";
import { quoted } from "../core/shell-text.ts";
import type { Cause } from "../device/open-errors.ts";
import type { Framing } from "../wire/decoded.ts";

/** The likeliest causes of a service that does not answer, or not as its contract says, in words, and what to do. */

const cause = (what: string, cure: string): Cause => ({ cause: what, cure });

/** It had nothing to answer yet. */
export function notAsked(service: string): Cause {
  return cause(
    `${service} has not answered since the line opened`,
    `if this lasts, send ${service} any request: a reply proves that the terminal works`,
  );
}

/** What finds out more. It says too how to stop the posline that has the device, which has to let go of it for a test of the terminal. */
export const doctorFor = (line: string) => `posline doctor --line ${quoted(line)}`;

/**
 * Not one byte comes back.
 * @param crc16 The line's reading of CRC16, where its frames have one: a terminal drops frames whose checksum it reads as wrong.
 */
export function silent(line: string, baudRate: number, crc16: string | undefined): Cause {
  const settings = crc16 === undefined ? `baudRate ${baudRate}` : `baudRate ${baudRate} and crc16 "${crc16}"`;
  const cure =
    "1. switch the terminal on and wait for its idle screen; 2. check the cable, and try the other kind (straight or null modem); " +
    `3. compare ${settings} with the terminal's settings; 4. ${doctorFor(line)} says how to test the terminal itself`;
  return cause("the terminal does not answer, and not one byte comes back", cure);
}

/** What stands for an answer that is neither an error nor of the shape that the contract gives it. */
export const otherThanContract = "something that its contract doesn't have";

/** It answers, wrongly. Of an error to what fiscal is asked the sign is the reason as a rule (fiscal.md, Errors, code 1). */
export function refused(
  { name, framing }: { readonly name: ServiceName; readonly framing: Framing },
  withWhat: string,
  line: string,
): Cause {
  const what = `${name} answers posline's own question with ${withWhat}`;
  if (withWhat === otherThanContract) return cause(what, otherVersion(line));
  const cure =
    framing === "stx"
      ? `compare services.${name}.merchantId with the terminal's: with another one each request is refused`
      : `send ${name} any request: if it is answered, this does no harm`;
  return cause(what, cure);
}

/** It speaks, and not as the contract says. */
function otherVersion(line: string): string {
  const tap = `posline tap --line ${quoted(line)}`;
  return `ask the terminal's vendor whether its firmware is of the contract's version; ${tap} shows what it answers`;
}

/** Other services of the line answer, and this one does not. */
export function notServed(service: string): Cause {
  return cause(
    `${service} does not answer, though another service on this line does`,
    `switch ${service} on in the terminal, or remove services.${service} from the configuration`,
  );
}

/** Another service answered right before: either this one is off, or the terminal since then. */
export function maybeNotServed(service: string): Cause {
  return cause(
    `${service} does not answer, though another service on this line did right before`,
    `look whether the terminal is on; if it is, switch ${service} on in it, or remove services.${service} from the configuration`,
  );
}

/** A computer asks for a name. */
export function asksToLogIn(): Cause {
  const cure = "plug the cable into the terminal's port for a till (ECR), or switch the console off there";
  return cause("a login prompt comes: the other end is a computer's console, not a terminal", cure);
}

/** What is sent comes back, whatever else does. */
export function echoes(): Cause {
  const cure =
    "nothing is to be done while calls are answered: a two-wire adapter (RS-485) hears itself, unless its echo is switched off; " +
    "if none is, check the plug and the cable (RX and TX are joined)";
  return cause("what is sent comes back, and is ignored", cure);
}

/** What is sent comes back, and no answer. */
export function onlyEchoes(): Cause {
  const cure = "check the plug and the cable (RX and TX are joined), and that a terminal is at the other end";
  return cause("what was sent comes back: no terminal answers", cure);
}

/** Answers come, by the other reading of CRC16. */
export function otherCrc16(line: string, reading: "arc" | "umts"): Cause {
  const cure = `set "crc16": "${reading}" for line ${line} in the configuration, then sudo systemctl reload posline`;
  return cause(`the terminal uses the CRC-16/${reading.toUpperCase()} checksum`, cure);
}

/** Frames come whose checksum is wrong by any reading. */
export function wrongChecksum(): Cause {
  const cure = "try another cable and adapter, away from mains wires; compare parity and dataBits with the terminal's";
  return cause("answers come with a wrong checksum: bytes are lost or changed on the way", cure);
}

/** Bytes come, and they are not frames. */
export function garbles(line: string, baudRate: number): Cause {
  const cure = `compare baudRate ${baudRate}, parity and dataBits with the terminal's; ${doctorFor(line)} says how to see what comes`;
  return cause("bytes come that are not an answer: wrong speed, or another device?", cure);
}

/** Whole answers come, to nothing that is asked now. */
export function late(): Cause {
  return cause("answers come too late", "look at the terminal's screen: it may be busy or starting");
}
