import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createHttpClient } from "../../src/client/client.ts";
import { readJournal } from "../../src/journal/reader.ts";
import { joinOperations } from "../../src/journal/record.ts";
import { ask, BridgeProcess, type HttpAnswer, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { Pty } from "../support/pty.ts";
import { until } from "../support/until.ts";

/**
 * A payment by QR is given back with what posline itself gave its till (qr.md, Endpoints: data.trans must be saved and used), on each way on
 * which posline follows it: its one call ends with /check's answer, which has no `trans`. The bridge is killed while the customers pay.
 */

const scratch = scratchFolder();
const [near, far] = [join(scratch.path, "bridge"), join(scratch.path, "emulator")];
const ends: { readonly near: Pty; readonly far: Pty } = {
  near: new Pty((bytes) => void ends.far.write(bytes)).linkAt(near),
  far: new Pty((bytes) => void ends.near.write(bytes)).linkAt(far),
};
const emulator = new PoslineProcess(["emulate", "--line", far, "--no-http", "--no-admin"]);
const journal = join(scratch.path, "journal");
mkdirSync(journal);
let port = 0;
let bridge: BridgeProcess;

/** Starts the bridge, the first time or again. */
async function start(): Promise<void> {
  const config = {
    lines: { till: { path: near, queueWaitMs: 5_000 } },
    services: { qr: { line: "till", port } },
    journal: { folder: journal },
  };
  bridge = new BridgeProcess(config, { env: { POSLINE_QR_PORT: String(port) } });
  await bridge.port("qr");
}

before(async () => {
  [port = 0] = await freePorts(1);
  await start();
  await bridge.state("till", "idle");
});
after(async () => {
  await bridge.stop("SIGKILL");
  await emulator.ended("SIGKILL");
  ends.near.unplug();
  ends.far.unplug();
});

/** A code of QRPAY, which names payments by itself, that is paid after six questions or 12 s; PALM takes the till's own name. */
const codeOf = (payId: string, system: "QRPAY" | "PALM", amount = 1566) => ({
  pay_id: payId,
  amount,
  currency: "978",
  currency_name: "EUR",
  pay_system: system,
});

type Code = ReturnType<typeof codeOf>;

/** What a till knows of a payment that was paid. */
type Paid = { readonly trans: string | undefined; readonly rrn: unknown };

const url = () => `http://127.0.0.1:${port}`;
const wait = { Prefer: "wait=60" };
const prefer = (code: Code) => ask(port, "POST", "/showqrcode", JSON.stringify(code), wait);
const paidIn = ({ headers, text }: HttpAnswer): Paid => ({
  trans: headers["x-posline-trans"],
  rrn: JSON.parse(text).data?.rrn,
});

async function refund(code: Code, { trans, rrn }: Paid): Promise<string> {
  const { pay_id, currency, pay_system } = code;
  const body = { trans, pay_id, rrn, amount: 500, currency, pay_system };
  return JSON.parse((await ask(port, "POST", "/refund", JSON.stringify(body))).text).status;
}

/** One call that ends: by the header, sent again after it failed; by the client, with and without the bridge; from a shell. */
const ways: Readonly<Record<string, (code: Code) => Promise<Paid>>> = {
  "Prefer: wait": async (code) => {
    const first = bridge;
    await assert.rejects(prefer(code));
    await until(() => bridge !== first, "the next bridge");
    await bridge.port("qr");
    return paidIn(await prefer(code));
  },
  "the client's settle": (code) => settled(code, "client"),
  "the client's settle by the bridge": (code) => settled(code, "bridge"),
  "posline call --wait": (code) => called(code),
  "posline call --wait --by-bridge": (code) => called(code, "--by-bridge"),
};

async function settled(code: Code, settle: "client" | "bridge"): Promise<Paid> {
  const client = createHttpClient({ qr: { url: url() }, settle });
  const { result, data, trans, token } = await client.qr.settle("showqrcode", code);
  assert.equal(result, "approved");
  assert.equal(token.trans, trans);
  return { trans, rrn: data?.rrn };
}

async function called(code: Code, ...flags: readonly string[]): Promise<Paid> {
  const file = join(scratch.path, `${code.pay_id}.token`);
  const first = bridge;
  const args = ["call", "qr", "showqrcode", JSON.stringify(code), "--wait", "--token-file", file, "--url", url(), ...flags];
  let call = new PoslineProcess(args);
  if ((await call.ended()) === 75) {
    // Nothing listened right after its one request was lost: it waits for nobody who has to start something.
    await until(() => bridge !== first, "the next bridge");
    await bridge.port("qr");
    call = new PoslineProcess(["call", "--resume", `@${file}`]);
    await call.ended();
  }
  assert.equal(call.child.exitCode, 0, call.stderr);
  const { trans, data } = JSON.parse(call.stdout);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).trans, trans);
  return { trans, rrn: data.rrn };
}

/** Payments whose code is shown, as the journal has it. */
const shown = async () =>
  joinOperations((await readJournal(journal)).records).filter(({ ending }) => ending?.learned !== undefined).length;

test("a payment by QR on each way, with a kill of the bridge in the midst, is refunded by the trans that was given, and by no other", async () => {
  const payments = Object.entries(ways).flatMap(([way, pay], at) =>
    (["QRPAY", "PALM"] as const).map((system) => ({ way, pay, code: codeOf(`${system}-${at}`, system) })),
  );
  const paying = payments.map(({ pay, code }) => pay(code));
  // Who waits for one that fails first must not leave the others unheard.
  for (const each of paying) each.catch(() => {});
  await until(async () => (await shown()) === payments.length, "all codes to be shown");
  await bridge.ended("SIGKILL");
  await start();
  for (const [at, { way, code }] of payments.entries()) {
    const paid = await paying[at];
    assert.ok(paid?.trans !== undefined, `${way}: ${code.pay_system}`);
    assert.match(paid.trans, code.pay_system === "PALM" ? new RegExp(`^${code.pay_id}$`) : /^EMU\d{12}$/, way);
    assert.equal(await refund(code, { ...paid, trans: "EMU999999999999" }), "error", `${way}: another trans`);
    assert.equal(await refund(code, paid), "success", way);
  }
});
