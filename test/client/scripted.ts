import assert from "node:assert/strict";
import { type Client, createClientOver } from "../../src/client/client.ts";
import type { Settled, SettleEvent, SettleOptions } from "../../src/client/settle-types.ts";
import { readToken, type Token } from "../../src/client/token.ts";
import { nothingSent } from "../../src/core/fault.ts";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import type { Clock } from "../../src/settle/clock.ts";
import { parseExactObject } from "../../src/settle/exact-json.ts";
import type { Known } from "../../src/settle/judge.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../../src/settle/transport.ts";

/** A service that answers as a test has written it down, and a clock that moves only while somebody sleeps. */

export const merchantId = "MERCHANT-1";

export class TestClock implements Clock {
  ms = 0;
  readonly slept: number[] = [];
  nowMs(): number {
    return this.ms;
  }
  async sleep(ms: number): Promise<void> {
    this.slept.push(ms);
    this.ms += ms;
  }
}

/** What is answered. */
export function reply(json: object, more: Partial<Answer> = {}): Answer {
  return {
    outcome: "answered",
    text: JSON.stringify(json),
    httpStatus: 200,
    retryAfterMs: undefined,
    reason: undefined,
    failure: undefined,
    ...more,
  };
}

export const ok = (more: object = {}) => reply({ status: "success", ...more });
export const error = (code: number, more: object = {}) => reply({ status: "error", code, message: `code ${code}`, ...more });
export const lost: Answer = failedAnswer("unknown", "no answer came");
/** Turned away for now. */
export const busy: Answer = { ...failedAnswer("not-sent", "the line is down"), httpStatus: 503 };
/** Turned away for good. */
export const wrong: Answer = { ...failedAnswer("not-sent", "mend it"), httpStatus: 401 };

export const why = "Cannot send to line till: it is down";
/** Not sent, as the bridge says it of a line. */
export const down: Answer = { ...failedAnswer("not-sent", `${why}. ${nothingSent}`), httpStatus: 503 };

export const approved = ok({ data: { status: "APPROVED", txn_id: "7" } });
export const absent = error(-15);
export const closed = ok({ docStatus: 1, documentID: 12 });

/** What is settled: by bank, by fiscal. */
export const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
export const sale = { documentExtID: "D-1", items: [{ itemAmount: 150 }] };

export type Script = readonly (readonly [route: string, answer: Answer])[];

export const repeat = (times: number, ...steps: Script): Script => Array.from({ length: times }, () => steps).flat();

/** What words of a script stand for everywhere. */
const usual = { lost, busy, wrong, down, approved, closed, ok: ok() };

/**
 * A script in words, as `sale lost, check -15 x3, check approved`: a number is an error of that code.
 * @param answers What its other words stand for.
 */
export function scriptOf(words: string, answers: Readonly<Record<string, Answer>> = usual): Script {
  return words.split(", ").flatMap((each) => {
    const [route, word = "", times = "x1"] = each.split(" ");
    return repeat(Number(times.slice(1)), [`/${route}`, answers[word] ?? error(Number(word))]);
  });
}

/** Nothing is known under its key before it is sent. */
export const absentBefore: Script = repeat(3, ["/check", absent]);
/** "Not found" each second from the first after a start to the third that counts: from 30 s on, when its time-out is over (bank.md, Limits). */
export const absentTo30s = repeat(32, ["/check", absent]);
export const goneTo30s = repeat(32, ["/check_status", error(9)]);
/** The same of one that is resumed, which asks at once. */
export const absentFrom0To30s = repeat(33, ["/check", absent]);

/** A token as a till would keep it. */
export const kept = (token: Token): unknown => JSON.parse(JSON.stringify(token));

/** What is known by a token, for whoever reads it. */
export const knownBy = (token: Token): Known => readToken(kept(token)).known;

/** One request as the service sees it. */
export interface Seen {
  readonly route: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A transport that answers in the order of its script, and fails the test for any other request. */
export class Scripted implements Transport {
  readonly seen: Seen[] = [];
  readonly bodies: (string | undefined)[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  async send(request: TransportRequest): Promise<Answer> {
    const [route, answer] = this.#script[this.seen.length] ?? [];
    this.seen.push({ route: request.route, body: bodyOf(request) });
    this.bodies.push(request.body);
    if (answer === undefined || route !== request.route) throw new Error(`unexpected ${request.route}`);
    return answer;
  }

  async close(): Promise<void> {}
}

/** The JSON in a request, by its envelope. */
export function bodyOf({ service, body }: TransportRequest): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  const data = service === "fiscal" ? parseForm(Buffer.from(body)).data : undefined;
  const json = data === undefined ? body : Buffer.from(unescapeValue(data), "base64").toString("utf8");
  const parsed = parseExactObject(json);
  assert.ok(parsed !== undefined);
  return parsed;
}

/** A client over a script, which may be in words, with what it told and how long it waited. */
export function over(written: Script | string) {
  const script = typeof written === "string" ? scriptOf(written) : written;
  const service = new Scripted(script);
  const clock = new TestClock();
  const events: SettleEvent[] = [];
  const options: SettleOptions = {
    clock,
    onProgress: (event) => {
      events.push(event);
    },
  };
  const client: Client = createClientOver(service, { fiscal: { merchantId } });
  /** That every request of the script was made, no more and no fewer. */
  const done = () =>
    assert.deepEqual(
      service.seen.map(({ route }) => route),
      script.map(([route]) => route),
    );
  return { client, service, clock, events, options, done };
}

/** A stop or a leaving, as options, that comes with the first event of a type. */
export function endsAt(type: SettleEvent["type"], by: "signal" | "askOnly" = "signal") {
  const ending = new AbortController();
  const onProgress = (event: SettleEvent) => {
    if (event.type === type) ending.abort();
  };
  return { [by]: ending.signal, onProgress };
}

const sold = ({ bank }: Client, options: SettleOptions) => bank.settle("sale", body, options);

/** The token of an operation as it was with the first event of a type, as if the process had died there. */
export async function tokenAt(
  script: Script | string,
  type: SettleEvent["type"],
  begin: (client: Client, options: SettleOptions) => Promise<Settled> = sold,
): Promise<Token> {
  const { client, clock } = over(script);
  const gone = new AbortController();
  let token: Token | undefined;
  const onProgress = (event: SettleEvent) => {
    if (event.type !== type) return;
    token ??= event.token;
    gone.abort();
  };
  await begin(client, { clock, signal: gone.signal, onProgress });
  return token ?? assert.fail(`no event: ${type}`);
}
