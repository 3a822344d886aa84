import type { ServiceName } from "../core/call.ts";
import { Fault, type FaultOutcome, type FaultReason } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { wordsOf } from "../device/open-errors.ts";
import type { LineEffect, LineReported } from "../line/events.ts";
import type { Ending } from "../line/exchange.ts";
import type { LineState } from "../line/states.ts";
import type { DiscardReason, Framing } from "../wire/decoded.ts";

/**
 * What a line's engine decided, in short form: what a recording keeps of its effects, and what a replay compares. It has no bytes
 * of a terminal's in it, and no word of theirs.
 */

/** What a reply says of itself, as far as it decides anything. */
export type StatusClass = "success" | "error" | "other";

/** A whole number of up to four digits as it came; a longer one might be anything. */
export type CodeClass = number | "none" | "other";

/** `call` is the number of a call in its recording; 0 is the line's own probe. */
export type Decision =
  | { readonly do: "write"; readonly service: ServiceName; readonly call: number; readonly bytes: number }
  | { readonly do: "record"; readonly call: number }
  | CallEnd
  | { readonly do: "state"; readonly state: LineState; readonly reason: string }
  | { readonly do: "discard"; readonly reason: DiscardReason; readonly bytes: number }
  | { readonly do: "late"; readonly framing: Framing; readonly bytes: number }
  | { readonly do: "probe answered"; readonly service: ServiceName }
  | { readonly do: "unheard"; readonly service: ServiceName; readonly reason: string }
  | { readonly do: "heard again"; readonly service: ServiceName }
  | { readonly do: "echo"; readonly bytes: number }
  | { readonly do: "echoes" }
  | { readonly do: "close" };

/** How a call ended. */
export type CallEnd =
  | { readonly do: "answer"; readonly call: number; readonly status: StatusClass; readonly code: CodeClass }
  | {
      readonly do: "fail";
      readonly call: number;
      readonly outcome: FaultOutcome;
      readonly reason: FaultReason;
      readonly message: string;
    };

export function statusClass(status: string | undefined): StatusClass {
  return status === "success" || status === "error" ? status : "other";
}

export function codeClass(code: number | undefined): CodeClass {
  if (code === undefined) return "none";
  return Number.isInteger(code) && Math.abs(code) <= codeMax ? code : "other";
}

const codeMax = 9_999;

export function decisionOf(effect: LineEffect): Decision {
  switch (effect.do) {
    case "write":
      return {
        do: "write",
        service: effect.service,
        call: effect.exchange?.recordedAs ?? 0,
        bytes: bytesOf(effect.frame),
      };
    case "record":
      return { do: "record", call: effect.exchange.recordedAs };
    case "end":
      return ended(effect.exchange.recordedAs, effect.ending);
    case "report":
      return reported(effect.what);
    case "close":
      return { do: "close" };
  }
}

function ended(call: number, ending: Ending): CallEnd {
  if (!(ending instanceof Fault)) {
    return { do: "answer", call, status: statusClass(ending.status), code: codeClass(ending.code) };
  }
  const { outcome, reason, message } = ending;
  return { do: "fail", call, outcome, reason, message };
}

function reported(what: LineReported): Decision {
  switch (what.is) {
    case "state":
      return { do: "state", state: what.state, reason: what.reason };
    case "discard":
      return { do: "discard", reason: what.discard.reason, bytes: what.discard.wireBytes };
    case "late":
      return { do: "late", framing: what.frame.framing, bytes: what.frame.payloadBytes };
    case "probe answered":
      return { do: "probe answered", service: what.service };
    case "unheard":
      return { do: "unheard", service: what.service, reason: wordsOf(what.cause) };
    case "heard again":
      return { do: "heard again", service: what.service };
    case "echo":
      return { do: "echo", bytes: what.frame.payloadBytes };
    case "echoes":
      return { do: "echoes" };
  }
}

/** A decision as a technician reads it. */
export function decisionText(decision: Decision): string {
  switch (decision.do) {
    case "write":
      return `send ${decision.call === 0 ? "a probe" : `call ${decision.call}`} to ${decision.service}, ${decision.bytes} bytes`;
    case "record":
      return `have call ${decision.call} recorded in the journal`;
    case "answer":
      return `answer call ${decision.call}: ${decision.status}${decision.code === "none" ? "" : `, code ${decision.code}`}`;
    case "fail":
      return `end call ${decision.call}: ${decision.outcome}, ${decision.reason}: ${decision.message}`;
    case "state":
      return `line is ${decision.state}: ${decision.reason}`;
    case "discard":
      return `discard ${decision.bytes} bytes: ${decision.reason}`;
    case "late":
      return `discard a frame that nobody waits for, ${decision.bytes} bytes`;
    case "probe answered":
      return `${decision.service} has answered the probe`;
    case "unheard":
      return `report ${decision.service} as silent: ${decision.reason}`;
    case "heard again":
      return `${decision.service} answers again`;
    case "echo":
      return `ignore what was sent, ${decision.bytes} bytes`;
    case "echoes":
      return "report that the line gives back what is sent";
    case "close":
      return "close the line";
  }
}
