import type { ServiceConfig } from "../config/config.ts";
import type { Contract } from "../contract/contract.ts";
import type { Handler, ServiceName } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log.ts";
import type { RequestRules } from "../envelope/request.ts";
import { BodyReader } from "./body.ts";
import { Guard } from "./guard.ts";
import { bodiesMax } from "./limits.ts";
import { ResponseWriter } from "./response-writer.ts";

/** The settings of a port, except its address: which service it serves, and how. */
export interface ServiceSettings {
  readonly contract: Contract;
  /** The service's name, if it isn't its contract's. */
  readonly service?: ServiceName | undefined;
  readonly config: ServiceConfig;
  readonly rules: RequestRules;
  readonly handler: Handler;
  /** True if the handler follows operations to their end for calls that want it (`Prefer: wait`). */
  readonly isFollowed?: boolean;
  /**
   * The fault with which the handler would refuse any such call now, so that its body needn't be read; absent if that can't be known in
   * advance.
   * @param bodyBytes undefined if the body's length wasn't announced.
   */
  readonly refusal?: (route: string, bodyBytes: number | undefined) => Fault | undefined;
  readonly report: {
    exchange(record: ExchangeRecord): void;
    /** A bug: something failed that should not. */
    error(error: unknown): void;
  };
}

/**
 * The settings with what is built from them. A request keeps the settings under which it came, whatever the configuration says by the time
 * it is answered.
 */
export interface AppliedSettings extends ServiceSettings {
  readonly service: ServiceName;
  readonly guard: Guard;
  readonly responses: ResponseWriter;
  readonly bodies: BodyReader;
}

/** @param before The settings until now: bodies held under them still count, unless the largest body has another size. */
export function applySettings(settings: ServiceSettings, before?: AppliedSettings): AppliedSettings {
  const { contract, config, service = contract.service } = settings;
  const { allowHosts, allowOrigins, apiKey, bodyBytesMax, faultStatus } = config;
  const sameSize = before?.config.bodyBytesMax === bodyBytesMax;
  return {
    ...settings,
    service,
    guard: new Guard({ service, allowHosts, allowOrigins, apiKey }),
    responses: new ResponseWriter(contract, faultStatus),
    bodies: sameSize ? before.bodies : new BodyReader(bodyBytesMax, bodiesMax * bodyBytesMax),
  };
}
