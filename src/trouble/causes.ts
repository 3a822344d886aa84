import type { LineConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import type { ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import { quoted } from "../core/shell-text.ts";
import { type Cause, webServer } from "../device/open-errors.ts";
import type { Wait } from "../recovery/recovery.ts";
import { otherReading } from "../wire/crc16.ts";
import type { Framing } from "../wire/decoded.ts";
import type { BytePattern } from "./byte-patterns.ts";

/**
 * The likeliest causes of a service that does not answer, or not as its contract says, and what to do: the one list of these words, so that
 * log, status, answer 503 and `posline doctor` say the same of the same trouble.
 */

/** What comes in place of an answer. The doctor knows bytes by their look; a running line knows frames and what is wrong with them. */
export type Symptom = BytePattern | "other crc16" | "checksum" | "noise" | "babble" | "late";

/** The line in trouble. */
export interface TroubledLine {
  readonly name: string;
  readonly config: Pick<LineConfig, "path" | "baudRate" | "crc16">;
  /** The doctor has tried all usual speeds and both readings of CRC16, so no cure advises to. */
  readonly scanned?: boolean;
}

const cause = (what: string, cure: string): Cause => ({ cause: what, cure });

const numbered = (steps: readonly string[]) => steps.map((step, index) => `${index + 1}. ${step}`).join("; ");

/** The command that finds out more. While posline has the device, the doctor also says how to stop it for a test of the terminal. */
export const doctorFor = (line: string) => `sudo posline doctor --line ${quoted(line)}`;

/** The command that shows the bytes of a line which posline can make nothing of. */
export const rawTap = ({ config }: TroubledLine) => `sudo posline tap --raw --line ${quoted(config.path)}`;

const compareBits = "compare parity, dataBits and stopBits with the terminal's menu";

/** The cause that a symptom stands for. */
export function likelyCause(symptom: Symptom, line: TroubledLine): Cause {
  const { name, config } = line;
  switch (symptom) {
    case "login prompt":
      return cause(
        "a login prompt comes: the other end is a computer's console, not a terminal",
        "plug the cable into the terminal's port for a till (ECR), or switch the console off there",
      );
    case "echo":
      return cause(
        "what was sent comes back: no terminal answers",
        "check the plug and the cable (RX and TX are joined), and that a terminal is at the other end, not a computer's console",
      );
    case "web server":
      return webServer(config.path);
    case "till":
      return cause(
        "requests come: a till is at the other end, not a terminal",
        "connect the terminal here; to answer the till in its place, run posline gateway on this line",
      );
    case "at commands":
      return cause(
        "AT commands come: ModemManager, here or at the other end, takes the line for a modem",
        "sudo systemctl disable --now ModemManager, on each computer of this line",
      );
    case "text":
      return cause(
        "text comes that is not an answer: a scanner, scale or modem, or a terminal set to another protocol",
        numbered([`${rawTap(line)} shows what it sends`, ecrProtocol]),
      );
    case "break":
      return cause(
        "only zeros come: the line is held down (a break)",
        numbered(["switch the terminal on", "check the cable: its RX wire may be grounded"]),
      );
    case "other crc16": {
      const other = otherReading(config.crc16);
      const cure = `set "crc16": "${other}" for line ${name} in the configuration, then sudo systemctl reload posline`;
      return cause(`the terminal uses the CRC-16/${other.toUpperCase()} checksum`, cure);
    }
    case "damaged answer":
    case "checksum":
      return cause(
        "answers come damaged, or with a wrong checksum: bytes are lost or changed on the way",
        "try another cable and adapter, away from mains wires; compare parity and dataBits with the terminal's",
      );
    case "other baud rate":
      return cause(
        `bytes come that were sent at another speed${isTcpPath(config.path) ? "" : ` than ${config.baudRate} baud`}`,
        findSpeed(line),
      );
    case "late":
      return cause("answers come too late", "look at the terminal's screen: it may be busy or starting");
    default:
      return cause(
        "bytes come that are not an answer: wrong speed, or another device?",
        numbered([findSpeed(line), compareBits, `${rawTap(line)} shows what comes`]),
      );
  }
}

const ecrProtocol = "choose the till (ECR) protocol for this port in the terminal's menu";

function findSpeed({ name, config, scanned = false }: TroubledLine): string {
  if (isTcpPath(config.path)) return speedBeyond;
  if (scanned) return "look the speed up in the terminal's menu, and set it as baudRate";
  return `${doctorFor(name)} --scan finds the speed to set as baudRate`;
}

/** A wire beyond the network has a speed of its own. */
const speedBeyond =
  "compare the speed that the far end (ser2net, a terminal server) gives its serial port with the terminal's menu";

/**
 * The cause of a line on which not one byte comes back.
 * @param hasCrc16 True if a silent service has a CRC16, of which there are two readings.
 * @param otherLines Lines whose terminal may be at this cable: a terminal hears nothing in what is meant for another kind.
 */
export function silent(line: TroubledLine, hasCrc16: boolean, otherLines: readonly string[] = []): Cause {
  const { name, config, scanned = false } = line;
  const swap = "follow the cable to its terminal, and swap the cables, or the lines' paths in the configuration";
  const scan = `${doctorFor(name)} --scan tries the usual speeds beside ${config.baudRate} baud${hasCrc16 ? ", and both CRC16" : ""}`;
  const others = `see whether the terminal of line ${otherLines.join(" or ")} is at this cable: ${swap}`;
  const steps = [
    "switch the terminal on and wait for its idle screen",
    ...(isTcpPath(config.path)
      ? [`check that ${config.path} is the terminal's port for a till (ECR), and raw: not telnet, no TLS`, speedBeyond]
      : ["check the cable, and try the other kind (straight or null modem)"]),
    ...(otherLines.length === 0 ? [] : [others]),
    ...(isTcpPath(config.path) ? [] : [scanned ? compareBits : scan]),
    ecrProtocol,
  ];
  return cause("the terminal does not answer, and not one byte comes back", numbered(steps));
}

/** The cause while nothing was asked yet, so that a silence means nothing. */
export function notAsked(service: string): Cause {
  return cause(
    `${service} has not answered since the line opened`,
    `if this lasts, send ${service} any request: a reply proves that the terminal works`,
  );
}

/** Words for an answer that is neither an error nor of the shape that the contract gives it. */
export const otherThanContract = "something that its contract doesn't have";

/** Words for an error. @param code The error's own, if it has one. */
export const refusalWords = (code: number | undefined) => (code === undefined ? "an error" : `code ${code}`);

/** The cause of a wrong answer to posline's own question. An error of fiscal mostly means a wrong sign (fiscal.md, Errors, code 1). */
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

function otherVersion(line: string): string {
  const tap = `posline tap --line ${quoted(line)}`;
  return `ask the terminal's vendor whether its firmware is of the contract's version; ${tap} shows what it answers`;
}

/** The cause if other services of the line answer, and this one does not. */
export function notServed(service: string): Cause {
  return cause(
    `${service} does not answer, though another service on this line does`,
    `switch ${service} on in the terminal, or remove services.${service} from the configuration`,
  );
}

/** The cause if another service answered right before: either this one is off, or the terminal since then. */
export function maybeNotServed(service: string): Cause {
  return cause(
    `${service} does not answer, though another service on this line did right before`,
    `look whether the terminal is on; if it is, switch ${service} on in it, or remove services.${service} from the configuration`,
  );
}

/** What is waited for, in words, and how long yet. */
export function waitWords({ service, kind, leftMs }: Wait): string {
  const left = durationText(1_000 * Math.ceil(Math.max(0, leftMs) / 1_000));
  if (kind === "set aside") return `${service} is set aside in ${left} unless it answers`;
  if (kind === "other answers")
    return `${service} answers otherwise than asked, and if it goes on so, calls wait about ${left} more`;
  const why = kind === "one question" ? `${service} answers posline's second question like the first or not at all, so ` : "";
  return `${why}a late answer of ${service} is waited for ${left} more`;
}

/** The cause if what is sent comes back, and answers come too. */
export function echoes(): Cause {
  const cure =
    "if calls are answered, do nothing: a two-wire adapter (RS-485) hears itself, unless its echo is switched off; " +
    "if no call is answered, check the plug and the cable (RX and TX are joined)";
  return cause("what is sent comes back, and is ignored", cure);
}
