import type { ServiceName } from "../core/call.ts";
import { resumeByBridge } from "./by-bridge.ts";
import { Followings } from "./followings.ts";
import type { RemoteService } from "./remote-service.ts";
import { askFrom } from "./settle.ts";
import { contractOfToken, readToken } from "./token.ts";
import type { Settled, SettleOptions } from "./types.ts";

/**
 * Follows an operation on that another process began: asks first, never sends blindly. One that provably wasn't sent yet is
 * sent; one that ended unsent has ended.
 * @param followings What is followed already: its end is waited for.
 * @throws TypeError for what is not a token, or one of another service.
 */
export async function resume(
  services: Readonly<Record<ServiceName, RemoteService>>,
  value: unknown,
  options: SettleOptions,
  followings = new Followings(),
): Promise<Settled> {
  const { token } = readToken(value);
  const service = services[token.service];
  if (service === undefined) {
    throw new TypeError(`Cannot resume: the client has no service ${token.service}: make it with that one`);
  }
  const contract = contractOfToken(token);
  if (service.contract.service !== contract) {
    // Both may have the route, and mean another thing by it.
    throw new TypeError(
      `Cannot resume: the operation was begun with a ${contract} service, and ${token.service} is a ${service.contract.service} one: ` +
        "make the client with the service that it was begun with",
    );
  }
  const follow = token.byBridge === true ? resumeByBridge : askFrom;
  return followings.resume(token, options, (known, shared) => follow(service, known, shared));
}
