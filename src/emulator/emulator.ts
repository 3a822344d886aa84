import type { Contract, Route } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { parseForm, unescapeValue } from "../envelope/form.ts";
import { type JsonObject, parseObject, textOf } from "../envelope/json.ts";
import { signMatches } from "../envelope/sign.ts";
import { type Answer, type EmulatedService, refusal } from "./answer.ts";
import { emulatedBank } from "./emulator-bank.ts";
import { emulatedFiscal } from "./emulator-fiscal.ts";
import { emulatedQr } from "./emulator-qr.ts";

/**
 * The emulator plays the three services: a Handler that answers by itself, in the shapes of the contracts, so that a till can be
 * built and a bridge tested where no terminal is at hand.
 *
 * It owns what a terminal remembers (documents, operations, payments, the shift), bounded and in memory only. It refuses to
 * know how a call came and how its reply leaves. It never moves money: every operation is approved, with made-up numbers that
 * can be taken for no real receipt. What the contracts don't show isn't invented beyond what a reply needs.
 */

export interface EmulatorOptions {
  /** Checks fiscal signs with it; without it any sign will do, but one must be there. */
  readonly merchantId?: string;
  /** What time it is, for the documents' times. */
  readonly clock?: () => Date;
}

/** Makes an emulator with a memory of its own: an open shift, no documents, no operations. */
export function createEmulator(options: EmulatorOptions = {}): Handler {
  const clock = options.clock ?? (() => new Date());
  const services: Readonly<Record<ServiceName, EmulatedService>> = {
    fiscal: emulatedFiscal(clock),
    bank: emulatedBank(),
    qr: emulatedQr(),
  };
  return async (call) => replyOf(answerTo(call, services[call.service], options.merchantId));
}

function answerTo(call: Call, service: EmulatedService, merchantId: string | undefined): Answer {
  const contract = contracts[call.service];
  const route = routeOf(contract, call.route);
  const operation = service.get(call.route);
  if (route === undefined || operation === undefined) {
    return refusal(contract.faultCodes.route, `Cannot answer: ${contract.service} has no such route`);
  }
  const body = contract.envelope === "form" ? readForm(contract, route, call, merchantId) : readText(contract, route, call);
  return "refused" in body ? body.refused : operation(body.json);
}

type ReadBody = { readonly json: JsonObject } | { readonly refused: Answer };

/** Bank and qr: the JSON text. A route without a body ignores whatever came. */
function readText(contract: Contract, route: Route, call: Call): ReadBody {
  if (route.body === "none") {
    return { json: {} };
  }
  const json = parseObject(textOf(call.body));
  return json === undefined ? refused(contract.faultCodes.malformed, `Cannot answer ${route.path}: no JSON object`) : { json };
}

/** Fiscal: the signed form. Only a route that may be a GET may come without one. */
function readForm(contract: Contract, route: Route, call: Call, merchantId: string | undefined): ReadBody {
  if (route.body === "none" && call.body.length === 0) {
    return { json: {} };
  }
  const form = parseForm(Buffer.concat(call.body));
  if (form.data === undefined || form.sign === undefined) {
    return refused(contract.faultCodes.missing, `Cannot answer ${route.path}: data or sign is missing`);
  }
  const data = unescapeValue(form.data);
  if (merchantId !== undefined && !signMatches(unescapeValue(form.sign), data, merchantId)) {
    return refused(contract.faultCodes.sign, `Cannot answer ${route.path}: the sign does not fit data and merchantId`);
  }
  const json = parseObject(Buffer.from(data, "base64").toString("utf8"));
  return json === undefined
    ? refused(contract.faultCodes.malformed, `Cannot answer ${route.path}: data is no Base64 of a JSON object`)
    : { json };
}

function refused(code: number, message: string): ReadBody {
  return { refused: refusal(code, message) };
}

function replyOf(answer: Answer): Reply {
  return { payload: [Buffer.from(JSON.stringify(answer))], status: answer.status, code: answer.code, queueMs: 0, lineMs: 0 };
}
