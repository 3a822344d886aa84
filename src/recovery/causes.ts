import type { ServiceName } from "../core/call.ts";
import { quoted } from "../core/shell-text.ts";
import type { Cause } from "../device/open-errors.ts";
import type { Framing } from "../wire/decoded.ts";

/**
 * The likeliest causes of a service that does not answer, or not as its contract says, in words, and what to do: the one place for these
 * words, so that log, status, answer 503 and `posline doctor` say the same of the same trouble. Where they know of different steps to find
 * out more, they name those.
 */

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

/** Not one byte comes back. @param steps What to do once the terminal is on and the cable is right. */
export function silent(steps: readonly string[]): Cause {
  const first = [
    "switch the terminal on and wait for its idle screen",
    "check the cable, and try the other kind (straight or null modem)",
  ];
  return cause("the terminal does not answer, and not one byte comes back", numbered([...first, ...steps]));
}

const numbered = (steps: readonly string[]) => steps.map((step, index) => `${index + 1}. ${step}`).join("; ");

/** What stands for an answer that is neither an error nor of the shape that the contract gives it. */
export const otherThanContract = "something that its contract doesn't have";

/** What stands for an error. @param code Its own, where it has one. */
export const refusalWords = (code: number | undefined) => (code === undefined ? "an error" : `code ${code}`);

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
  const cure =
    "check the plug and the cable (RX and TX are joined), and that a terminal is at the other end, and no computer's console";
  return cause("what was sent comes back: no terminal answers", cure);
}

/** Answers come, by the other reading of CRC16. */
export function otherCrc16(line: string, reading: "arc" | "umts"): Cause {
  const cure = `set "crc16": "${reading}" for line ${line} in the configuration, then sudo systemctl reload posline`;
  return cause(`the terminal uses the CRC-16/${reading.toUpperCase()} checksum`, cure);
}

/** Answers come whose checksum is wrong by any reading, or pieces of them. */
export function damages(): Cause {
  const cure = "try another cable and adapter, away from mains wires; compare parity and dataBits with the terminal's";
  return cause("answers come damaged, or with a wrong checksum: bytes are lost or changed on the way", cure);
}

/** Bytes come, and they are not frames. @param steps How to find out more. */
export function garbles(steps: readonly string[]): Cause {
  return cause("bytes come that are not an answer: wrong speed, or another device?", steps.join("; "));
}

/** What comes was sent at another speed. @param cure How to find it. */
export function otherSpeed(baudRate: number, cure: string): Cause {
  return cause(`bytes come that were sent at another speed than ${baudRate} baud`, cure);
}

/** A modem's language comes. */
export function commandsModem(): Cause {
  const cure = "sudo systemctl disable --now ModemManager, on each computer of this line";
  return cause("AT commands come: ModemManager, here or at the other end, takes the line for a modem", cure);
}

/** Text comes. @param tap The command that shows it. */
export function speaksText(tap: string): Cause {
  const cure = `1. ${tap} shows what it sends; 2. choose the till (ECR) protocol for this port in the terminal's menu`;
  return cause("text comes that is not an answer: a scanner, scale or modem, or a terminal set to another protocol", cure);
}

/** Only zeros come. */
export function holdsDown(): Cause {
  const cure = "1. switch the terminal on; 2. check the cable: its RX wire may be grounded";
  return cause("only zeros come: the line is held down (a break)", cure);
}

/** Whole answers come, to nothing that is asked now. */
export function late(): Cause {
  return cause("answers come too late", "look at the terminal's screen: it may be busy or starting");
}
