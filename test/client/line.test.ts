import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import { ClientLine, type LineClientOptions } from "../../src/client/client-line.ts";
import { NotSentError, RejectedError, UnknownError } from "../../src/client/errors.ts";
import { createClient as createHttpClient, type ClientOptions as HttpOptions } from "../../src/client/http-client.ts";
import { type ClientOptions, createClient } from "../../src/client/line-client.ts";
import type { Settled } from "../../src/client/settle-types.ts";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, contractNames, type Handler, type Reply } from "../../src/core/call.ts";
import { memoryTransport } from "../../src/device/memory-transport.ts";
import { OpenError } from "../../src/device/transport.ts";
import { Emulator } from "../../src/lab/emulator/emulator.ts";
import { LineListener } from "../../src/line/listener.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { merchantId } from "./scripted.ts";

/**
 * Tests src/client/client-line.ts, src/client/line-client.ts, src/client/http-client.ts.
 *
 * A terminal on a line in memory; `asked` answers, or doesn't.
 */
function terminal(t: TestContext, asked: Handler) {
  const time = new VirtualTime();
  const { near, far, unplug } = memoryTransport(0);
  const config = { ...lineDefaults, path: "memory" };
  const listener = new LineListener({
    config,
    open: far,
    services: contractNames.map((service) => ({ contract: contracts[service], handler: (call) => asked(call) })),
    report: { discard: () => {}, state: () => {} },
  });
  listener.start();
  t.after(async () => {
    const stopped = listener.stop();
    await time.until(() => false, 1_000);
    await stopped;
    time.restore();
  });
  const options: LineClientOptions = { path: "memory", open: near };
  /** What becomes of a promise while time goes on. */
  const outcome = async <T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> => {
    let settled: PromiseSettledResult<T> | undefined;
    void Promise.allSettled([promise]).then(([one]) => {
      settled = one;
    });
    // Signing runs in a thread, which no clock of a test moves: while nothing else is due, the process is let run
    for (let hops = 0; settled === undefined && hops < 100_000; hops++) await time.until(() => settled !== undefined);
    assert.ok(settled !== undefined);
    return settled;
  };
  const connect = async (more: Partial<LineClientOptions> = {}) => {
    const transport = new ClientLine({ ...options, ...more }, { fiscal: { merchantId } });
    const client = createClientOver(transport, { fiscal: { merchantId } });
    t.after(async () => {
      await outcome(client.close());
    });
    return client;
  };
  return { time, outcome, connect, options, unplug };
}

const emulated = (emulator: Emulator) => async (call: Call) => emulator.answer(call).reply;
const never = () => new Promise<Reply>(() => {});
const sale = { pay_id: "P-1", amount: 1000, currency_name: "AZN" };
const isError = (settled: PromiseSettledResult<unknown>, kind: new (...given: never[]) => Error) => {
  assert.ok(settled.status === "rejected" && settled.reason instanceof kind, JSON.stringify(settled));
  return settled.reason;
};

test("a client over a line asks all three services, and signs what is fiscal", async (t) => {
  const { connect, outcome } = terminal(t, emulated(new Emulator({ merchantId })));
  const client = await connect();
  const answers = [
    await outcome(client.bank.supportedOperations()),
    await outcome(client.bank.sale(sale)),
    await outcome(client.qr.checkConnection()),
    await outcome(client.fiscal.supportedOperations()),
    await outcome(client.fiscal.checkShift()),
  ];
  assert.deepEqual(
    answers.map((each) => each.status),
    answers.map(() => "fulfilled"),
  );
  const refused = isError(await outcome(client.bank.check({ pay_id: "P-2" })), RejectedError);
  assert.ok(refused instanceof RejectedError && refused.code === -15);
});

test("a client over a line settles an operation", async (t) => {
  const { connect, outcome } = terminal(t, emulated(new Emulator({ merchantId })));
  const client = await connect({ services: ["bank"] });
  const settled = await outcome(client.bank.settle("sale", sale));
  assert.ok(settled.status === "fulfilled");
  assert.equal(settled.value.result, "approved");
});

test("a client over a line takes a terminal that doesn't answer for unknown", async (t) => {
  const emulator = new Emulator({ merchantId });
  const { connect, outcome } = terminal(t, (call) => (call.route === "/sale" ? never() : emulated(emulator)(call)));
  const client = await connect({ services: ["bank"] });
  const error = isError(await outcome(client.bank.sale(sale)), UnknownError);
  assert.match(error.message, /the terminal did not answer within 30 s/);
});

test("a client over a line takes a line that is lost mid-exchange for unknown, and one that is away for not-sent", async (t) => {
  const emulator = new Emulator({ merchantId });
  const lost = terminal(t, async (call) => {
    if (call.route !== "/sale") return emulated(emulator)(call);
    lost.unplug(60_000);
    return never();
  });
  const client = await lost.connect({ services: ["bank"] });
  isError(await lost.outcome(client.bank.sale(sale)), UnknownError);
  const error = isError(await lost.outcome(client.bank.sale(sale)), NotSentError);
  assert.ok(error instanceof NotSentError && error.passing && error.retryAfterMs !== undefined);
});

test("a client over a line never sends a waiting call whose caller has left", async (t) => {
  const routes: string[] = [];
  const emulator = new Emulator({ merchantId });
  const { connect, outcome, time } = terminal(t, (call) => {
    routes.push(call.route);
    return call.route === "/check" ? never() : emulated(emulator)(call);
  });
  const client = await connect({ services: ["bank"] });
  const first = outcome(client.bank.check({ pay_id: "P-1" }));
  await time.until(() => routes.includes("/check"), 10_000);
  const leaving = new AbortController();
  const second = client.bank.sale(sale, { signal: leaving.signal });
  leaving.abort();
  await assert.rejects(second, NotSentError);
  isError(await first, UnknownError);
  await time.advance(60_000);
  assert.ok(!routes.includes("/sale"));
});

test("a client over a line says not-sent once it is closed, and why", async (t) => {
  const { connect, outcome } = terminal(t, emulated(new Emulator({ merchantId })));
  const client = await connect({ services: ["bank"] });
  await outcome(client.close());
  const error = isError(await outcome(client.bank.sale(sale)), NotSentError);
  assert.match(
    error.message,
    /: the client was closed\. Nothing was sent: it may be sent again, unless an earlier try is in doubt$/,
  );
});

test("a client over a line says not-sent for a service that the line hasn't", async (t) => {
  const { connect, outcome } = terminal(t, never);
  const client = await connect({ services: ["bank"] });
  isError(await outcome(client.qr.checkConnection()), NotSentError);
});

test("createClient() over a line opens it with its first call, and says why it can't be opened", async (t) => {
  let openings = 0;
  const client = createClient({
    line: {
      path: "/dev/none",
      services: ["bank"],
      open: async () => {
        openings++;
        throw new OpenError("there is no device /dev/none: check the cable and the power");
      },
    },
  });
  t.after(() => client.close());
  assert.equal(openings, 0);
  await assert.rejects(client.bank.sale(sale), (error) => error instanceof NotSentError && /no device/.test(error.message));
  assert.ok(openings > 0);
});

test("createClient() over a line says not-sent while it can't be set up, and tries anew with the next call", async (t) => {
  const ids = [() => Promise.reject(new Error("no such file")), () => Promise.resolve(merchantId)];
  let looked = 0;
  const client = createClient({
    fiscal: { merchantId: () => ids[looked++]?.() ?? merchantId },
    line: { path: "/dev/none", services: ["bank"], open: () => Promise.reject(new OpenError("there is no device")) },
  });
  t.after(() => client.close());
  await assert.rejects(client.bank.sale(sale), (error) => error instanceof NotSentError && /no such file/.test(error.message));
  await assert.rejects(client.bank.sale(sale), (error) => error instanceof NotSentError && /no device/.test(error.message));
});

test("createClient() over a line that was never used closes at once", async () => {
  await createClient({ line: { path: "/dev/none" } }).close();
});

test("createClient() of posline/line refuses a line without a path, and that of posline refuses a line", () => {
  const message = 'Cannot make a client: line has no path: use { path: "/dev/ttyUSB0" }';
  for (const line of ["/dev/ttyUSB0", {}, { path: 5 }, undefined, null]) {
    assert.throws(() => createClient({ line } as unknown as ClientOptions), { name: "TypeError", message });
  }
  const line = { path: "/dev/ttyUSB0" };
  assert.throws(() => createHttpClient({ line } as unknown as HttpOptions), { name: "TypeError", message: /"posline\/line"/ });
  assert.throws(() => createClient("/dev/ttyUSB0" as unknown as ClientOptions), { message: /the options are not an object$/ });
});

test("createClient() refuses an option of its line that is misspelt: the line would have another speed than was meant", () => {
  const line = { path: "/dev/ttyUSB0", baudrate: 9600 };
  assert.throws(() => createClient({ line } as unknown as ClientOptions), {
    name: "TypeError",
    message: /^Cannot make a client: line has no option baudrate: use path, services, baudRate, /,
  });
});

test("createClient() without a line goes over HTTP to the contracts' own ports", async () => {
  const urls: string[] = [];
  const client = createHttpClient({
    fetch: async (url) => {
      urls.push(String(url));
      return new Response('{"status":"success","data":{"systems":[]}}');
    },
    fiscal: { merchantId },
  });
  await client.fiscal.checkShift();
  await client.bank.terminate();
  await client.qr.checkConnection();
  const base = "http://127.0.0.1";
  assert.deepEqual(urls, [`${base}:8008/check_shift`, `${base}:8888/terminate`, `${base}:8887/check_connection`]);
});

test("a call that is left while the line is opening is not-sent", async () => {
  let looked = false;
  const client = createClient({
    fiscal: {
      merchantId: () => {
        looked = true;
        return new Promise<string>(() => {});
      },
    },
    line: { path: "/dev/none", services: ["bank"] },
  });
  const leaving = new AbortController();
  const call = client.bank.sale({ pay_id: "P-1", amount: 1500, currency_name: "AZN" }, { signal: leaving.signal });
  while (!looked) await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  await assert.rejects(call, NotSentError);
});

test("LineTransport.send() with a signal that is aborted already, or withdrawn, is not-sent", async (t) => {
  const open = () => Promise.reject(new OpenError("there is no device"));
  const transport = new ClientLine({ path: "/dev/none", services: ["bank"], open }, {});
  t.after(() => transport.close());
  const request = { service: "bank", contract: "bank", route: "/sale", method: "POST", body: "{}" } as const;
  const left = await transport.send(request, AbortSignal.abort());
  const withdrawn = await transport.send({ ...request, withdrawn: AbortSignal.abort() }, new AbortController().signal);
  for (const { outcome, failure } of [left, withdrawn]) {
    assert.equal(outcome, "not-sent");
    assert.match(failure ?? "", /^cancelled before it was sent$/);
  }
});

test("a client over a line ends a plain refusal at once: nothing was begun, and no gateway says so of what it lost", async (t) => {
  const answers: Readonly<Record<string, object>> = {
    "/deposit": { status: "error", code: 4, message: "amount mismatch" },
    "/check_status": { status: "error", code: 9 },
    "/sale": { status: "error", code: -21, message: "cancelled by user" },
    "/check": { status: "error", code: -15 },
  };
  const emulator = new Emulator({ merchantId });
  const { connect, outcome, time } = terminal(t, async (call) => {
    const answer = answers[call.route];
    if (answer === undefined) return emulator.answer(call).reply;
    return { payload: [Buffer.from(JSON.stringify(answer))], status: "error", code: undefined, queueMs: 0, lineMs: 0 };
  });
  const client = await connect();
  await outcome(client.bank.terminals());
  const ended = async (settling: Promise<Pick<Settled<string, unknown>, "result" | "code" | "steps">>) => {
    const beganMs = time.nowMs;
    const settled = await outcome(settling);
    assert.ok(settled.status === "fulfilled");
    const { result, code, steps } = settled.value;
    assert.ok(time.nowMs - beganMs < 3_000, `it took ${time.nowMs - beganMs} ms`);
    return [result, code, steps.length];
  };
  assert.deepEqual(await ended(client.fiscal.settle("deposit", { amount: 100 })), ["failed", 4, 2]);
  assert.deepEqual(await ended(client.bank.settle("sale", { amount: 100, currency_name: "AZN" })), ["failed", -21, 2]);
});
