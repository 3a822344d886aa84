import { contracts } from "../contract/contracts.ts";
import { settlingRules } from "../contract/settling.ts";
import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { isObject } from "../core/json-object.ts";
import { merchantIdProblem } from "../envelope/signed-form.ts";
import type { Transport } from "../settle/transport.ts";
import { Followings } from "./followings.ts";
import { checkTarget, HttpTransport } from "./http-transport.ts";
import { newKey } from "./key.ts";
import { type MerchantId, methodName, methodsOf, RemoteService } from "./remote-service.ts";
import { resume, settle } from "./settle.ts";
import type { Settled, SettleOptions } from "./settle-types.ts";
import type { DataOf, Methods, OperationBody, OperationOf, ResultOf } from "./types.ts";

/**
 * The client: the three services as typed methods, and `settle`, which follows an operation to its end by the contracts' recovery
 * rules.
 *
 * A method is one request. It resolves with the service's answer, or rejects with one of three errors that say whether it was
 * sent. `settle` is what a till wants: it asks, waits and sends again where the contract allows it, always with the same key, and
 * says "unknown" where nothing is proven. This room knows no route by heart and opens nothing itself; it runs in a page as well.
 */

/** Where a service is and what it needs to be called. */
export interface ServiceTarget {
  /** Default: the contract's port on 127.0.0.1. */
  readonly url?: string;
  /** Milliseconds to wait for an answer, for all routes; by default a little longer than the bridge itself waits. */
  readonly timeoutMs?: number;
  /** Bytes of the largest answer that is taken; the outcome of a larger one is unknown. Default: 1 MiB, as the bridge's. */
  readonly replyBytesMax?: number;
}

/** Who follows an operation. */
export type SettleBy = "client" | "bridge";

/** The secrets of the services, and how long to wait for them. */
export interface ServicesOptions {
  /** The merchant's id signs each request; a function is asked each time, so that a corrected one takes effect. */
  readonly fiscal?: ServiceTarget & { readonly merchantId?: MerchantId };
  readonly bank?: ServiceTarget & { readonly apiKey?: string };
  readonly qr?: ServiceTarget;
}

/** A service of a name of its own, where a box has several of one contract: `"bank-2": { contract: "bank", url: ... }`. */
export type NamedTarget =
  | (ServiceTarget & { readonly contract: "fiscal"; readonly merchantId?: MerchantId })
  | (ServiceTarget & { readonly contract: "bank"; readonly apiKey?: string })
  | (ServiceTarget & { readonly contract: "qr" });

/** The names of its own that a client's options have. */
type OwnNames<O> = Exclude<keyof O, keyof HttpClientOptions> & string;

/** Options that have names of their own: what stands under each. `never` for those that have none, and are HttpClientOptions. */
export type NamedOptions<O> = [OwnNames<O>] extends [never]
  ? never
  : HttpClientOptions & { readonly [Name in OwnNames<O>]: NamedTarget };

/** The client with each of those services under its name. */
export type ClientWith<O> = Client & {
  readonly [Name in OwnNames<O>]: O[Name] extends { readonly contract: infer S extends ContractName }
    ? ServiceClient<S>
    : never;
};

export interface HttpClientOptions extends ServicesOptions {
  /**
   * Who follows an operation that is settled: the client by its own questions, which is the default, or the bridge (`Prefer: wait`). A
   * service that doesn't know the header, or would send a repetition again, is asked by the client all the same.
   */
  readonly settle?: SettleBy;
  /** In place of the global one. */
  readonly fetch?: typeof fetch;
}

/** A service's routes as methods, and its operations. */
export type ServiceClient<S extends ContractName> = Methods<S> & {
  /**
   * Sends an operation and follows it to its end: a start that was lost is sent again where the contract allows it, three times at most, and
   * counts as not carried out once the terminal says "there is none" 30 s after the last one. confirm, cancel and final_confirm are asked
   * about, never sent again. A key that is missing or empty is made by `newKey`.
   *
   * After a crash use `resume`: a new `settle` of the same key doesn't know that it was sent before, and would say that nothing was done
   * where the terminal refuses the second start. `settle` and `resume` of what this client follows already, by service, route and body,
   * have the same end, by the first caller's options. Their own `signal` ends their own wait, `askOnly` and `aborted` hold for all, and
   * `onProgress` isn't called. A second cancel, refund or final_confirm of one qr payment, which has no key of its own, is another operation.
   * @throws TypeError, before anything is sent, for a body that is not JSON.
   */
  settle<Name extends OperationOf<S>>(
    operation: Name,
    body: OperationBody<S, Name>,
    options?: SettleOptions,
  ): Promise<Settled<ResultOf<S>, DataOf<S>>>;
};

export interface Client {
  readonly fiscal: ServiceClient<"fiscal">;
  readonly bank: ServiceClient<"bank">;
  readonly qr: ServiceClient<"qr">;
  /**
   * Follows an operation on, by the last token that `settle` gave: asks what became of it, and never sends blindly. One that
   * provably wasn't sent yet is sent; one that ended without being sent ends so at once. One that this client follows already isn't
   * followed twice: all its callers are given one end, which none of them may wait for in `onProgress`. Where its result is unknown,
   * resume it before a cancel, confirm or refund under its key is settled: later each may take the other's end for its own.
   * @throws TypeError for what is not a token.
   */
  resume(token: unknown, options?: SettleOptions): Promise<Settled>;
  /** A new key for an operation. */
  newKey(): string;
  /** Gives back what the client holds: a line, when it has one of its own. */
  close(): Promise<void>;
}

/**
 * A client over HTTP. In Node it lets the whole process wait 2 s, in place of 250 ms, for one address of a host before the next is tried
 * (`net.setDefaultAutoSelectFamilyAttemptTimeout`): over a slow link no address would answer in time.
 * @throws TypeError for a url, a key or a size that no request can be built of, for a time in which no answer can come, for a name of
 * its own without a contract, and for options of other types or names.
 */
export function createHttpClient(options?: HttpClientOptions): Client;
export function createHttpClient<const O extends object>(options: O & NamedOptions<O>): ClientWith<O>;
export function createHttpClient(options: HttpClientOptions = {}): Client {
  if (!isObject(options)) throw new TypeError("Cannot make a client: the options are not an object");
  const { fetch: givenFetch, settle: givenBy, ...services }: HttpClientOptions = options;
  const fetchWith = givenFetch ?? fetch;
  if (typeof fetchWith !== "function") throw new TypeError("Cannot make a client: fetch is not a function");
  const by = givenBy ?? "client";
  if (by !== "client" && by !== "bridge") {
    throw new TypeError('Cannot make a client: settle must be "client" or "bridge"');
  }
  const all = servicesIn(services);
  const targets = all.map(({ name, contract, url, replyBytesMax, apiKey }) => {
    const address = url ?? `http://127.0.0.1:${contracts[contract].port}`;
    return [name, checkTarget(name, address, contract === "bank" ? apiKey : undefined, replyBytesMax)] as const;
  });
  return clientOver(new HttpTransport(Object.fromEntries(targets), fetchWith), all, by);
}

/** A client over any transport. */
export function createClientOver(transport: Transport, options: ServicesOptions = {}): Client {
  return clientOver(transport, servicesIn(options), "client");
}

/** A service that a client has. */
type NamedService = ServiceTarget & {
  readonly name: ServiceName;
  readonly contract: ContractName;
  readonly merchantId?: MerchantId;
  readonly apiKey?: string;
};

/**
 * The three contracts' services, and those of names of their own.
 * @throws TypeError for what would be taken for a service without settings: its calls would go to the usual address, and so perhaps to
 * another terminal.
 */
function servicesIn(options: ServicesOptions): readonly NamedService[] {
  const given: Readonly<Record<string, Partial<NamedService> | undefined>> = { ...options };
  const own = Object.keys(given).filter((name) => !contractNames.some((each) => each === name));
  return [...contractNames, ...own].map((name) => {
    const contract = contractNames.find((each) => each === (given[name]?.contract ?? name));
    if (contract === undefined) {
      throw new TypeError(`Cannot make a client: ${name} says no contract: add contract: "fiscal", "bank" or "qr"`);
    }
    const target: unknown = given[name];
    if (target !== undefined && target !== null && !isObject(target)) {
      throw new TypeError(`Cannot make a client: ${name} is not an object: use { url: "http://..." }`);
    }
    refuseUnknownOption(name, given[name] ?? {}, [...commonOptions, ...secretOptions[contract]]);
    const { merchantId } = given[name] ?? {};
    const isFixed = merchantId !== undefined && merchantId !== null && typeof merchantId !== "function";
    const problem = contract === "fiscal" && isFixed ? merchantIdProblem(merchantId) : undefined;
    if (problem !== undefined) throw new TypeError(`Cannot make a client: merchantId of ${name} ${problem}`);
    return { ...given[name], name, contract };
  });
}

/** What any service is given. */
const commonOptions = ["contract", "url", "timeoutMs", "replyBytesMax"] as const;

/** What authenticates the client at a service. */
const secretOptions: Readonly<Record<ContractName, readonly string[]>> = {
  fiscal: ["merchantId"],
  bank: ["apiKey"],
  qr: [],
};

/**
 * Refuses an option that is misspelt, or another service's: it would be left out, and what is meant by it would not hold.
 * @throws TypeError
 */
export function refuseUnknownOption(name: string, given: object, known: readonly string[]): void {
  const unknown = Object.entries(given).find(
    ([option, value]) => (value ?? undefined) !== undefined && !known.includes(option),
  );
  if (unknown === undefined) return;
  throw new TypeError(`Cannot make a client: ${name} has no option ${unknown[0]}: use ${known.join(", ")}`);
}

function clientOver(transport: Transport, all: readonly NamedService[], by: SettleBy): Client {
  const made = all.map(({ name, contract, merchantId, timeoutMs }) => {
    const signs = contract === "fiscal" ? merchantId : undefined;
    return [name, new RemoteService({ contract: contracts[contract], name, transport, merchantId: signs, timeoutMs })] as const;
  });
  const services = Object.fromEntries(made);
  const followings = new Followings();
  const typed = Object.fromEntries(made.map(([name, service]) => [name, typedClient(service, by, followings)]));
  const client = {
    ...typed,
    resume: (token: unknown, settleOptions: SettleOptions = {}) => resume(services, token, settleOptions, followings),
    newKey,
    close: () => transport.close(),
  };
  // The contracts' own services are always among them
  return client as unknown as Client;
}

function typedClient<S extends ContractName>(service: RemoteService, by: SettleBy, followings: Followings): ServiceClient<S> {
  const { service: name } = service.contract;
  const routes = new Map(settlingRules[name].map(({ route }) => [methodName(route), route]));
  const made = {
    ...methodsOf(service),
    settle: async (operation: string, body: object, options: SettleOptions = {}) =>
      settle(service, routes.get(operation) ?? operation, body, options, by === "bridge", followings),
  };
  // The methods are made at run time of the same table whose schemas the type is made of; a test holds the two equal
  return made as unknown as ServiceClient<S>;
}
