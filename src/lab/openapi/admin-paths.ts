import { contractNames } from "../../core/call.ts";
import { faultReasons } from "../../core/fault.ts";
import type { JsonObject } from "../../core/json-object.ts";

/** The admin port's answers, by method and path: a row for each. Fields are always there, but for those whose name ends with `?`. */

export interface AdminOperation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly JsonObject[];
  readonly requestBody?: JsonObject;
  /** Answers by HTTP status; refusals are described once, for all. */
  readonly responses: Readonly<Record<string, JsonObject>>;
}

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const time = { type: "string", format: "date-time", description: "By the box's clock" };
const share = { type: "number", minimum: 0, maximum: 1 };

const said = (description: string, schema: JsonObject = text): JsonObject => ({ ...schema, description });
const oneOf = (...words: readonly string[]): JsonObject => ({ enum: words });
const list = (items: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "array", items, ...more });
const byName = (additionalProperties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  additionalProperties,
  ...more,
});

const object = (fields: JsonObject, description?: string): JsonObject => {
  const required = Object.keys(fields).filter((name) => !name.endsWith("?"));
  const properties = Object.entries(fields).map(([name, schema]) => [name.replace("?", ""), schema]);
  return {
    type: "object",
    ...(description === undefined ? {} : { description }),
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(properties),
  };
};

const json = (description: string, schema: JsonObject, example?: unknown): JsonObject => ({
  description,
  content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
});

const refusal = (description: string) => json(description, object({ error: text }));

/** An answer that goes on, or isn't JSON. */
const streamed = (mediaType: string, description: string): JsonObject => ({
  description,
  content: { [mediaType]: { schema: text } },
});

/** A request's body, of this schema. */
const bodyOf = (schema: JsonObject, example: JsonObject = {}): JsonObject => ({
  required: true,
  content: { "application/json": { schema, ...example } },
});

const inQuery = (name: string, description: string, schema: JsonObject = text) => ({
  name,
  in: "query",
  schema,
  description,
});

const reasonCounts = {
  type: "object",
  description: "Why requests were not answered, by the word in X-Posline-Reason",
  propertyNames: { enum: Object.keys(faultReasons) },
  additionalProperties: count,
};

const outcomeCounts = { answered: count, notSent: count, unknown: count, reasons: reasonCounts };

const notReady = object({
  what: oneOf("process", "line", "service", "journal"),
  "line?": said("Of a line or service"),
  "service?": said("Of a service"),
  state: text,
  reason: said("For people"),
  cure: said("What to do: a command to paste, or something to wait for"),
});

const notes = list(text, {
  description:
    "What keeps no request waiting: a service that can't be asked whether it is there, a journal that can't be written, and the like",
});

const line = object({
  state: oneOf("down", "recovering", "idle", "awaiting", "closed", "open"),
  sinceMs: count,
  reason: text,
  device: object({ path: text, "node?": said("While it is open") }),
  "queue?": object({ waiting: count, "max?": count }, "Absent in a gateway"),
  stalledMs: count,
  counters: object({
    ...outcomeCounts,
    late: count,
    discards: byName(object({ count, bytes: count })),
    openings: count,
    losses: count,
    recoveries: count,
  }),
  "lastExchange?": { type: "object", description: "As the log has it; absent until there was one" },
  "lastLate?": { type: "object", description: "Absent until there was one" },
});

const service = object({
  "contract?": { enum: contractNames, description: "Whose routes it has; absent where that isn't known" },
  line: text,
  "host?": said("Where tills reach it, in a bridge"),
  "port?": count,
  "upstream?": said("Where a gateway asks it"),
  "heard?": object(
    { state: oneOf("heard", "unheard", "unproven"), "agoMs?": count, "reason?": text, "cure?": text },
    "Whether its terminal was heard since its line opened; absent in a gateway",
  ),
  counters: object(outcomeCounts),
  "offer?": { type: "object", description: "What the terminal last said that it can do; absent until it did" },
});

const setupMessages = [
  object({ say: text }, "For people, in English"),
  object(
    {
      ask: { type: "integer", description: "The question's number" },
      for: oneOf("device", "merchant-id", "write"),
      "devices?": list(object({ path: text, words: text })),
      "refused?": said("Why the last merchant's id was refused"),
      "diff?": said("What would be written; secrets are masked"),
    },
    "A question: plug the terminal in or name one of the devices; the merchant's id; whether to write",
  ),
  object({ over: { type: "integer" } }, "The question of this number is over"),
  object({ end: oneOf("written", "unchanged", "declined") }),
  object({ error: text }, "Why it can't go on, and whether anything was written"),
];

const setupView = object({
  isRunning: { type: "boolean" },
  messages: list({ anyOf: setupMessages, description: "As `posline setup --json` writes them" }),
});

const testSale = object({
  amount: count,
  currency: text,
  steps: list(object({ time, route: text, key: text, type: text })),
  "end?": oneOf("given-back", "kept", "in-doubt", "back-in-doubt", "not-approved", "not-sent"),
  "message?": said("Why, and what to do"),
});

const testSales = object({ sales: byName(testSale) });

const unknownOperation = object({
  time,
  requestId: text,
  service: text,
  route: text,
  "key?": text,
  "amount?": text,
  cause: text,
  "asked?": said("How often posline has asked about it", count),
  "lastAsked?": said("When it did so last; absent before", time),
  "lastAnswer?": said("What was last answered to anybody's question; absent before"),
  "cannotAsk?": said("Why posline doesn't ask, where it doesn't"),
});

const journal = object({
  state: said("`ok`, `off`, or why it can't be written"),
  "folder?": text,
  "onFailure?": oneOf("refuse", "relay"),
  "readable?": {
    type: "boolean",
    description: "False while it has not been read since the start: what was unknown before is not in `unknown`",
  },
  "unknown?": object(
    { total: count, newest: list(unknownOperation, { maxItems: 100 }) },
    "Operations of which nobody knows whether they were carried out: ask the terminal about each",
  ),
});

const status = object({
  version: text,
  pid: count,
  started: time,
  uptimeS: count,
  state: oneOf("running", "stopping"),
  ready: { type: "boolean", description: "As in /readyz" },
  reasons: list(notReady, { description: "As in /readyz; none when it is ready" }),
  notes: said("As in /readyz when it is ready", notes),
  lines: byName(line, { description: "By name" }),
  services: byName(service, { description: "By name" }),
  journal,
});

const forced = object({
  service: said("By its name: fiscal, bank, qr, or one of its own"),
  "route?": said("Absent: any of the service"),
  "outcome?": said("How the operation goes, such as declined or slow:3"),
  "fault?": said("What happens to the answer, such as no-answer or unplug"),
});

const emulatorState = object(
  {
    now: time,
    forced: list(forced),
    chances: byName(share),
    endings: byName(text, { description: "What the last two digits of an amount decide" }),
  },
  "All that the emulator remembers and has been asked to do. Integers are exact, whatever their size",
);

const emulatorOrder = {
  type: "object",
  minProperties: 1,
  additionalProperties: false,
  properties: {
    reset: { type: "boolean", description: "Forget everything" },
    advanceMs: said("Milliseconds by which its time moves on", count),
    next: { anyOf: [forced, list(forced)], description: "What becomes of the next request, or of the next ones" },
    chances: byName(share, { description: "The share of answers that have a fault, by fault" }),
  },
};

export const adminPaths: Readonly<Record<string, AdminOperation>> = {
  "GET /healthz": {
    summary: "Whether the process runs",
    description: 'For the rule "restart it if it doesn\'t answer".',
    responses: { 200: json("It runs", object({ status: oneOf("ok", "stopping") }), { status: "ok" }) },
  },
  "GET /readyz": {
    summary: "Whether the next request would be sent, at once or in its turn, to a terminal that is there",
    responses: {
      200: json("It would", object({ status: { const: "ready" }, "notes?": notes }), { status: "ready" }),
      503: json(
        "It would wait or be refused",
        object({ status: { const: "not ready" }, reasons: list(notReady, { minItems: 1 }) }),
      ),
    },
  },
  "GET /status": {
    summary: "The process, each line, each service and the journal",
    responses: { 200: json("The status", status) },
  },
  "GET /metrics": {
    summary: "Counters and histograms for Prometheus",
    responses: { 200: streamed("text/plain", "The text format of Prometheus") },
  },
  "GET /events": {
    summary: "What happens, as server-sent events",
    description:
      "The first event of a connection is `hello`. The others: `exchange` (with `phase`: waiting, sent, written, replying, ended), `line`, " +
      "`discard`, `late`, `service`, `operation` and `ready`; the data of each is one line of JSON. An `exchange` that posline itself " +
      "asks has `background`: true, and the `callId` that it asks about in `about`. A comment comes every 15 s.",
    parameters: [
      { name: "Last-Event-ID", in: "header", schema: text, description: "Continue after this event, of the last 512" },
      inQuery("lastEventId", "The same, where the header can't be set"),
      inQuery("recent", "Begin with the last so many", { type: "integer", minimum: 0, maximum: 512 }),
    ],
    responses: { 200: streamed("text/event-stream", "A stream that goes on") },
  },
  "GET /tap": {
    summary: "The frames that go over the lines, masked, as they go",
    description: "For `posline tap`: a line of JSON for each frame, until it is closed.",
    parameters: [inQuery("line", "Of this line alone, by its name")],
    responses: { 200: streamed("application/x-ndjson", "A stream that goes on") },
  },
  "GET /recording": {
    summary: "What the lines were given last, masked",
    description: "For `posline replay`: JSON lines.",
    responses: { 200: streamed("application/x-ndjson", "The recording") },
  },
  "GET /test": {
    summary: "The last test sale of each service, with its steps, and how it ended",
    responses: { 200: json("By service; a sale without an end is under way", testSales) },
  },
  "POST /test": {
    summary: "Ask a terminal the contract's own harmless question; or, at a bank, sell for a test, and give it back",
    description:
      "As a till on this box does, at the service's own port. A test sale goes out once, and is followed to its end; only an approved " +
      "one is given back, by /cancel or /refund as the terminal offers it, once. `GET /test` tells how far it has come.",
    requestBody: bodyOf(
      object({
        service: text,
        "sale?": object(
          { amount: { type: "integer", minimum: 1, description: "Minor units" }, currency: text },
          "Absent: a question alone",
        ),
      }),
    ),
    responses: {
      200: json("What came of the question, or the test sales", {
        anyOf: [
          object({
            ...{ service: text, outcome: text },
            ...{ "ms?": { type: "number" }, "offer?": { type: "object" }, "error?": text },
          }),
          testSales,
        ],
      }),
      400: refusal("There is no such service, or no such test"),
      409: refusal("A test sale of the service is under way"),
    },
  },
  "GET /setup": {
    summary: "The setup that is under way, or the last one, as far as it has come",
    responses: { 200: json("What it said, in order", setupView) },
  },
  "POST /setup": {
    summary: "Begin a setup, answer its question, or stop it",
    description:
      "`{}` begins `posline setup --json` as root. Its question is the last message that is no `say`. Only a `yes` to the question for " +
      "`write` changes the configuration.",
    requestBody: bodyOf(
      object({
        "ask?": { type: "integer", description: "The number of the question" },
        "answer?": said("A device's path; the merchant's id, or nothing; `yes` to write"),
        "stop?": { enum: [true], description: "If `yes` was not answered yet, nothing is written" },
      }),
    ),
    responses: {
      200: json("How far it has come", setupView),
      400: refusal("There is no such request"),
      409: refusal("Another setup is under way, or the question is over"),
    },
  },
  "POST /journal/settle": {
    summary: "Record how an operation of unknown outcome ended, by what a person saw at the terminal",
    requestBody: bodyOf(
      object({
        key: said("pay_id or documentExtID"),
        as: oneOf("done", "not-done"),
        note: said("What was seen, and by whom"),
        "service?": text,
        "route?": text,
        "folder?": said("Of the journal that is meant"),
      }),
    ),
    responses: {
      200: json("It is on the disk", object({ settled: list({ type: "object" }) })),
      400: refusal("There is no such operation, or several"),
      503: refusal("It was taken, and the disk has not: it is written once that is possible"),
    },
  },
  "GET /openapi/{document}.json": {
    summary: "The OpenAPI document of a service, or of this port",
    parameters: [
      {
        name: "document",
        in: "path",
        required: true,
        schema: text,
        description: "A service by its name in the configuration, or admin",
        example: "bank",
      },
    ],
    responses: { 200: json("An OpenAPI 3.1 document", object({ openapi: text, info: { type: "object" } })) },
  },
  "GET /emulator": {
    summary: "What the emulator remembers, and what it was asked to do",
    responses: { 200: json("Its state", emulatorState) },
  },
  "POST /emulator": {
    summary: "Have the emulator's next operation go wrong, move its time on, or reset it",
    description: "A request is carried out whole or not at all.",
    requestBody: bodyOf(emulatorOrder, {
      example: { next: { service: "bank", route: "/sale", outcome: "declined" } },
    }),
    responses: { 200: json("Its state", emulatorState) },
  },
};
