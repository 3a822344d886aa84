import { openLine } from "../../src/app/client-line.ts";
import { type Client, createClientOver, createHttpClient } from "../../src/client/client.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { memoryTransport } from "../../src/device/memory-transport.ts";
import { type Connection, msPerByte, OpenError, type OpenTransport } from "../../src/device/transport.ts";
import { faultyTransport } from "../../src/emulator/faults/faulty-transport.ts";
import { lineEndpoint } from "../../src/emulator/line-endpoint.ts";
import { HttpListener } from "../../src/http/listener.ts";
import { lineCaller } from "../../src/line/caller.ts";
import { LineListener } from "../../src/line/listener.ts";
import type { Settled, SettleEvent, SettleOptions } from "../../src/settle/types.ts";
import { configOf, lineOver } from "../line/lines.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { type Followed, methodOf } from "./followed.ts";
import { merchantId } from "./scripted.ts";
import type { Terminal } from "./terminal.ts";

/**
 * A till, what carries its requests, and the emulator at the end of a line: over HTTP and a bridge, or over a line of the till's
 * own. Bridges and tills die in the midst and start anew; the terminal goes on.
 */

/** A process of the till's. */
interface Life {
  readonly client: Client;
  readonly gone: AbortController;
}

export interface World {
  readonly terminal: Terminal;
  /** The till's process; a new one if the last died. */
  life(): Promise<Life>;
  /** The till's process dies as by a power cut: it reads and writes nothing any more. */
  kill(): void;
  /** The bridge stops at once and starts anew; the terminal does where there is no bridge, and remembers. */
  restart(): void;
  end(): Promise<void>;
}

/** What outlives bridges and tills: the wire, and the terminal at its far end. */
function wire(terminal: Terminal, baudRate: number, services: readonly ContractName[]) {
  const config = configOf({ baudRate });
  const pace = msPerByte(config);
  const { near, far, unplug } = memoryTransport(pace);
  const { handler, stepsFor } = lineEndpoint(terminal, config.crc16);
  const open = faultyTransport({ open: far, stepsFor, msPerByte: pace, unplug });
  const start = () => {
    const listener = new LineListener({
      config,
      open,
      services: services.map((service) => ({ contract: contracts[service], handler })),
      report: { discard: () => {}, state: () => {} },
    });
    listener.start();
    return listener;
  };
  let listener = start();
  let restarted = Promise.resolve();
  const restart = () => {
    restarted = restarted
      .then(() => listener.stop())
      .then(() => {
        listener = start();
      });
  };
  return { near, restart, stop: () => restarted.then(() => listener.stop()) };
}

/** A device as one process has it: once that is dead, nothing of it reaches the device. */
function mortal(open: OpenTransport): { readonly open: OpenTransport; die(): void } {
  let alive = true;
  let current: Connection | undefined;
  const opened: OpenTransport = async (handler) => {
    if (!alive) throw new OpenError("its process is dead");
    const below = await open(handler);
    current = below;
    return {
      get wroteBytes() {
        return below.wroteBytes;
      },
      write: (frame) => {
        if (alive) below.write(frame);
      },
      // The device may be another's by then
      close: async () => {
        if (alive) await below.close();
      },
    };
  };
  const die = () => {
    alive = false;
    void current?.close();
  };
  return { open: opened, die };
}

/** A till with a line of its own: client, line, terminal. */
export function lineWorld(terminal: Terminal, baudRate: number, services: readonly ContractName[] = contractNames): World {
  const far = wire(terminal, baudRate, services);
  const dead: Client[] = [];
  let current: { readonly life: Promise<Life>; die(): void } | undefined;
  const begin = () => {
    const device = mortal(far.near);
    const gone = new AbortController();
    // An idle line's own clock would let an hour pass while a request is signed, in a thread that the test's clock doesn't move.
    const transport = openLine(
      { path: "memory", baudRate, idleProbeMs: 0, open: device.open, services },
      { fiscal: { merchantId } },
    );
    const life = transport.then((each) => ({ client: createClientOver(each, { fiscal: { merchantId } }), gone }));
    const die = () => {
      device.die();
      gone.abort();
      void life.then(({ client }) => dead.push(client));
    };
    return { life, die };
  };
  const kill = () => {
    current?.die();
    current = undefined;
  };
  return {
    terminal,
    life: () => {
      current ??= begin();
      return current.life;
    },
    kill,
    restart: far.restart,
    end: async () => {
      await (await current?.life)?.client.close();
      await Promise.all(dead.map((client) => client.close()));
      await far.stop();
    },
  };
}

export interface HttpWorldOptions {
  readonly service: ContractName;
  readonly terminal: Terminal;
  /** Milliseconds for every route; undefined: the contract's. */
  readonly replyTimeoutMs: number | undefined;
}

/** A till before a bridge: client, HTTP, the bridge's parts, line, terminal. */
export async function httpWorld({ service, terminal, replyTimeoutMs }: HttpWorldOptions): Promise<World> {
  const baudRate = 4_000_000;
  const far = wire(terminal, baudRate, [service]);
  const bridge = (port: number) => startBridge({ service, near: far.near, baudRate, replyTimeoutMs, port });
  let current = await bridge(0);
  const { port } = current;
  let restarted = Promise.resolve();
  let life: Life | undefined;
  const services = { [service]: { url: `http://127.0.0.1:${port}`, ...(service === "fiscal" && { merchantId }) } };
  return {
    terminal,
    life: async () => {
      life ??= { client: createHttpClient(services), gone: new AbortController() };
      return life;
    },
    kill: () => {
      life?.gone.abort();
      life = undefined;
    },
    restart: () => {
      restarted = current.stop().then(async () => {
        current = await bridge(port);
      });
    },
    end: async () => {
      await restarted;
      await current.stop();
      await far.stop();
    },
  };
}

interface BridgeOptions {
  readonly service: ContractName;
  readonly near: OpenTransport;
  readonly baudRate: number;
  readonly replyTimeoutMs: number | undefined;
  readonly port: number;
}

async function startBridge({ service, near, baudRate, replyTimeoutMs, port }: BridgeOptions) {
  const contract = contracts[service];
  const { line } = lineOver(near, { services: [service], config: { baudRate }, merchantId });
  const timeouts = replyTimeoutMs === undefined ? [] : contract.routes.map(({ path }) => [path, replyTimeoutMs] as const);
  const config = serviceConfigOf({ port });
  const listener = new HttpListener({
    contract,
    config,
    rules: { check: config.check, merchantId, validate: undefined },
    handler: lineCaller({ contract, line, replyTimeoutMs: Object.fromEntries(timeouts), merchantId }),
    report: {
      exchange: () => {},
      error: (error) => {
        throw error;
      },
    },
  });
  const address = await listener.listen();
  line.start();
  const stop = async () => {
    const closed = listener.close();
    await line.stop(0);
    await closed;
  };
  return { port: address.port, stop };
}

/** Follows an operation over as many processes as die on the way, each taking up the text that the last one stored. */
export async function follow(world: World, operation: Followed, body: object, options: SettleOptions): Promise<Settled> {
  let stored: string | undefined;
  for (;;) {
    const { client, gone } = await world.life();
    const { signal } = gone;
    const onProgress = ({ token }: SettleEvent) => {
      if (!signal.aborted) stored = JSON.stringify(token);
    };
    // Any operation of any service: the types hold them apart, and this law is about all of them
    const settle = client[operation.service].settle as (...given: readonly unknown[]) => Promise<Settled>;
    const mine = { ...options, signal, onProgress };
    const settled =
      stored === undefined ? await settle(methodOf(operation), body, mine) : await client.resume(JSON.parse(stored), mine);
    if (!signal.aborted) return settled;
  }
}
