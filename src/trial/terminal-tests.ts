import type { Duplex } from "node:stream";
import { createHttpClient } from "../client/client.ts";
import type { Node } from "../config/check.ts";
import { checkObject } from "../config/check-object.ts";
import type { ServiceName } from "../core/call.ts";
import { messageOf } from "../core/error-code.ts";
import type { AdminAnswer, AdminRequest } from "../http/admin-listener.ts";
import { fetchWithin } from "../http/fetch-within.ts";
import { jsonAnswer } from "../http/json-answer.ts";
import type { Served } from "../process/served.ts";
import { SaleTest, type TestedMoney } from "./sale-test.ts";
import { testedTerminal } from "./terminal-test.ts";

/**
 * `POST /test`: asks a service's terminal, or sells there for a test, as a till on this box does: at the service's own port, under its
 * rules, limits and key, and with its lines in log and journal.
 */

const maxAmount = 999_999_999;

const requestNode = (services: readonly string[]): Node => ({
  type: "object",
  additionalProperties: false,
  required: ["service"],
  properties: {
    service: { enum: services },
    sale: {
      type: "object",
      additionalProperties: false,
      required: ["amount", "currency"],
      properties: {
        amount: { type: "integer", minimum: 1, maximum: maxAmount },
        currency: { type: "string", pattern: "^[A-Z]{3}$" },
      },
    },
  },
});

interface TestRequest {
  readonly service?: string;
  readonly sale?: TestedMoney;
}

export class TerminalTests {
  readonly #served: () => readonly Served[];
  readonly #connect: (service: ServiceName) => Duplex;
  /** The last test sale of each service. */
  readonly #sales = new Map<string, SaleTest>();
  readonly #stop = new AbortController();

  /**
   * @param served The services.
   * @param connect A connection to a service's own port.
   */
  constructor(served: () => readonly Served[], connect: (service: ServiceName) => Duplex) {
    this.#served = served;
    this.#connect = connect;
  }

  /** Follows nothing any more: what was sent is in the journal. */
  stop(): void {
    this.#stop.abort();
  }

  /** The last test sales, by service. */
  view(): AdminAnswer {
    return jsonAnswer(200, { sales: Object.fromEntries([...this.#sales].map(([service, { view }]) => [service, view])) });
  }

  /** Anybody may ask, as at the service's own port; a sale is a change, and may have the bank's key from posline itself. */
  async change(body: string, { checkChange }: Pick<AdminRequest, "checkChange">): Promise<AdminAnswer> {
    const all = this.#served();
    const problems: string[] = [];
    // Wrong fields are among the problems.
    const { service, sale } = checkObject(requestNode(all.map((each) => each.service)), body, problems) as TestRequest;
    const served = all.find((each) => each.service === service);
    if (problems.length > 0 || served === undefined) return refusal(400, problems.join("; "));
    const { contract } = served.config;
    try {
      const client = this.#clientOf(served);
      if (sale === undefined) {
        return jsonAnswer(200, await testedTerminal(client, { name: served.service, contract }).finally(() => client.close()));
      }
      if (contract !== "bank") return refusal(400, `${served.service} has no test sale, only a bank has: test it without one`);
      checkChange();
      const before = this.#sales.get(served.service);
      if (before !== undefined && before.end === undefined) {
        return refusal(409, `a test sale of ${served.service} is under way: wait for its end`);
      }
      const test = new SaleTest(client, served.service, sale, this.#stop.signal);
      this.#sales.set(served.service, test);
      void test.run().finally(() => client.close());
      return this.view();
    } catch (error) {
      // A key that no client can be made with.
      if (!(error instanceof TypeError)) throw error;
      return refusal(400, messageOf(error));
    }
  }

  /** A client of the service alone, at its own port. */
  #clientOf({ service, config: { contract, apiKey, replyBytesMax } }: Served) {
    // The host that any service takes.
    const url = "http://localhost";
    const target = { contract, url, replyBytesMax, ...(contract === "bank" && apiKey !== undefined && { apiKey }) };
    const within = fetchWithin(() => this.#connect(service));
    // A service of a contract's own name is given so as well.
    return createHttpClient({ settle: "bridge", fetch: within, [service]: target } as Parameters<typeof createHttpClient>[0]);
  }
}

const refusal = (status: number, why: string) => jsonAnswer(status, { error: `Cannot test: ${why}` });
