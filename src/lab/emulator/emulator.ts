import type { Contract, Route } from "../../contract/contract.ts";
import { contracts, routeOf } from "../../contract/contracts.ts";
import { type Call, type ContractName, contractNames, type Reply, type ServiceName } from "../../core/call.ts";
import { Fault } from "../../core/fault.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { parseForm, unescapeValue } from "../../envelope/form.ts";
import { textOf } from "../../envelope/json.ts";
import { signFits } from "../../envelope/sign.ts";
import { errorAnswer, type ServiceAnswer } from "./answer.ts";
import { emulatedBank } from "./bank/bank.ts";
import { parseExact, writeExact } from "./exact-json.ts";
import { FaultPlan, type FaultPlanOptions } from "./faults/fault-plan.ts";
import type { WireFault } from "./faults/wire-fault.ts";
import { emulatedFiscal } from "./fiscal/fiscal.ts";
import { emulatedQr } from "./qr/qr.ts";
import type { EmulatedService, ServiceContext } from "./service-context.ts";
import { builtInWorld, type World } from "./world.ts";

/**
 * The emulator plays the three services: it answers every route by the contract's rules, remembers as a terminal does, and goes wrong on
 * request, so that a till can be built and a bridge tested without a terminal. A service of a name of its own is another terminal, and has
 * a memory of its own.
 *
 * How an answer leaves is none of its business: the answer's fault is named beside it, and applied by the code that writes it. How a call
 * came matters to the fiscal sign alone. No money moves, and its numbers can be taken for no real receipt.
 */

export interface EmulatorOptions extends FaultPlanOptions {
  /** Checks the signs of `fiscal`; without it any sign will do, but there must be one. */
  readonly merchantId?: string;
  /** What its terminals are set up with; services of one contract share it. The built-in one by default. */
  readonly world?: World;
  /** The present time. */
  readonly clock?: () => Date;
  /** Called after each request that changed the memory, before its answer leaves. */
  readonly changed?: () => void;
}

/** A service as it is played. */
export interface PlayedService {
  readonly contract: ContractName;
  /** As in `EmulatorOptions`. */
  readonly merchantId?: string | undefined;
}

/** The emulator's memory, by service; services of the contracts' own names are always there. */
export type EmulatedServices = Readonly<Record<ServiceName, EmulatedService | undefined>> &
  Readonly<Record<ContractName, EmulatedService>>;

/** How a call came to the emulator. */
export type CameOver = "http" | "line";

/** An answer, and the fault that is applied on its way. */
export interface EmulatedReply {
  readonly reply: Reply;
  readonly fault: WireFault | undefined;
}

export class Emulator {
  readonly plan: FaultPlan;
  readonly #services = new Map<ServiceName, PlayedService & { readonly played: EmulatedService }>();
  readonly #options: EmulatorOptions;
  readonly #world: World;
  #aheadMs = 0;
  /** True if the memory has changed since `changed` was last called. */
  #dirty = false;

  constructor(options: EmulatorOptions = {}) {
    this.#options = options;
    this.#world = options.world ?? builtInWorld;
    this.plan = new FaultPlan(options);
    for (const contract of contractNames) this.play(contract, { contract, merchantId: options.merchantId });
  }

  /** Plays a service from now on. A service that is played already keeps its memory, unless it had another contract. */
  play(service: ServiceName, { contract, merchantId }: PlayedService): void {
    const before = this.#services.get(service);
    const context: ServiceContext = {
      now: () => this.now(),
      outcomeOf: (route, amount) => this.plan.outcomeOf(service, route, amount),
      changed: () => {
        this.#dirty = true;
      },
    };
    const played = before?.contract === contract ? before.played : emulated[contract](context, this.#world);
    this.#services.set(service, { contract, merchantId, played });
  }

  get services(): EmulatedServices {
    // Services of the contracts' own names are played from the beginning.
    return Object.fromEntries([...this.#services].map(([name, { played }]) => [name, played])) as EmulatedServices;
  }

  /** The contract of each service that is played. */
  get contracts(): Readonly<Record<ServiceName, ContractName | undefined>> {
    return Object.fromEntries([...this.#services].map(([name, { contract }]) => [name, contract]));
  }

  now(): Date {
    const { clock = () => new Date() } = this.#options;
    return new Date(clock().getTime() + this.#aheadMs);
  }

  /** Tells its world from others; undefined for the built-in one. */
  get worldMark(): string | undefined {
    return this.#world.mark;
  }

  /** Milliseconds by which the emulator's time was moved on. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Moves the emulator's time on. */
  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  /**
   * Carries a call out and answers it, at once.
   * @throws Fault `route` if its fiscal service doesn't serve the route over HTTP, where that is 404 (fiscal contract, Endpoints).
   */
  answer(call: Call, over: CameOver = "http"): EmulatedReply {
    this.plan.begin(call.service, call.route);
    const answer = this.#answerTo(call, over);
    if (this.#dirty) this.#options.changed?.();
    this.#dirty = false;
    const payload = Buffer.from(writeExact(answer));
    const reply = { payload: [payload], status: answer.status, code: answer.code, queueMs: 0, lineMs: 0 };
    return { reply, fault: this.plan.fault() };
  }

  /** All that the emulator remembers. */
  saved(): JsonObject {
    return Object.fromEntries([...this.#services].map(([name, { played }]) => [name, played.saved()]));
  }

  /** Forgets everything, and comes back to the present. */
  reset(): void {
    this.#aheadMs = 0;
    for (const { played } of this.#services.values()) played.reset();
    this.plan.reset();
    this.#options.changed?.();
  }

  #answerTo(call: Call, over: CameOver): ServiceAnswer {
    const contract = contracts[call.contract];
    const route = routeOf(contract, call.route);
    if (route === undefined) {
      return errorAnswer(contract.faultCodes.route, `Cannot answer: ${contract.service} has no such route`);
    }
    if (contract.service === "fiscal" && !isServed(route, contract, this.#world)) {
      const message = `Cannot answer ${route.path}: it is not supported: choose one that ${contract.probe.route} lists`;
      if (over === "http") throw new Fault("route", message);
      return errorAnswer(contract.faultCodes.route, message);
    }
    const service = this.#services.get(call.service);
    if (service === undefined) throw new Error(`Cannot answer: the emulator does not play ${call.service}`);
    const body =
      contract.envelope === "form"
        ? readFormBody(contract, route, { call, over, merchantId: service.merchantId })
        : readJsonBody(contract, route, call);
    return "refused" in body ? body.refused : service.played.answer(route.path, body.json);
  }
}

const emulated: Readonly<Record<ContractName, (context: ServiceContext, world: World) => EmulatedService>> = {
  fiscal: (context, { fiscal }) => emulatedFiscal(context, fiscal),
  bank: (context, { bank }) => emulatedBank(context, bank),
  qr: (context, { qr }) => emulatedQr(context, qr),
};

/** Of a fiscal route; bank and qr have answers of their own for what they don't serve. A line is proven by the probe's route. */
const isServed = ({ path }: Route, { probe }: Contract, { fiscal }: World) =>
  path === probe.route || fiscal.operations.includes(path.slice(1));

type BodyOrRefusal = { readonly json: JsonObject } | { readonly refused: ServiceAnswer };

/** Words for the only body that is right, at the end of a refusal. */
const oneObject = "a JSON object, or the object has a field twice: send one object, each field once";

/** Bank and qr: reads the JSON text. A route without a body ignores any. */
function readJsonBody(contract: Contract, route: Route, call: Call): BodyOrRefusal {
  if (route.body === "none") return { json: {} };
  const json = parseExact(textOf(call.body));
  return json === undefined
    ? refused(contract.faultCodes.malformed, `Cannot answer ${route.path}: the body is not ${oneObject}`)
    : { json };
}

/** A call with a form as its body, and the id that its sign is checked with. */
interface SignedCall {
  readonly call: Call;
  readonly over: CameOver;
  readonly merchantId: string | undefined;
}

/**
 * Fiscal: reads the signed form. The order of checks is the contract's: sign (1) before content (2, 3). Only /supported_operations may come
 * unsigned, over HTTP, by GET or with an empty body: on a line data and sign are required (Endpoints).
 */
function readFormBody(contract: Contract, route: Route, { call, over, merchantId }: SignedCall): BodyOrRefusal {
  const codes = contract.faultCodes;
  if (call.body.length === 0 && route.body === "none" && over === "http") return { json: {} };
  const { data: sent = none, sign = none } = parseForm(Buffer.concat(call.body));
  if (sent.length === 0 || sign.length === 0) {
    return refused(codes.missing, `Cannot answer ${route.path}: data or sign is missing`);
  }
  if (merchantId !== undefined && !signFits({ data: sent, sign }, merchantId)) {
    return refused(codes.sign, `Cannot answer ${route.path}: the sign does not fit data and merchantId`);
  }
  const data = unescapeValue(sent);
  const json = isBase64(data) ? parseExact(Buffer.from(data, "base64").toString("utf8")) : undefined;
  return json === undefined
    ? refused(codes.malformed, `Cannot answer ${route.path}: data is not the Base64 of ${oneObject}`)
    : { json };
}

const none = Buffer.alloc(0);

/** Line breaks are taken out, since MIME's encoders make them. */
const isBase64 = (text: string) => /^[A-Za-z0-9+/]+={0,2}$/.test(text.replaceAll(/\s/g, ""));

function refused(code: number, message: string): BodyOrRefusal {
  return { refused: errorAnswer(code, message) };
}
