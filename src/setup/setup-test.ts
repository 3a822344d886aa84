import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../client/http-client.ts";
import { methodName } from "../client/remote-service.ts";
import type { Config, ServiceConfig } from "../config/config.ts";
import { servicesOn } from "../config/found-terminal.ts";
import { contracts } from "../contract/contracts.ts";
import { reachableAddress } from "../core/address.ts";
import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { messageOf } from "../core/error-code.ts";
import { urlHost } from "../core/url-host.ts";

/** Milliseconds until a service must have answered through posline: a start by silence takes 30 s of it. */
const testMs = 45_000;

const againMs = 500;

/**
 * Asks each service of a line its harmless question, as a till would, until it answers.
 * @returns true if each did.
 */
export async function testThroughService(config: Config, line: string, say: (text: string) => void): Promise<boolean> {
  const dueMs = nowMs() + testMs;
  const ends: boolean[] = [];
  for (const [name, service] of servicesOn(config, line)) ends.push(await testService(name, service, dueMs, say));
  return ends.every((isAnswered) => isAnswered);
}

async function testService(
  name: ServiceName,
  { contract, host, port, apiKey }: ServiceConfig,
  dueMs: number,
  say: (text: string) => void,
): Promise<boolean> {
  const url = `http://${urlHost(reachableAddress(host))}:${port}`;
  const client = createClient({ [contract]: { url, ...(apiKey === undefined ? {} : { apiKey }) } });
  const { route } = contracts[contract].probe;
  // Each contract's probe is a route without a body, whose method takes only options.
  const ask = (client[contract] as unknown as Readonly<Record<string, (options: object) => Promise<unknown>>>)[
    methodName(route)
  ];
  try {
    for (;;) {
      const beganMs = nowMs();
      try {
        await ask?.({ timeoutMs: 10_000 });
        say(`Test: ${name} answered ${route} in ${Math.round(nowMs() - beganMs)} ms through posline (${url})`);
        return true;
      } catch (error) {
        if (nowMs() < dueMs) {
          await pause(againMs);
          continue;
        }
        say(`Test: ${name} did not answer ${route} through posline (${url}): ${messageOf(error)}`);
        return false;
      }
    }
  } finally {
    await client.close();
  }
}
