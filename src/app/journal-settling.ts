import type { LiveJournal } from "../admin/status-sources.ts";
import type { Config, JournalConfig } from "../config/config.ts";
import { contracts } from "../contract/contracts.ts";
import type { Handler } from "../core/call.ts";
import { printableJson } from "../core/shell-text.ts";
import { Doubts } from "../follow/doubts.ts";
import { type ObservedWay, observed } from "../follow/observer.ts";
import { type AskedLine, Resolver, type ResolverOptions } from "../follow/resolver.ts";
import type { AdminAnswer, AdminRoute } from "../http/admin-listener.ts";
import { JournalError } from "../journal/errors.ts";
import type { Journal } from "../journal/journal.ts";
import { chosenBy, endBy, readOperatorSettle } from "../journal/operator-settle.ts";
import { servedBy } from "./served.ts";

/** How a bridge's journal settles: by the answers to tills' questions, by posline's own, and by the person who looked. */

export interface JournalSettlingOptions {
  readonly journal: Journal;
  readonly folder: string;
  readonly resolve: JournalConfig["resolve"];
  readonly isFollowed: ResolverOptions["isFollowed"];
  /** A bug. */
  readonly error: (error: unknown) => void;
}

/** A line, and how its turn to ask is taken. */
export interface ResolvedLine {
  readonly line: AskedLine & { readonly name: string };
  readonly turn: ResolverOptions["turn"];
}

export class JournalSettling {
  readonly #options: JournalSettlingOptions;
  readonly #doubts: Doubts;
  #config: Config | undefined;
  #resolvers: readonly Resolver[] = [];

  constructor(options: JournalSettlingOptions) {
    this.#options = options;
    this.#doubts = new Doubts(options.journal);
    options.journal.onOpened = () => {
      for (const resolver of this.#resolvers) resolver.wake();
    };
  }

  /** A service's handler, whose answers are seen. */
  observed(handler: Handler, way: ObservedWay): Handler {
    const { resolve, error } = this.#options;
    const doubts = this.#doubts;
    const settlesNothing: Pick<Doubts, "answered"> = { answered: (...answered) => doubts.heard(...answered) };
    return observed(handler, way, resolve === false ? settlesNothing : doubts, error);
  }

  /**
   * Takes a configuration: its lines are asked from now on, and no others.
   * @param handlers The observed ones, by service.
   */
  use(config: Config, lines: readonly ResolvedLine[], handlers: ReadonlyMap<string, Handler>): void {
    this.stop();
    this.#config = config;
    const served = servedBy(config);
    this.#doubts.use(
      new Map(
        served.map(({ service, config: { contract, merchantId } }) => [service, { contract: contracts[contract], merchantId }]),
      ),
    );
    if (this.#options.resolve !== "ask") return;
    this.#resolvers = lines.map(({ line, turn }) => {
      const services = new Map(
        served.flatMap(({ service, config: { line: name, contract, merchantId } }) => {
          const handler = handlers.get(service);
          if (name !== line.name || handler === undefined) return [];
          return [[service, { contract: contracts[contract], merchantId, handler }] as const];
        }),
      );
      return new Resolver({ doubts: this.#doubts, line, services, turn, isFollowed: this.#options.isFollowed });
    });
    for (const resolver of this.#resolvers) resolver.wake();
  }

  /** Asks nothing any more. */
  stop(): void {
    for (const resolver of this.#resolvers) resolver.stop();
    this.#resolvers = [];
  }

  /** The journal, with what was tried about each unknown operation. */
  get live(): LiveJournal {
    const { journal, resolve } = this.#options;
    const doubts = this.#doubts;
    const notAsked = resolve === "ask" ? undefined : `journal.resolve is ${JSON.stringify(resolve)}`;
    return {
      get state() {
        return journal.state;
      },
      get isReadable() {
        return journal.isReadable;
      },
      get unknownTotal() {
        return journal.unknownTotal;
      },
      unknown: () => {
        const listed = journal.unknown();
        const open = journal.open.slice(-listed.length);
        return listed.map((each, index) => {
          const operation = open[index];
          if (operation === undefined) return each;
          const tried = doubts.triedOf(operation);
          return { ...each, tried: { ...tried, cannotAsk: notAsked ?? tried.cannotAsk } };
        });
      },
    };
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    return { "POST /journal/settle": (body) => this.#settle(body) };
  }

  /** What it answers with 200 is on the disk; it waits no longer for that than the journal does. */
  async #settle(body: string): Promise<AdminAnswer> {
    const { journal, folder } = this.#options;
    try {
      const wanted = readOperatorSettle(body);
      if (wanted.folder !== undefined && wanted.folder !== folder) {
        throw new JournalError(
          `Cannot settle "${wanted.key}": this posline keeps its journal in ${folder}, not in ${wanted.folder}`,
        );
      }
      const chosen = chosenBy(journal.open, wanted).map((operation) => {
        const { service, route, key } = operation.sent;
        const result = endBy(wanted.as, this.#config?.services[service]?.contract);
        const recorded = journal.settle(operation, { result, by: "operator", note: wanted.note });
        return { recorded, settled: { service, route, key, result } };
      });
      const recorded = await Promise.all(chosen.map((each) => each.recorded));
      if (!recorded.every((each) => each)) return refusal(503, notOnDisk(wanted.key, journal.state));
      return { status: 200, text: `${printableJson(JSON.stringify({ settled: chosen.map(({ settled }) => settled) }))}\n` };
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return refusal(400, error.message);
    }
  }
}

const refusal = (status: number, error: string): AdminAnswer => ({
  status,
  text: `${printableJson(JSON.stringify({ error }))}\n`,
});

function notOnDisk(key: string, state: string): string {
  return (
    `Cannot say that "${key}" is settled: posline took it, and can't write it yet (${state}). It is written as soon as the disk takes it; ` +
    "if posline ends before, it is unknown again: look at the journal in /status, and then at posline journal --unknown"
  );
}
