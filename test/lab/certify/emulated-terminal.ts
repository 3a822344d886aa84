import { lineDefaults } from "../../../src/config/limits.ts";
import { contracts } from "../../../src/contract/contracts.ts";
import { type Call, type ContractName, contractNames, type Reply } from "../../../src/core/call.ts";
import { memoryTransport } from "../../../src/device/memory-transport.ts";
import { type ConnectionHandler, msPerByte, type OpenTransport } from "../../../src/device/transport.ts";
import type { Sale } from "../../../src/lab/certify/asker.ts";
import { type CertifiedService, contractPace, type Pace } from "../../../src/lab/certify/asker.ts";
import { checks as allChecks, certify } from "../../../src/lab/certify/certification.ts";
import type { CertifyCheck } from "../../../src/lab/certify/check.ts";
import { Emulator } from "../../../src/lab/emulator/emulator.ts";
import { faultyTransport, type TransportStep } from "../../../src/lab/emulator/faults/faulty-transport.ts";
import { lineEndpoint } from "../../../src/lab/emulator/line-endpoint.ts";
import type { Judged } from "../../../src/lab/report/judgement.ts";
import { LineListener } from "../../../src/line/listener.ts";

/** The emulated terminal at the end of a line in memory, which may deviate from its contract in one way. */

export const merchantId = "MERCHANT-1";

/** A way to deviate. */
export interface Deviation {
  /** Answers a call in place of the emulator, which `answer` asks. */
  readonly answers?: (call: Call, answer: (call: Call) => Promise<Reply>) => Promise<Reply>;
  /** What goes out in place of a frame. */
  readonly writes?: (frame: Buffer) => readonly TransportStep[] | undefined;
  /** What is heard in place of the bytes that came; empty: nothing. */
  readonly hears?: (bytes: Buffer) => Buffer;
}

export interface TerminalOptions extends Deviation {
  /** Without one, bytes take no time. */
  readonly baudRate?: number;
}

/** Waits of a terminal in memory, which answers at once. The emulator gives up a frame that is cut short after 5 s. */
export const quickPace: Pace = {
  ...contractPace,
  presenceMs: 2_000,
  answerMsMax: 2_500,
  pollMs: 300,
  followMs: 9_000,
  cutMs: 5_500,
  idleMs: 4_000,
  quietMs: 60,
};

/** Makes the terminal; `stop` ends it. */
export function emulatedTerminal({ baudRate, answers, writes, hears }: TerminalOptions = {}): {
  readonly open: OpenTransport;
  readonly stop: () => Promise<void>;
} {
  const config = { ...lineDefaults, path: "emulated:", baudRate: baudRate ?? lineDefaults.baudRate };
  const pace = baudRate === undefined ? 0 : msPerByte(config);
  const { near, far } = memoryTransport(pace);
  const emulator = new Emulator({ merchantId });
  const { handler, stepsFor } = lineEndpoint(emulator, "arc");
  const listener = new LineListener({
    config,
    open: faultyTransport({
      open: hears === undefined ? far : heardAs(far, hears),
      stepsFor: (frame) => writes?.(Buffer.concat(frame)) ?? stepsFor(frame),
      msPerByte: pace,
    }),
    services: contractNames.map((name) => ({
      contract: contracts[name],
      handler: (call) => (answers === undefined ? handler(call) : answers(call, handler)),
    })),
    report: { discard: () => {}, state: () => {} },
  });
  listener.start();
  return { open: near, stop: () => listener.stop() };
}

function heardAs(open: OpenTransport, hears: (bytes: Buffer) => Buffer): OpenTransport {
  return async (handler) => {
    const space = Buffer.alloc(65_536);
    const between: ConnectionHandler = {
      ...handler,
      space: () => space,
      onBytes: (n) => {
        const bytes = hears(Buffer.from(space.subarray(0, n)));
        for (let from = 0; from < bytes.length; ) {
          const copied = bytes.copy(handler.space(), 0, from);
          from += copied;
          handler.onBytes(copied);
        }
      },
      onWritten: () => handler.onWritten(),
      onClosed: (reason) => handler.onClosed(reason),
    };
    return open(between);
  };
}

export const askedServices = (names: readonly ContractName[]): readonly CertifiedService[] =>
  names.map((name) => ({ contract: contracts[name], merchantId }));

export interface CertifyingOptions {
  readonly services?: readonly ContractName[];
  readonly checks?: readonly CertifyCheck[];
  readonly sale?: Sale;
  readonly baudRate?: number;
  readonly pace?: Pace;
}

export function certified(open: OpenTransport, options: CertifyingOptions = {}): Promise<readonly Judged[]> {
  const { services = contractNames, checks = allChecks, sale, baudRate = lineDefaults.baudRate, pace = quickPace } = options;
  return certify({
    config: { ...lineDefaults, path: "emulated:", baudRate },
    open,
    services: askedServices(services),
    checks: checks.filter(({ sells }) => sells !== true || sale !== undefined),
    sale,
    pace,
    // The same in each run, so that the bytes of its requests and their checksums are.
    keys: "certify-test",
    judged: () => {},
  });
}

/** The checks' names with what came of them, those that passed left out. */
export const notHeld = (judged: readonly Judged[]) =>
  judged.filter(({ verdict }) => verdict !== "passed").map(({ name, verdict, why }) => `${name} ${verdict}: ${why}`);
