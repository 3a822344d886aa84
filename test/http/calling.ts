import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName, Reply } from "../../src/core/call.ts";
import { Fault, type FaultKind } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { type HttpCallerOptions, httpCaller } from "../../src/http/caller.ts";
import { type Answer, Upstream } from "./upstream.ts";

/** Calls as a gateway makes them, and what they are made to: servers that end with their test. */

/** Milliseconds, for every route. */
export const replyTimeoutMs = 25_000;

const ends: (() => Promise<unknown>)[] = [];

/** Ends all servers, also after a test that failed. */
export async function endAll(): Promise<void> {
  for (const end of ends.splice(0)) await end();
}

export async function upstreamOf(answer?: Answer): Promise<Upstream> {
  const upstream = await Upstream.start(answer);
  ends.push(() => upstream.stop());
  return upstream;
}

/** A server that does with bare connections what a test says. */
export async function bareServer(take: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    take(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function callOf(service: ContractName, route: string, body = "", more: Partial<Call> = {}): Call {
  const pieces = body === "" ? [] : [Buffer.from(body)];
  return { service, contract: service, route, body: pieces, requestId: "id-1", key: "A-1", caller: new Presence(), ...more };
}

/** Bytes of an answer that are taken, unless a test says otherwise. */
export const replyBytesMax = 65_536;

export function callerOf(service: ContractName, upstream: string, more: Partial<HttpCallerOptions> = {}) {
  const contract = contracts[service];
  const timeouts = Object.fromEntries(contract.routes.map(({ path }) => [path, replyTimeoutMs]));
  return httpCaller({ contract, upstream, replyTimeoutMs: timeouts, replyBytesMax, apiKey: undefined, ...more });
}

export const textOf = ({ payload }: Reply) => Buffer.concat(payload).toString();

async function faultOf(asked: Promise<Reply>): Promise<Fault> {
  const end = await asked.catch((error: unknown) => error);
  assert.ok(end instanceof Fault, `${String(end)} is no fault`);
  return end;
}

export async function failsAs(asked: Promise<Reply>, kind: FaultKind, message: RegExp): Promise<Fault> {
  const fault = await faultOf(asked);
  assert.equal(fault.kind, kind, fault.message);
  assert.match(fault.message, message);
  return fault;
}
