import assert from "node:assert/strict";
import { checkTarget, HttpTransport } from "../../src/client/http-transport.ts";
import { RemoteService } from "../../src/client/remote-service.ts";
import { resume, settle } from "../../src/client/settle.ts";
import type { Settled, SettleEvent } from "../../src/client/settle-types.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { isGoodEnd, isOperationEnd } from "../../src/core/followed.ts";
import type { FullTerminal } from "./full-terminal.ts";
import { clientKey, isAllowed, isGood, operationOf, type Stand } from "./full-trade.ts";
import { merchantId } from "./request-body.ts";

/**
 * Tills with the typed client in the full worlds: each follows one operation of a key of its own, by itself or by the bridge, dies, and
 * takes it up again with the token that it stored.
 */

/** A service with its terminal, as tills with the client see it. */
export interface ClientTill {
  readonly service: string;
  readonly terminal: FullTerminal;
  /** Whether it names a payment itself (qr). */
  readonly names: boolean;
  /** Reaches the process that runs, about what stands under a key. */
  fetchAbout(key: string): typeof fetch;
}

export interface FullClientsOptions {
  readonly tills: readonly ClientTill[];
  readonly amount: number;
  /** A sale may have gone out without a record, of which the bridge can know nothing. */
  mayRelayUnrecorded(): boolean;
  say(text: string): void;
  fail(error: unknown): void;
}

export interface ClientStep {
  readonly service: number;
  readonly key: number;
  /** Whether it takes back what was sold under the key. */
  readonly takesBack: boolean;
  readonly isByBridge: boolean;
  readonly windowS: number;
}

/** The tills with the client of one world. */
export class FullClients {
  readonly #options: FullClientsOptions;
  readonly #clients = new Map<string, FullClient>();
  /** What each result says, to be held against the ledger. */
  readonly #checks: (() => void)[] = [];

  constructor(options: FullClientsOptions) {
    this.#options = options;
  }

  get areRunning(): boolean {
    return [...this.#clients.values()].some(({ isRunning }) => isRunning);
  }

  /** One begins its operation, or takes it up again, unless it is about it. */
  follow({ service: index, key: number, takesBack, isByBridge, windowS }: ClientStep): void {
    const till = this.#options.tills[index];
    if (till === undefined) return;
    const key = clientKey(number);
    const { sale, back } = till.terminal.trade;
    const path = takesBack ? back : sale;
    const name = nameOf(till, path, key);
    // Nobody takes back what isn't sold yet: what is asked before would be outdated then.
    if (takesBack && this.#clients.get(nameOf(till, sale, key))?.isSold !== true) return;
    const client = this.#clients.get(name) ?? new FullClient({ till, path, key, isByBridge, amount: this.#options.amount });
    this.#clients.set(name, client);
    if (client.isRunning) return;
    client.run(windowS * 1_000).then(
      (settled) => {
        if (settled === undefined) return;
        client.isSold ||= isOperationEnd(settled.result) && isGoodEnd(settled.result);
        this.#ended(client, name, settled);
      },
      (error: unknown) => this.#options.fail(error),
    );
  }

  /** All of a key. */
  die({ service: index, key: number }: Pick<ClientStep, "service" | "key">): void {
    const till = this.#options.tills[index];
    if (till === undefined) return;
    const { sale, back } = till.terminal.trade;
    for (const path of [sale, back]) this.#clients.get(nameOf(till, path, clientKey(number)))?.die();
  }

  /** Whether this sale's client shows a code anew where the first may be lost, and can't be asked about (qr.md, Flow rules 3). */
  mayShowAgain(name: string): boolean {
    return this.#clients.get(name)?.mayShowAgain === true;
  }

  /** What was said holds for ever: for what is carried out behind it as well. */
  check(): void {
    for (const each of this.#checks) each();
  }

  #ended(client: FullClient, name: string, { result, data, trans }: Settled): void {
    this.#options.say(`client ${name}: ${result} ${JSON.stringify(data)} ${trans ?? ""}`);
    const check = () => {
      if (client.isByBridge && this.#options.mayRelayUnrecorded()) return;
      assert.ok(
        client.isSo(result),
        `the client of ${name} was told ${result}, and the ledger has ${client.stands.join(", ")}`,
      );
      const isPaid = client.mayShowAgain && result === "approved";
      assert.ok(
        trans === undefined ? !isPaid || client.isByBridge : client.hasId(trans, isPaid),
        `the client of ${name} was told ${result} and to give it back by ${trans ?? "nothing"}`,
      );
      if (!namesItself(result)) return;
      for (const field of idFields) {
        const id = data?.[field];
        assert.ok(
          id === undefined || client.hasId(String(id)),
          `the client of ${name} was told ${result} of another's ${field} ${id}`,
        );
      }
    };
    this.#checks.push(check);
    try {
      check();
    } catch (error) {
      this.#options.fail(error);
    }
  }
}

/** Whether the data of a result is the operation's own; an error's may be another's. */
const namesItself = (result: Settled["result"]) => isOperationEnd(result) && (isGoodEnd(result) || result === "reversed");

/** Where the contracts' answers name a transaction, document or payment, and this world's terminals do. */
const idFields = ["txn_id", "documentID", "rrn", "trans"] as const;

const nameOf = ({ service }: ClientTill, path: string, key: string) => `${service} ${path} ${key}`;

interface ClientOptions {
  readonly till: ClientTill;
  readonly path: string;
  readonly key: string;
  readonly isByBridge: boolean;
  readonly amount: number;
}

class FullClient {
  readonly isByBridge: boolean;
  readonly #till: ClientTill;
  readonly #path: string;
  /** As its terminal's ledger has it. */
  readonly #operation: string;
  readonly #body: object;
  readonly #remote: RemoteService;
  /** It ended well. */
  isSold = false;
  /** Of the till's process. */
  #life: AbortController | undefined;
  /** As its storage has it. */
  #token: string | undefined;

  constructor({ till, path, key, isByBridge, amount }: ClientOptions) {
    this.#till = till;
    this.#path = path;
    this.isByBridge = isByBridge;
    const { trade } = till.terminal;
    this.#operation = operationOf(trade, path, key, amount);
    this.#body = trade.body(path, key, amount, till.names ? `own-${key}` : undefined);
    const { service: name } = till;
    const transport = new HttpTransport({ [name]: checkTarget(name, "http://127.0.0.1", undefined) }, till.fetchAbout(key));
    const contract = contracts[trade.contract];
    this.#remote = new RemoteService({ contract, name, transport, merchantId, timeoutMs: undefined });
  }

  get isRunning(): boolean {
    return this.#life !== undefined;
  }

  get mayShowAgain(): boolean {
    const { trade } = this.#till.terminal;
    return trade.contract === "qr" && this.#path === trade.sale;
  }

  /** How its operations stand in the ledger. */
  get stands(): readonly Stand[] {
    return this.#till.terminal.standsOf(this.#path, this.#operation);
  }

  /** @param isPaid Among those of it that were paid. */
  hasId(id: string, isPaid = false): boolean {
    const { terminal } = this.#till;
    return terminal.hasId(this.#path, this.#operation, id, isPaid ? isGood : undefined);
  }

  isSo(result: Settled["result"]): boolean {
    const { terminal } = this.#till;
    if (result === "unknown") return true;
    if (result === "not-sent") return !terminal.heard.includes(`${this.#path} ${this.#operation}`);
    if (result === "declined" || result === "failed") return !this.stands.some((stand) => isGood(stand));
    return isAllowed(result, this.stands) || (result === "closed" && terminal.isCopied(this.#path, this.#operation));
  }

  /** Begins the operation, or takes it up again. @returns its end, unless the till died. */
  async run(windowMs: number): Promise<Settled | undefined> {
    const life = new AbortController();
    this.#life = life;
    const { service } = this.#till;
    const options = {
      windowMs,
      signal: life.signal,
      onProgress: ({ token }: SettleEvent) => {
        if (!life.signal.aborted) this.#token = JSON.stringify(token);
      },
    };
    const settled =
      this.#token === undefined
        ? await settle(this.#remote, this.#path, this.#body, options, this.isByBridge)
        : await resume({ [service]: this.#remote }, JSON.parse(this.#token), options);
    if (life.signal.aborted) return undefined;
    this.#life = undefined;
    return settled;
  }

  die(): void {
    this.#life?.abort();
    this.#life = undefined;
  }
}
