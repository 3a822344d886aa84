import type { ServiceConfig } from "../config/config.ts";
import type { Contract } from "../contract/contract.ts";
import type { Handler } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log.ts";
import type { RequestRules } from "../envelope/request.ts";
import { Answers } from "./answer.ts";
import { BodyReader } from "./body.ts";
import { Guard } from "./guard.ts";
import { bodiesMax } from "./limits.ts";

/** What a configuration says of a port, its address aside: which service is there, and how. */
export interface Settings {
  readonly contract: Contract;
  readonly config: ServiceConfig;
  readonly rules: RequestRules;
  readonly handler: Handler;
  /**
   * The fault with which the handler would refuse any call that comes now, so that its body needn't be read; absent where that can't
   * be known before.
   */
  readonly refusal?: () => Fault | undefined;
  readonly report: {
    exchange(record: ExchangeRecord): void;
    /** Something failed that should not: a bug. */
    error(error: unknown): void;
  };
}

/**
 * On what terms requests are taken: all that the configuration decides. A request keeps those under which it came, whatever the
 * configuration says by the time it is answered.
 */
export interface Terms extends Settings {
  readonly guard: Guard;
  readonly answers: Answers;
  readonly bodies: BodyReader;
}

/** @param before The terms until now: what is held under them counts on, unless bodies may be of another size. */
export function termsOf(settings: Settings, before?: Terms): Terms {
  const { contract, config } = settings;
  const { allowHosts, allowOrigins, apiKey, bodyBytesMax, faultStatus } = config;
  const sameSize = before?.config.bodyBytesMax === bodyBytesMax;
  return {
    ...settings,
    guard: new Guard({ allowHosts, allowOrigins, apiKey }),
    answers: new Answers(contract, faultStatus),
    bodies: sameSize ? before.bodies : new BodyReader(bodyBytesMax, bodiesMax * bodyBytesMax),
  };
}
