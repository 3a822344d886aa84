import { serviceDefaults } from "../config/limits.ts";
import type { Contract, Route } from "../contract/contract.ts";
import { adviceWhenUnknown, noSuchRoute, routeOf } from "../contract/contracts.ts";
import type { OperationLog, OperationLogEntry } from "../contract/operation-log.ts";
import type { Call, ContractName, Handler, Reply, ServiceName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { questionToLine, toLine } from "../envelope/request.ts";
import type { LineService, Question } from "../recovery/standing.ts";
import type { Crc16 } from "../wire/crc16.ts";
import { frameOf } from "../wire/framing.ts";
import type { LineRequest } from "./exchange.ts";
import type { Line } from "./line.ts";

/** Writes a call as a request and gives it to its line: here calls leave for a terminal. */

export interface LineCallerOptions {
  readonly contract: Contract;
  /** The service's name, if it isn't its contract's. */
  readonly service?: ServiceName | undefined;
  readonly line: Line;
  /** Milliseconds that a reply may take to begin, by route. */
  readonly replyTimeoutMs: Readonly<Record<string, number>>;
  readonly merchantId: string | undefined;
  /** Records requests that move money, print or change state; absent if no record is kept. */
  readonly ledger?: OperationLog | undefined;
  /** The mark of the line's device, for the record. */
  readonly device?: string | undefined;
}

/** A handler that asks one service over its line. */
export function lineCaller(options: LineCallerOptions): Handler {
  const { contract, service = contract.service, line, replyTimeoutMs, merchantId, ledger, device } = options;
  const requestOf = (call: Call, route: Route): LineRequest => ({
    service,
    route: route.path,
    requestId: call.requestId,
    callId: call.callId,
    key: call.key,
    amount: call.amount,
    about: call.about,
    framing: contract.framing,
    payload: toLine(contract, route.path, call.body, merchantId),
    replyTimeoutMs: replyTimeoutMs[route.path] ?? route.replyTimeoutMs,
    urgent: route.urgent,
    background: call.background === true,
    repeatable: route.effect === "none",
    shapedAs: questionAt(contract, route.path),
    adviceWhenUnknown: adviceWhenUnknown(contract, route, call.key),
    caller: call.caller,
  });
  // A plain function, since an async one would put a promise of its own around the line's for each call.
  return (call) => {
    try {
      const route = routeOf(contract, call.route);
      if (route === undefined) throw new Fault("route", `Cannot send the request: ${noSuchRoute(contract, call.route)}`);
      const request = requestOf(call, route);
      if (ledger === undefined || route.effect === "none") return line.run(request);
      ledger.refuseCopy(call, route);
      return runRecorded(line, request, () => ledger.begin(call, route, device));
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

/** The question of posline's own whose answer the reply of this route may look like; undefined if none. */
function questionAt({ probe, secondProbe }: Contract, route: string): Question | undefined {
  if (route === probe.route) return "probe";
  return route === secondProbe.route || secondProbe.alikeRoutes.includes(route) ? "second" : undefined;
}

/** Runs a request that is recorded: its sending before its first byte, and its ending before the caller learns it. */
async function runRecorded(line: Line, request: LineRequest, begin: () => OperationLogEntry): Promise<Reply> {
  let entry: OperationLogEntry | undefined;
  const beforeSend = () => {
    entry = begin();
    return entry.sent();
  };
  let reply: Reply;
  try {
    reply = await line.run({ ...request, beforeSend });
  } catch (error) {
    // An error that isn't a fault is a bug, and nobody knows whether it came before the sending or after.
    const outcome = error instanceof Fault ? error.outcome : "unknown";
    const ended = entry?.ended({ outcome, left: request.caller.gone });
    // A request that was not sent needn't wait for its record: its till may try again at once. `ended` never rejects.
    if (outcome !== "not-sent") await ended;
    throw error;
  }
  const { status, code, payload } = reply;
  const end = await entry?.ended({ outcome: "answered", status, code, payload, left: request.caller.gone });
  return end === undefined ? reply : { ...reply, end };
}

/** Rules of a service that a line must know beside its contract. */
export interface LineServiceRules {
  readonly crc16: Crc16;
  readonly quiet: boolean;
  readonly merchantId: string | undefined;
  /** Bytes of the largest reply that is taken, if not the default. */
  readonly replyBytesMax?: number;
  /** The service's name, if it isn't its contract's. */
  readonly service?: ServiceName | undefined;
}

/** A service on a line, with the contract by which it is asked. */
export interface ContractService extends LineService {
  readonly contract: ContractName;
}

/**
 * Makes a service as its line's recovery sees it.
 *
 * Without the merchant's id a fiscal probe can't be signed, and the terminal would answer an error, which proves nothing: then there is no
 * probe.
 */
export function lineService(contract: Contract, rules: LineServiceRules): ContractService {
  const { framing, probe, secondProbe } = contract;
  const signable = contract.envelope !== "form" || rules.merchantId !== undefined;
  const asks = signable && !rules.quiet;
  const frameOfQuestion = (route: string, json?: string) =>
    asks ? frameOf(framing, questionToLine(contract, route, rules.merchantId, json), rules.crc16) : undefined;
  return {
    service: rules.service ?? contract.service,
    contract: contract.service,
    framing,
    replyBytesMax: rules.replyBytesMax ?? serviceDefaults.replyBytesMax,
    probe: frameOfQuestion(probe.route),
    second: frameOfQuestion(secondProbe.route, secondProbe.body),
    ...answersOf(contract),
  };
}

/** Tells which of posline's own questions an answer belongs to. */
export function answersOf({ probe, secondProbe }: Contract): Pick<LineService, "questionOf"> {
  return {
    questionOf: (reply) => (probe.isAnswer(reply) ? "probe" : secondProbe.isAnswer(reply) ? "second" : undefined),
  };
}
