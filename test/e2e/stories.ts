import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { type Example, exampleMerchantId, examplesOf } from "../../src/lab/openapi/examples.ts";
import { ask, BridgeProcess, type HttpAnswer } from "../support/bridge-process.ts";
import { until } from "../support/until.ts";

/** The stories of the OpenAPI documents' examples, told to the real bundle in front of an emulated terminal. */

/** An example, and what was answered now. */
export type Told = { readonly example: Example; readonly now: Example; readonly answer: HttpAnswer };

/** A device that is on no box; it stands in the answers. */
const absentDevice = "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A9KJ3X7Q-if00-port0";

/** A story holds two or three answers that never come; the fewest milliseconds that a configuration takes, and a round number of them. */
const replyTimeoutMs = 4_000;

function configOf(contract: ContractName): object {
  const { routes } = contracts[contract];
  const timeouts = Object.fromEntries(routes.map(({ path }) => [path, replyTimeoutMs]));
  const secret = contract === "fiscal" ? { merchantId: exampleMerchantId } : {};
  return {
    lines: { till: { path: absentDevice } },
    services: { [contract]: { line: "till", port: contracts[contract].port, replyTimeoutMs: timeouts, ...secret } },
    admin: {},
    journal: false,
  };
}

/** The two bridges of a story: one with an emulated terminal, one whose device isn't there. */
export async function withBridges<T>(
  service: ContractName,
  body: (emulated: BridgeProcess, absent: BridgeProcess) => Promise<T>,
): Promise<T> {
  const env = { POSLINE_ADMIN_PORT: "0" };
  const emulated = new BridgeProcess(configOf(service), { env, flags: ["--emulated"] });
  const absent = new BridgeProcess(configOf(service), { env });
  try {
    return await body(emulated, absent);
  } finally {
    await Promise.all([emulated.stop(), absent.stop()]);
  }
}

/** Tells a service's story, from its first request to its last. */
export async function tellStory(
  service: ContractName,
  emulated: BridgeProcess,
  absent: BridgeProcess,
): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (const example of examplesOf(service)) {
    const bridge = example.absent === true ? absent : emulated;
    if (bridge === emulated) await ready(emulated);
    if (example.forced !== undefined) await force(emulated, { service, route: example.route, ...example.forced });
    const answer = await askAs(service, bridge, example);
    told.push({ example, now: exampleOf(example, answer), answer });
  }
  return told;
}

async function ready(bridge: BridgeProcess): Promise<void> {
  const port = await bridge.port("admin");
  await until(async () => (await ask(port, "GET", "/readyz", "")).status === 200, "the terminal to be ready");
}

async function force(bridge: BridgeProcess, next: JsonObject): Promise<void> {
  const { status, text } = await ask(await bridge.port("admin"), "POST", "/emulator", JSON.stringify({ next }));
  if (status !== 200) throw new Error(`The emulator refused ${JSON.stringify(next)}: ${text}`);
}

/** Sends the request as the document says: the form with its sign, or the JSON. */
async function askAs(service: ContractName, bridge: BridgeProcess, { method, route, request }: Example): Promise<HttpAnswer> {
  const isForm = contracts[service].envelope === "form";
  const headers: Record<string, string> =
    request === undefined ? {} : { "Content-Type": isForm ? "application/x-www-form-urlencoded" : "application/json" };
  const body = request === undefined ? "" : isForm ? formOf(request) : JSON.stringify(request);
  return ask(await bridge.port(service), method, route, body, headers);
}

function formOf(request: JsonObject): string {
  const data = Buffer.from(JSON.stringify(request)).toString("base64");
  return new URLSearchParams({ data, sign: signOf(data, exampleMerchantId) }).toString();
}

function exampleOf(example: Example, { status, headers, text }: HttpAnswer): Example {
  const answer: unknown = JSON.parse(text);
  if (!isObject(answer)) throw new Error(`${example.route} ${example.name} was answered with no object: ${text}`);
  const { reason: _, ...asked } = example;
  const reason = headers["x-posline-reason"];
  return {
    ...asked,
    httpStatus: status,
    outcome: headers["x-posline-outcome"] ?? "",
    ...(reason === undefined ? {} : { reason }),
    answer,
  };
}

/** An example with each time of day of the emulator's clock replaced, for comparing. */
export function withoutTimes(example: Example): string {
  return JSON.stringify(example, undefined, 2).replaceAll(/\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+Z)?/g, "<time>");
}
