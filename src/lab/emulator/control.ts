import type { Node } from "../../config/check.ts";
import { checkObject } from "../../config/check-object.ts";
import { contracts } from "../../contract/contracts.ts";
import { settlingRules } from "../../contract/settling.ts";
import type { ContractName, ServiceName } from "../../core/call.ts";
import type { JsonObject } from "../../core/json-object.ts";
import type { Emulator } from "./emulator.ts";
import { writeExact } from "./exact-json.ts";
import { type FaultChance, type ForcedEffect, forcedEffectsMax } from "./faults/fault-plan.ts";
import { digitsOf, type EmulatedOutcome, effectName, magicAmounts } from "./faults/magic-amounts.ts";
import { parseWireFault, type WireFault } from "./faults/wire-fault.ts";
import { aheadMsMax } from "./state-file.ts";

/**
 * The control API: a test asks the emulator here, beside the services' own routes, for its memory, moves time on, and has the next
 * operation go wrong. A request is taken whole or not at all.
 */

/** The answer to a request to the control API. */
export interface ControlResponse {
  readonly status: 200 | 400;
  /** JSON. */
  readonly text: string;
}

export interface ControlOptions {
  /** True if amounts decide nothing. */
  readonly plainAmounts: boolean;
  /** Called when something that is kept has changed. */
  readonly changed: () => void;
  /** The names of the services that can be reached: at others nothing would ever go wrong. All played services by default. */
  readonly reachable?: () => readonly ServiceName[];
}

/** Answers `GET /emulator` and `POST /emulator`. */
export class ControlApi {
  readonly #emulator: Emulator;
  readonly #options: ControlOptions;

  constructor(emulator: Emulator, options: ControlOptions) {
    this.#emulator = emulator;
    this.#options = options;
  }

  /** All that is remembered and planned. Integers are exact, whatever their size. */
  view(): ControlResponse {
    const { plan } = this.#emulator;
    const shown = {
      now: this.#emulator.now().toISOString(),
      ...this.#emulator.saved(),
      forced: plan.forced.map(({ service, route, effect }) => ({
        service,
        ...(route === undefined ? {} : { route }),
        ["outcome" in effect ? "outcome" : "fault"]: effectName(effect),
      })),
      chances: sharesOf(plan.chances),
      endings: this.#options.plainAmounts ? {} : magicAmountNames,
    };
    return { status: 200, text: `${writeExact(shown, 2)}\n` };
  }

  /** Carries a request out, or says why it is wrong and does nothing. */
  change(body: string): ControlResponse {
    const problems: string[] = [];
    const asked = this.#read(body, problems);
    if (problems.length > 0) {
      const error = `Cannot accept the request, nothing was changed: ${problems.join("; ")}`;
      return { status: 400, text: `${JSON.stringify({ error })}\n` };
    }
    const { plan } = this.#emulator;
    if (asked.reset) this.#emulator.reset();
    if (asked.advanceMs > 0) {
      this.#emulator.advance(asked.advanceMs);
      this.#options.changed();
    }
    if (asked.chances !== undefined) plan.chances = asked.chances;
    for (const forced of asked.next) plan.force(forced);
    return this.view();
  }

  #read(body: string, problems: string[]): ParsedControlRequest {
    const { reachable = () => Object.keys(this.#emulator.contracts) } = this.#options;
    const node = requestNode(reachable());
    // Wrong fields are among the problems.
    const request = checkObject(node, body, problems) as ControlRequest;
    if (problems.length === 0 && Object.keys(request).length === 0) {
      problems.push(`the request is empty: use one of ${Object.keys(node.properties ?? {}).join(", ")}`);
    }
    const { reset = false, advanceMs = 0, next = [], chances } = request;
    if ((reset ? 0 : this.#emulator.aheadMs) + advanceMs > aheadMsMax)
      problems.push("advanceMs: the emulator's time would leave the calendar");
    const list = Array.isArray(next) ? next : [next];
    const waiting = reset ? 0 : this.#emulator.plan.forced.length;
    if (waiting + list.length > forcedEffectsMax) {
      problems.push(
        `next: ${waiting} effects are pending already, and ${forcedEffectsMax} is the limit: reset, or send requests that use them up`,
      );
    }
    return {
      reset,
      advanceMs,
      next: list.flatMap((each, index) =>
        readForced(each, this.#emulator.contracts, { path: Array.isArray(next) ? `next[${index}]` : "next", problems }),
      ),
      chances: chances === undefined ? undefined : readChances(chances, problems),
    };
  }
}

/** Shares by fault: a fault that is named twice, as `late` and `late:5000`, has both shares. */
function sharesOf(chances: readonly FaultChance[]): JsonObject {
  const shares = new Map<string, number>();
  for (const { fault, share } of chances) {
    const name = effectName({ fault });
    shares.set(name, (shares.get(name) ?? 0) + share);
  }
  return Object.fromEntries(shares);
}

/** A request as it may be written. */
interface ControlRequest {
  readonly reset?: boolean;
  readonly advanceMs?: number;
  readonly next?: ForcedRequest | readonly ForcedRequest[];
  readonly chances?: Readonly<Record<string, unknown>>;
}

interface ForcedRequest {
  readonly service?: ServiceName;
  readonly route?: string;
  readonly outcome?: string;
  readonly fault?: string;
}

/** A request that was understood. */
interface ParsedControlRequest {
  readonly reset: boolean;
  readonly advanceMs: number;
  readonly next: readonly ForcedEffect[];
  readonly chances: readonly FaultChance[] | undefined;
}

/** @param services The names of the services that are played. */
const nextNode = (services: readonly ServiceName[]): Node => ({
  type: "object",
  additionalProperties: false,
  required: ["service"],
  properties: {
    service: { enum: services, description: "name the service that it applies to" },
    route: { type: "string" },
    outcome: { type: "string" },
    fault: { type: "string" },
  },
});

const requestNode = (services: readonly ServiceName[]): Node => ({
  type: "object",
  additionalProperties: false,
  properties: {
    reset: { type: "boolean" },
    advanceMs: { type: "integer", minimum: 0, maximum: aheadMsMax },
    next: { anyOf: [nextNode(services), { type: "array", maxItems: forcedEffectsMax, items: nextNode(services) }] },
    chances: { type: "object", additionalProperties: { minimum: 0, maximum: 1 } },
  },
});

/** The place in the request that is read, and the list of its problems. */
interface ReadingPlace {
  readonly path: string;
  readonly problems: string[];
}

function readForced(
  { service, route, outcome, fault }: ForcedRequest,
  played: Emulator["contracts"],
  { path, problems }: ReadingPlace,
): readonly ForcedEffect[] {
  const contract = service === undefined ? undefined : played[service];
  // A service or contract that is missing or wrong is among the problems already.
  if (service === undefined || contract === undefined) return [];
  const routes = contracts[contract].routes.map((each) => each.path);
  if (route !== undefined && !routes.includes(route)) {
    problems.push(
      `${path}.route: ${service} has no route ${JSON.stringify(route.slice(0, 64))}: use one of ${routes.join(", ")}`,
    );
    return [];
  }
  const at = route === undefined ? { service } : { service, route };
  if ((outcome === undefined) === (fault === undefined)) {
    problems.push(`${path}: must have either outcome or fault`);
    return [];
  }
  if (outcome !== undefined) {
    // An effect on any other route would wait for ever
    const beginning = settlingRules[contract].map((each) => each.route);
    if (route !== undefined && !beginning.includes(route)) {
      problems.push(`${path}.outcome: ${route} begins no operation: use fault, or one of ${beginning.join(", ")}`);
      return [];
    }
    const read = readOutcome(contract, outcome);
    if (read !== undefined) return [{ ...at, effect: { outcome: read } }];
    const names = [...outcomeNames[contract], "slow:1 to slow:99"].join(", ");
    problems.push(`${path}.outcome: ${service} has no outcome ${JSON.stringify(outcome.slice(0, 64))}: use one of ${names}`);
    return [];
  }
  const read = readFault(fault ?? "", `${path}.fault`, problems);
  return read === undefined ? [] : [{ ...at, effect: { fault: read } }];
}

function readChances(chances: Readonly<Record<string, unknown>>, problems: string[]): readonly FaultChance[] {
  const read: FaultChance[] = [];
  for (const [text, share] of Object.entries(chances)) {
    const path = `chances.${JSON.stringify(text.slice(0, 64))}`;
    const fault = readFault(text, path, problems);
    if (typeof share !== "number") problems.push(`${path}: must be a number from 0 to 1`);
    else if (fault !== undefined) read.push({ fault, share });
  }
  if (read.reduce((sum, { share }) => sum + share, 0) > shareMax) problems.push("chances: the shares add up to more than 1");
  return read;
}

/** The sum of all shares at most; 0.1 ten times is a little more than 1, as numbers are added. */
const shareMax = 1 + 1e-9;

function readFault(text: string, path: string, problems: string[]): WireFault | undefined {
  try {
    return parseWireFault(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.push(`${path}: ${error.message.slice(0, 512)}`);
    return undefined;
  }
}

/** The outcomes that each service has, without those that are named with a number. */
const outcomeNames: Readonly<Record<ContractName, readonly EmulatedOutcome["name"][]>> = {
  fiscal: outcomeNamesOf("fiscal"),
  bank: outcomeNamesOf("bank"),
  qr: outcomeNamesOf("qr"),
};

function outcomeNamesOf(service: ContractName): readonly EmulatedOutcome["name"][] {
  return magicAmounts.flatMap(({ effect, words }) => {
    const has = "all" in words || words[service] !== undefined;
    return has && "outcome" in effect && effect.outcome.checks === undefined ? [effect.outcome.name] : [];
  });
}

/** `slow:3` is in progress for three checks. */
export function readOutcome(service: ContractName, text: string): EmulatedOutcome | undefined {
  const [, checks] = /^slow:([1-9]\d?)$/.exec(text) ?? [];
  if (checks !== undefined) return { name: "slow", checks: Number(checks) };
  const name = outcomeNames[service].find((each) => each === text);
  return name === undefined ? undefined : { name };
}

const magicAmountNames: Readonly<Record<string, string>> = Object.fromEntries(
  magicAmounts.map((ending) => [digitsOf(ending), effectName(ending.effect)]),
);
