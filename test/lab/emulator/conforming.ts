import assert from "node:assert/strict";
import { contracts } from "../../../src/contract/contracts.ts";
import { type ContractName, contractNames, type Handler } from "../../../src/core/call.ts";
import { signOf } from "../../../src/envelope/sign.ts";
import { HttpListener } from "../../../src/http/listener.ts";
import { Emulator } from "../../../src/lab/emulator/emulator.ts";
import { httpEndpoint } from "../../../src/lab/emulator/http-endpoint.ts";
import { serviceConfigOf } from "../../support/service-config.ts";
import { bankRows } from "./conformance-bank.ts";
import { fiscalRows } from "./conformance-fiscal.ts";
import { qrRows } from "./conformance-qr.ts";
import type { Ask, Row } from "./conformance-rows.ts";

/** All rows of the conformance table, and the emulator over HTTP to ask them of. */

export const merchantId = "MERCHANT-1";
export const rows: readonly Row[] = [
  ...fiscalRows.map((row) => ({ service: "fiscal" as const, ...row })),
  ...bankRows.map((row) => ({ service: "bank" as const, ...row })),
  ...qrRows.map((row) => ({ service: "qr" as const, ...row })),
];

/** One emulator, and a way to ask it. */
export interface Transport {
  readonly emulator: Emulator;
  readonly ask: (service: ContractName, ask: Ask) => Promise<string>;
  readonly stop: () => Promise<void>;
}

export const newEmulator = () => new Emulator({ merchantId, clock: () => new Date(2026, 10, 20, 12, 0, 0) });

export function bodyOf(service: ContractName, { body, raw, badSign }: Ask): string {
  if (body === undefined && raw === undefined) return "";
  const text = raw ?? JSON.stringify(body);
  if (service !== "fiscal") return text;
  const data = Buffer.from(text).toString("base64");
  return `data=${data}&sign=${signOf(data, badSign ? "OTHER" : merchantId)}`;
}

/** The emulator over HTTP, on real sockets. `answered` has the text of each answer, as it was made. */
export async function overHttpTransport(): Promise<
  Transport & { readonly ports: ReadonlyMap<ContractName, number>; readonly answered: readonly string[] }
> {
  const emulator = newEmulator();
  const answered: string[] = [];
  const { handler: answering, stop } = httpEndpoint(emulator);
  const handler: Handler = async (call) => {
    const reply = await answering(call);
    answered.push(Buffer.concat(reply.payload).toString());
    return reply;
  };
  const ports = new Map<ContractName, number>();
  const listeners: HttpListener[] = [];
  for (const service of contractNames) {
    const config = serviceConfigOf({ check: "none" });
    const report = { exchange: () => {}, error: (error: unknown) => assert.fail(String(error)) };
    const rules = { check: config.check, merchantId: undefined, validate: undefined };
    const listener = new HttpListener({ contract: contracts[service], config, rules, handler, report });
    ports.set(service, (await listener.listen()).port);
    listeners.push(listener);
  }
  const ask = async (service: ContractName, each: Ask) => {
    const body = bodyOf(service, each);
    const get = body === "" && each.route === "/supported_operations";
    const response = await fetch(`http://127.0.0.1:${ports.get(service)}${each.route}`, get ? {} : { method: "POST", body });
    assert.equal(response.status, 200);
    return response.text();
  };
  const close = async () => {
    stop();
    await Promise.all(listeners.map((each) => each.close()));
  };
  return { emulator, ask, stop: close, ports, answered };
}
