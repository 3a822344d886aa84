import type { Events } from "../admin/events.ts";
import type { LiveJournal } from "../admin/status-sources.ts";
import type { Config, JournalConfig } from "../config/config.ts";
import { contractOf, contracts } from "../contract/contracts.ts";
import type { Handler, ServiceName } from "../core/call.ts";
import type { AdminAnswer, AdminRequest, AdminRoute } from "../http/admin-listener.ts";
import { jsonAnswer } from "../http/json-answer.ts";
import { JournalError } from "../journal/errors.ts";
import { readJournal } from "../journal/reader.ts";
import { type AskedLine, Asking } from "../operations/asking.ts";
import { Following, type Way } from "../operations/following.ts";
import { Hearing } from "../operations/hearing.ts";
import { InFlight, joined } from "../operations/joined.ts";
import type { Operations } from "../operations/operations.ts";
import { chosenBy, endBy, readOperatorSettle } from "../operations/operator-settle.ts";
import { type Served, servedBy } from "../process/served.ts";

/**
 * The way of each service's calls, and how a bridge's operations come to their ends: by their own answers, by the answers to tills' and to
 * posline's questions, and by the person who looked. What is followed outlasts a new configuration, and is asked about as that one says.
 */

export interface WaysOptions {
  readonly operations: Operations;
  /** The journal's folder; undefined where none is kept. */
  readonly folder: string | undefined;
  readonly resolve: JournalConfig["resolve"];
  /** What tills were told is known from these, where they are kept. */
  readonly events?: Events | undefined;
  /** A bug. */
  readonly error: (error: unknown) => void;
}

/** A service's way, and the same for posline's own questions, which no call is joined to. */
interface PreparedWay extends Way {
  readonly questions: Handler;
}

export class Ways {
  readonly #options: WaysOptions;
  readonly #hearing: Hearing;
  readonly #asking: Asking;
  readonly #following: Following;
  /** The callers of services: those of the configuration that is being prepared, and those of now. */
  readonly #prepared = new Map<ServiceName, PreparedWay>();
  readonly #taken = new Map<ServiceName, PreparedWay>();
  readonly #inFlight = new Map<ServiceName, InFlight>();
  #config: Config | undefined;
  /** Fulfilled once the last explanation has been given. */
  #explained: Promise<unknown> = Promise.resolve();

  constructor(options: WaysOptions) {
    const { operations, resolve, error } = options;
    this.#options = options;
    this.#hearing = new Hearing(operations, resolve !== false, error);
    this.#asking = new Asking(operations, this.#hearing, resolve === "ask");
    this.#following = new Following(operations, this.#hearing, this.#asking, (service) => this.#taken.get(service));
  }

  /**
   * Prepares a service's handler: what is answered to questions is heard, identical calls are one, and an operation is followed where its
   * caller wants it.
   * @param device The mark of its line's device.
   */
  handlerOf({ service, config: { contract: name } }: Served, caller: Handler, device?: string): Handler {
    const contract = contracts[name];
    const inFlight = this.#inFlight.get(service) ?? new InFlight();
    this.#inFlight.set(service, inFlight);
    const questions = this.#hearing.observed(caller, { contract, device });
    const handler = joined(contract, questions, inFlight);
    this.#prepared.set(service, { handler, questions, device });
    return (call) => (call.followMs === undefined ? handler(call) : this.#following.follow(call, handler));
  }

  /** The configuration that was prepared is refused. */
  drop(): void {
    this.#prepared.clear();
  }

  /** The configuration that was prepared is taken: its lines are asked from now on, and no others. */
  take(config: Config, lines: readonly AskedLine[]): void {
    this.#config = config;
    for (const [service, way] of this.#prepared) this.#taken.set(service, way);
    this.#prepared.clear();
    const asked = servedBy(config).flatMap(({ service, config: { line: name, contract, merchantId } }) => {
      const [line, way] = [lines.find((each) => each.name === name), this.#taken.get(service)];
      if (line === undefined || way === undefined) return [];
      const { questions: handler, device } = way;
      return [[service, { contract: contracts[contract], merchantId, device, handler, line }] as const];
    });
    this.#asking.use(new Map(asked));
  }

  /** Whether a call may be identical to one that waits or is out: it gets that one's answer, though its line takes no others. */
  mayJoin(service: ServiceName, route: string, bodyBytes: number | undefined): boolean {
    return this.#inFlight.get(service)?.mayHave(route, bodyBytes) === true;
  }

  /** Each caller that waits is answered what is known, and nothing is asked any more. */
  stop(): void {
    this.#following.stop();
    this.#asking.stop();
  }

  /** The journal, with what was tried about each unknown operation. */
  get live(): LiveJournal {
    const { operations, resolve } = this.#options;
    const notAsked = resolve === "ask" ? undefined : `journal.resolve is ${JSON.stringify(resolve)}`;
    return {
      get state() {
        return operations.state;
      },
      get isReadable() {
        return operations.isReadable;
      },
      get unknownTotal() {
        return operations.unknownTotal;
      },
      unknown: () => {
        const listed = operations.unknown();
        const sendings = operations.listed.slice(-listed.length);
        return listed.map((each, at) => {
          const sending = sendings[at];
          if (sending === undefined) return each;
          const tried = this.#hearing.triedOf(sending, this.#asking.serviceOf(each.service));
          return {
            ...each,
            tried: { ...tried, cannotAsk: sending.isFollowed ? tried.cannotAsk : (notAsked ?? tried.cannotAsk) },
          };
        });
      },
    };
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    const { folder, events } = this.#options;
    if (folder === undefined) return {};
    return {
      "POST /journal/settle": (body) => this.#settle(body),
      ...(events && {
        "GET /explain": (_, request) => {
          // Each holds the whole journal while it reads, so one comes after the other.
          const answer = this.#explained.then(() => this.#explain(request, folder, events));
          this.#explained = answer.catch(() => {});
          return answer;
        },
      }),
    };
  }

  /** What is needed for it is loaded when somebody asks for the first time. */
  async #explain({ query }: AdminRequest, folder: string, events: Events): Promise<AdminAnswer> {
    const { state } = this.#options.operations;
    const asked = query.get("key") ?? "";
    if (asked === "") return refusal(400, "Cannot explain: key is missing: use /explain?key=K, with a pay_id or documentExtID");
    const { explainKey } = await import("../operations/explanation.ts");
    try {
      const journal = { ...(await readJournal(folder)), isWritten: true };
      const contract = (service: string) => contractOf(service, this.#config?.services);
      const { operations, notes } = await explainKey(asked, journal, contract, (...of) => events.logOf(...of));
      const unwritten = state === "ok" ? [] : [`What came last may be missing, since the journal can't be written: ${state}`];
      return jsonAnswer(200, { operations, notes: [...notes, ...unwritten] });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return refusal(503, error.message);
    }
  }

  /** What it answers with 200 is on the disk; it waits no longer for that than the journal does. */
  async #settle(body: string): Promise<AdminAnswer> {
    const { operations, folder } = this.#options;
    try {
      const wanted = readOperatorSettle(body);
      if (wanted.folder !== undefined && wanted.folder !== folder) {
        throw new JournalError(
          `Cannot settle "${wanted.key}": this posline keeps its journal in ${folder}, not in ${wanted.folder}`,
        );
      }
      const chosen = chosenBy(operations.open, wanted, operations.settledByPerson).map((sending) => {
        const { service, route, key } = sending.sent;
        const result = endBy(wanted.as, this.#config?.services[service]?.contract);
        const recorded = operations.settle(sending, { result, by: "operator", note: wanted.note });
        return { recorded, settled: { service, route, key, result } };
      });
      const recorded = await Promise.all(chosen.map((each) => each.recorded));
      if (!recorded.every((each) => each)) return refusal(503, notOnDisk(wanted.key, operations.state));
      return jsonAnswer(200, { settled: chosen.map(({ settled }) => settled) });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      return refusal(400, error.message);
    }
  }
}

const refusal = (status: number, error: string) => jsonAnswer(status, { error });

function notOnDisk(key: string, state: string): string {
  return (
    `Cannot say that "${key}" is settled: posline took it, and can't write it yet (${state}). It is written as soon as the disk takes it; ` +
    "if posline ends before, it is unknown again: look at the journal in /status, and then at sudo posline journal --unknown"
  );
}
