import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { signOf } from "../../src/envelope/sign.ts";
import { Guest, type Job } from "./guest.ts";
import { adapterById, Machine } from "./machine.ts";
import { labPackage } from "./packages.ts";
import { CabledTerminal, merchantId } from "./terminal.ts";

/**
 * A POS box: the machine, what is done inside it, and the terminal on its cable, with posline installed in it. Whatever asks posline
 * does so from inside the box, as a till would.
 */

/** Ports of the services in the box. */
export const ports = { fiscal: 8008, bank: 8888, qr: 8887 } as const;

/** How a call of a till's ended. */
export interface Called {
  /** Of HTTP; 0 when no answer came. */
  readonly status: number;
  /** What posline says became of it. */
  readonly outcome: string;
  readonly body: Buffer;
  /** Milliseconds by the box's own monotonic clock. */
  readonly ms: number;
}

/** What systemd and the kernel say of the service's process. */
export interface Vitals {
  readonly pid: number;
  /** How often systemd has restarted it. */
  readonly restarts: number;
  readonly descriptors: number;
  /** Memory of its own, in kB. */
  readonly rssAnonKb: number;
}

/** What the journal says of an operation. */
export type Recorded = { readonly outcome: string; readonly result?: string | undefined };

/** Milliseconds after which a long answer is coming in: a part of what it takes. */
const comingInMs = 500;

export const saleOf = (key: string, amount = 1500) => JSON.stringify({ pay_id: key, amount, currency_name: "EUR" });
export const checkOf = (key: string) => JSON.stringify({ pay_id: key });

/** A request of the fiscal service as a till writes it. */
export function fiscalForm(json: object): string {
  const data = Buffer.from(JSON.stringify(json)).toString("base64");
  return `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, merchantId))}`;
}

export class Box {
  readonly machine: Machine;
  readonly guest: Guest;
  readonly terminal: CabledTerminal;

  /** @param isNetworked It reaches this machine at 10.0.2.2. */
  constructor(image: string, isNetworked = false) {
    this.machine = new Machine(image, isNetworked);
    this.guest = new Guest(this.machine);
    this.terminal = new CabledTerminal(this.machine.cable);
  }

  /** Installs the lab's commands; `dpkg -r posline-lab` takes them away. */
  async installLab(): Promise<void> {
    await this.guest.put(await labPackage(), "/root/posline-lab.deb");
    await this.guest.sh("dpkg -i /root/posline-lab.deb </dev/null", 300_000);
  }

  /** Starts a call, with curl, and gives its end when it has come. */
  async calling(service: keyof typeof ports, route: string, body: string): Promise<{ readonly ended: Promise<Called> }> {
    const url = `http://127.0.0.1:${ports[service]}${route}`;
    const told = "%{http_code} %{time_total} %header{x-posline-outcome}";
    // The body last, and as Base64, so that no byte of it is changed on its way here.
    const command = `f=$(mktemp); curl -s -o $f -w '${told}\\n' --data-raw '${body}' ${url}; base64 -w0 $f; rm $f`;
    const job = await this.guest.start(command, 240_000);
    return { ended: calledBy(job) };
  }

  async call(service: keyof typeof ports, route: string, body: string): Promise<Called> {
    return (await this.calling(service, route, body)).ended;
  }

  /** Begins a sale, and gives its end once the terminal was asked and keeps its answer back. */
  saleInFlight(key: string): Promise<{ readonly ended: Promise<Called> }> {
    this.terminal.hold("/sale");
    return this.#saleBegun(key);
  }

  /** Begins a sale, and gives its end while its answer is coming in. */
  async saleComingIn(key: string): Promise<{ readonly ended: Promise<Called> }> {
    this.terminal.lengthen();
    const sale = await this.#saleBegun(key);
    await sleep(comingInMs);
    return sale;
  }

  async #saleBegun(key: string): Promise<{ readonly ended: Promise<Called> }> {
    const asked = this.terminal.next("/sale");
    const call = await this.calling("bank", "/sale", saleOf(key));
    const early = call.ended.then(({ status, body }) => {
      throw new Error(`Cannot begin the sale: it was answered ${status} before the terminal was asked: ${body.toString()}`);
    });
    await Promise.race([asked, early]);
    early.catch(() => {});
    return call;
  }

  /** Asks what became of a sale until the box answers 200, and returns milliseconds until then. */
  async answers(key: string, limitMs = 60_000): Promise<number> {
    const began = performance.now();
    const url = `http://127.0.0.1:${ports.bank}/check`;
    const once = `[ "$(curl -s -o /dev/null -m 20 -w '%{http_code}' --data-raw '${checkOf(key)}' ${url})" = 200 ]`;
    await this.guest.sh(`until ${once}; do sleep 0.05; done`, limitMs);
    return performance.now() - began;
  }

  async vitals(unit = "posline.service"): Promise<Vitals> {
    const text = await this.guest.sh(
      `p=$(systemctl show -P MainPID ${unit}); r=$(systemctl show -P NRestarts ${unit}); ` +
        `echo $p $r $(ls /proc/$p/fd | wc -l) $(awk '/RssAnon/ { print $2 }' /proc/$p/status)`,
    );
    const [pid = 0, restarts = 0, descriptors = 0, rssAnonKb = 0] = text.split(" ").map(Number);
    assert.ok(pid > 0 && descriptors > 0, `the service has no process: ${text}`);
    return { pid, restarts, descriptors, rssAnonKb };
  }

  /** The milliseconds of processor time that processes have used since their start. */
  async cpuMs(...pids: readonly number[]): Promise<readonly number[]> {
    const files = pids.map((pid) => `/proc/${pid}/stat`).join(" ");
    const text = await this.guest.sh(`sed 's/.*) //' ${files} | awk '{ print ($12 + $13) * 10 }'`);
    return text.split("\n").map(Number);
  }

  /** Writes the configuration; it is the service's once it is reloaded or restarted. */
  async configure(line: Readonly<Record<string, unknown>> = {}, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    // What a setup wrote would take precedence.
    await this.guest.sh("rm -rf /etc/posline/posline.d");
    await this.guest.write("/etc/posline/posline.json", `${JSON.stringify(configOf(line, more), undefined, 2)}\n`);
  }

  /** Writes the fiscal service's secret to where the unit takes it from. */
  async entrust(): Promise<void> {
    const folder = "/etc/posline/credentials";
    await this.guest.sh(`mkdir -p ${folder} && (umask 077; echo ${merchantId} > ${folder}/merchant-id)`);
  }

  /** All as it should be at a proof's beginning: cable in, nothing held back, configured, running, and the line clean. */
  async ready(): Promise<void> {
    this.terminal.release();
    this.terminal.plug(115_200);
    await this.guest.until("ls -l /dev/serial/by-id", /POS0001/);
    await this.entrust();
    await this.configure();
    await this.guest.sh("systemctl reset-failed posline.service; systemctl restart posline.service");
    await this.answers("READY");
  }

  /** The adapter's device now: it gets another number if the one before was still open when it came back. */
  device(): Promise<string> {
    return this.guest.sh(`readlink -e ${adapterById}`);
  }

  /** The operations whose outcome the journal doesn't know: one a line, as the command prints them. */
  async unknown(): Promise<string> {
    const { code, out } = await this.guest.run("posline journal --unknown");
    assert.equal(code, 75, `posline journal --unknown: exit code ${code}\n${out}`);
    return out;
  }

  /**
   * Waits until the journal has none of these operations as unknown any more.
   * @returns milliseconds until then.
   */
  async settled(keys: readonly string[], limitMs = 60_000): Promise<number> {
    const began = performance.now();
    const commands = keys.map((key) => `posline journal --unknown --key '${key}' >/dev/null`);
    await this.guest.until(`${commands.join(" && ")}; echo $?`, /^0$/, limitMs);
    return performance.now() - began;
  }

  /** What the journal has of the operations under a key. */
  async recorded(key: string): Promise<readonly Recorded[]> {
    const lines = (await this.guest.sh(`posline journal --json --key '${key}'`)).split("\n");
    // Its shape is that of `posline journal --json`; a wrong one fails in the comparison.
    return lines.map((line) => JSON.parse(line) as Recorded).map(({ outcome, result }) => ({ outcome, result }));
  }

  /** The end of the service's log, or why there is none. */
  async log(lines = 40): Promise<string> {
    try {
      return (await this.guest.run(`journalctl -o cat -u posline -n ${lines} --no-pager`)).out;
    } catch (error) {
      return String(error);
    }
  }

  async remove(): Promise<void> {
    this.terminal.release();
    await this.terminal.unplug();
    await this.machine.remove();
  }
}

/**
 * Waits for a call's end, which must be this one.
 * @throws AssertionError with the answer's body.
 */
export async function endedAs(call: Called | Promise<Called> | undefined, status: number, outcome: string): Promise<Called> {
  const called = await call;
  assert.deepEqual([called?.status, called?.outcome], [status, outcome], called?.body.toString());
  // Compared above.
  return called as Called;
}

/** The configuration of the box: one terminal on one cable, with all three services. */
function configOf(line: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>>): object {
  return {
    lines: { till: { path: adapterById, baudRate: 115_200, ...line } },
    services: { fiscal: { line: "till" }, bank: { line: "till" }, qr: { line: "till" } },
    ...more,
  };
}

async function calledBy(job: Job): Promise<Called> {
  const { out } = await job.ended;
  const [told = "", body = ""] = out.split("\n");
  const [status = "0", seconds = "0", outcome = ""] = told.split(" ");
  return { status: Number(status), outcome, body: Buffer.from(body, "base64"), ms: Number(seconds) * 1000 };
}
