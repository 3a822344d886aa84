import { RemoteService } from "../../client/remote-service.ts";
import { settle } from "../../client/settle.ts";
import { settlingRules } from "../../contract/settling.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { verdictIn } from "../../settle/proof.ts";
import { failedAnswer, type Transport } from "../../settle/transport.ts";
import { failed, untested } from "../report/judgement.ts";
import { refused } from "./answers.ts";
import type { Asker, TerminalAnswer } from "./asker.ts";
import { CheckEnd } from "./asker.ts";

/**
 * An operation is carried to its end by the client's own driver, with the asker as its transport, and a check judges what was
 * answered meanwhile. When it has ended is decided in `settle` alone.
 */

export interface FollowedToEnd {
  /** As people call it: `sale`. */
  readonly what: string;
  readonly key: string;
  readonly start: TerminalAnswer;
  /** What was answered to the questions about it. */
  readonly polls: readonly TerminalAnswer[];
  /** The answer to what was asked right after the start. */
  readonly meanwhile: TerminalAnswer | undefined;
  /** The answer with the end; undefined if none came while it was followed. */
  readonly end: TerminalAnswer | undefined;
  /** It is proven that the start was refused. */
  readonly isRefused: boolean;
}

/** @throws CheckEnd for one that hasn't ended, or was refused. */
export function ended(asker: Asker, { what, key, start, polls, end, isRefused }: FollowedToEnd): TerminalAnswer {
  if (end !== undefined) return end;
  const { absentCodes } = asker.contract.finals;
  const isAbsent = polls.length > 0 && polls.every(({ code }) => absentCodes.includes(Number(code)));
  if (start.status === "success" && isAbsent)
    throw new CheckEnd(failed(`It took the ${what}, and answers about it that there is none`));
  if (isRefused) throw new CheckEnd(refused(asker, `the ${what}`, start));
  const why = `The ${what} of key ${key} had not ended after ${polls.length} questions: look at the terminal`;
  throw new CheckEnd(untested(why));
}

/** Whether an answer names an end, if only its status fitted. */
export function namesEnd({ contract }: Asker, { json }: TerminalAnswer): boolean {
  // Where an end stands in an answer, and in which words, is the same for all operations of a contract.
  const [rules] = settlingRules[contract.service];
  return rules !== undefined && [true, false].some((success) => verdictIn({ contract, rules }, json, success) !== undefined);
}

/** What is followed: what people call it, the name behind its key, its route and its body. */
export interface Operation {
  readonly what: string;
  readonly name: string;
  readonly route: string;
  readonly body: JsonObject;
}

/**
 * Starts an operation, and asks about it until its end is proven.
 * @param ask Asks something once its start was answered.
 * @throws CheckEnd if something wasn't answered.
 */
export async function follow(asker: Asker, operation: Operation, ask?: () => Promise<TerminalAnswer>): Promise<FollowedToEnd> {
  await asker.mustBeThere();
  const { contract, pace, merchantId } = asker;
  const { what, name, route, body } = operation;
  const question = contract.routes.find(({ path }) => path === route)?.polling?.route;
  const starts: TerminalAnswer[] = [];
  const polls: TerminalAnswer[] = [];
  const failures: unknown[] = [];
  let meanwhile: TerminalAnswer | undefined;
  const stop = new AbortController();
  const transport: Transport = {
    send: async ({ route: path, body: sent }) => {
      // A document that lacks its print alone has ended.
      if (path !== route && path !== question) return failedAnswer("unknown", "no copy is printed");
      try {
        // The asker signs by itself.
        const data = contract.envelope === "form" ? new URLSearchParams(sent).get("data") : null;
        const answer = await asker.ask(path, data === null ? sent : Buffer.from(data, "base64").toString());
        if (path === route) {
          starts.push(answer);
          if (starts.length === 1) meanwhile = await ask?.();
        } else if (starts.length > 0) {
          polls.push(answer);
          // An end that the driver doesn't believe, since its status denies it or it names another key, is the check's to judge.
          if (namesEnd(asker, answer)) stop.abort();
        }
        return { ...failedAnswer("unknown", ""), outcome: "answered", text: answer.payload.toString("utf8") };
      } catch (error) {
        failures.push(error);
        stop.abort();
        return failedAnswer("unknown", "it wasn't answered");
      }
    },
    close: async () => {},
  };
  // How long an answer may take, the asker knows.
  const service = new RemoteService({ contract, transport, merchantId, timeoutMs: Number.POSITIVE_INFINITY });
  const options = { windowMs: pace.followMs, intervalMs: pace.pollMs, signal: stop.signal };
  const { result, message } = await settle(service, route, body, options);
  if (failures.length > 0) throw failures[0];
  const [start] = starts;
  if (start === undefined) throw new CheckEnd(untested(`The ${what} was not sent: ${message}`));
  // The contract may have it sent again: then the last answer to it is what ended or refused it.
  const answered = starts.at(-1) ?? start;
  const last = polls.at(-1) ?? answered;
  const isProven = result !== "unknown";
  const hasEnd = (last !== answered && namesEnd(asker, last)) || (isProven && answered.status === "success");
  return {
    what,
    key: asker.key(name),
    start,
    polls,
    meanwhile,
    end: hasEnd ? last : undefined,
    isRefused: isProven && !hasEnd,
  };
}
