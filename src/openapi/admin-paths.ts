import { contractNames } from "../core/call.ts";
import { faultReasons } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";

/** The admin port's answers, by method and path: a row for each. Fields are always there unless said otherwise. */

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

const object = (properties: JsonObject, required: readonly string[], description?: string): JsonObject => ({
  type: "object",
  ...(description === undefined ? {} : { description }),
  required,
  properties,
});

const json = (description: string, schema: JsonObject, example?: unknown): JsonObject => ({
  description,
  content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
});

/** A request's body, of this schema. */
const bodyOf = (schema: JsonObject): JsonObject => ({ required: true, content: { "application/json": { schema } } });

const reasonCounts = {
  type: "object",
  description: "Why requests were not answered, by the word in X-Posline-Reason",
  propertyNames: { enum: Object.keys(faultReasons) },
  additionalProperties: count,
};

const outcomeCounts = { answered: count, notSent: count, unknown: count, reasons: reasonCounts };
const outcomeNames = Object.keys(outcomeCounts);

const notReady = object(
  {
    what: { enum: ["process", "line", "service", "journal"] },
    line: { ...text, description: "Of a line or service" },
    service: { ...text, description: "Of a service" },
    state: text,
    reason: { ...text, description: "For people" },
    cure: { ...text, description: "What to do: a command to paste, or something to wait for" },
  },
  ["what", "state", "reason", "cure"],
);

const notes = {
  type: "array",
  items: text,
  description:
    "What keeps no request waiting: a service that can't be asked whether it is there, a journal that can't be written, and the like",
};

const discards = object({ count, bytes: count }, ["count", "bytes"]);

const line = object(
  {
    state: { enum: ["down", "recovering", "idle", "awaiting", "closed", "open"] },
    sinceMs: count,
    reason: text,
    device: object({ path: text, node: { ...text, description: "While it is open" } }, ["path"]),
    queue: object({ waiting: count, max: count }, ["waiting"], "Absent in a gateway"),
    stalledMs: count,
    counters: object(
      {
        ...outcomeCounts,
        late: count,
        discards: { type: "object", additionalProperties: discards },
        openings: count,
        losses: count,
        recoveries: count,
      },
      [...outcomeNames, "late", "discards", "openings", "losses", "recoveries"],
    ),
    lastExchange: { type: "object", description: "As the log has it; absent until there was one" },
    lastLate: { type: "object", description: "Absent until there was one" },
  },
  ["state", "sinceMs", "reason", "device", "stalledMs", "counters"],
);

const service = object(
  {
    contract: { enum: contractNames, description: "Whose routes it has; absent where that isn't known" },
    line: text,
    host: { ...text, description: "Where tills reach it, in a bridge" },
    port: count,
    upstream: { ...text, description: "Where a gateway asks it" },
    heard: object(
      { state: { enum: ["heard", "unheard", "unproven"] }, agoMs: count, reason: text, cure: text },
      ["state"],
      "Whether its terminal was heard since its line opened; absent in a gateway",
    ),
    counters: object(outcomeCounts, outcomeNames),
    offer: { type: "object", description: "What the terminal last said that it can do; absent until it did" },
  },
  ["line", "counters"],
);

const setupMessages = [
  object({ say: text }, ["say"], "For people, in English"),
  object(
    {
      ask: { type: "integer", description: "The question's number" },
      for: { enum: ["device", "merchant-id", "write"] },
      devices: { type: "array", items: object({ path: text, words: text }, ["path", "words"]) },
      refused: { ...text, description: "Why the last merchant's id was refused" },
      diff: { ...text, description: "What would change; secrets are masked" },
    },
    ["ask", "for"],
    "A question: plug the terminal in or name one of the devices; the merchant's id; whether to write",
  ),
  object({ over: { type: "integer" } }, ["over"], "The question of this number is over"),
  object({ end: { enum: ["written", "unchanged", "declined"] } }, ["end"]),
  object({ error: text }, ["error"], "Why it can't go on, and whether anything was written"),
];

const setupView = object(
  {
    isRunning: { type: "boolean" },
    messages: { type: "array", items: { anyOf: setupMessages, description: "As `posline setup --json` writes them" } },
  },
  ["isRunning", "messages"],
);

const testSales = object(
  {
    sales: {
      type: "object",
      additionalProperties: object(
        {
          amount: count,
          currency: text,
          steps: {
            type: "array",
            items: object({ time, route: text, key: text, type: text }, ["time", "route", "key", "type"]),
          },
          end: { enum: ["given-back", "kept", "in-doubt", "back-in-doubt", "not-approved", "not-sent"] },
          message: { ...text, description: "Why, and what to do" },
        },
        ["amount", "currency", "steps"],
      ),
    },
  },
  ["sales"],
);

const unknownOperation = object(
  {
    time,
    requestId: text,
    service: text,
    route: text,
    key: text,
    amount: text,
    cause: text,
    asked: { ...count, description: "How often posline has asked about it" },
    lastAsked: { ...time, description: "When it did so last; absent before" },
    lastAnswer: { ...text, description: "What was last answered to anybody's question; absent before" },
    cannotAsk: { ...text, description: "Why posline doesn't ask, where it doesn't" },
  },
  ["time", "requestId", "service", "route", "cause"],
);

const status = object(
  {
    version: text,
    pid: count,
    started: time,
    uptimeS: count,
    state: { enum: ["running", "stopping"] },
    ready: { type: "boolean", description: "As in /readyz" },
    reasons: { type: "array", items: notReady, description: "As in /readyz; none when it is ready" },
    notes: { ...notes, description: "As in /readyz when it is ready" },
    lines: { type: "object", additionalProperties: line, description: "By name" },
    services: { type: "object", additionalProperties: service, description: "By name" },
    journal: object(
      {
        state: { ...text, description: "`ok`, `off`, or why it can't be written" },
        folder: text,
        onFailure: { enum: ["refuse", "relay"] },
        readable: {
          type: "boolean",
          description: "False while it has not been read since the start: what was unknown before is not in `unknown`",
        },
        unknown: object(
          { total: count, newest: { type: "array", items: unknownOperation, maxItems: 100 } },
          ["total", "newest"],
          "Operations of which nobody knows whether they were carried out: ask the terminal about each",
        ),
      },
      ["state"],
    ),
  },
  ["version", "pid", "started", "uptimeS", "state", "ready", "reasons", "notes", "lines", "services", "journal"],
);

const forced = object(
  {
    service: { ...text, description: "By its name: fiscal, bank, qr, or one of its own" },
    route: { ...text, description: "Absent: any of the service" },
    outcome: { ...text, description: "How the operation goes, such as declined or slow:3" },
    fault: { ...text, description: "What happens to the answer, such as no-answer or unplug" },
  },
  ["service"],
);

const emulatorState = object(
  {
    now: time,
    forced: { type: "array", items: forced },
    chances: { type: "object", additionalProperties: { type: "number", minimum: 0, maximum: 1 } },
    endings: { type: "object", additionalProperties: text, description: "What the last two digits of an amount decide" },
  },
  ["now", "forced", "chances", "endings"],
  "All that the emulator remembers and has been asked to do. Integers are exact, whatever their size",
);

const ready = object({ status: { const: "ready" }, notes }, ["status"]);
const unready = object({ status: { const: "not ready" }, reasons: { type: "array", items: notReady, minItems: 1 } }, [
  "status",
  "reasons",
]);

export const adminPaths: Readonly<Record<string, AdminOperation>> = {
  "GET /healthz": {
    summary: "Whether the process runs",
    description: 'For the rule "restart it if it doesn\'t answer".',
    responses: {
      200: json("It runs", object({ status: { enum: ["ok", "stopping"] } }, ["status"]), { status: "ok" }),
    },
  },
  "GET /readyz": {
    summary: "Whether the next request would be sent, at once or in its turn, to a terminal that is there",
    responses: {
      200: json("It would", ready, { status: "ready" }),
      503: json("It would wait or be refused", unready),
    },
  },
  "GET /status": {
    summary: "The process, each line, each service and the journal",
    responses: { 200: json("The status", status) },
  },
  "GET /metrics": {
    summary: "Counters and histograms for Prometheus",
    responses: {
      200: {
        description: "The text format of Prometheus",
        content: { "text/plain": { schema: text } },
      },
    },
  },
  "GET /events": {
    summary: "What happens, as server-sent events",
    description:
      "The first event of a connection is `hello`. The others: `exchange` (with `phase`: waiting, sent, written, replying, ended), `line`, " +
      "`discard`, `late`, `service`, `operation` and `ready`; the data of each is one line of JSON. An `exchange` that posline itself " +
      "asks has `background`: true, and the `callId` that it asks about in `about`. A comment comes every 15 s.",
    parameters: [
      { name: "Last-Event-ID", in: "header", schema: text, description: "Continue after this event, of the last 512" },
      { name: "lastEventId", in: "query", schema: text, description: "The same, where the header can't be set" },
      {
        name: "recent",
        in: "query",
        schema: { type: "integer", minimum: 0, maximum: 512 },
        description: "Begin with the last so many",
      },
    ],
    responses: {
      200: { description: "A stream that goes on", content: { "text/event-stream": { schema: text } } },
    },
  },
  "GET /tap": {
    summary: "The frames that go over the lines, masked, as they go",
    description: "For `posline tap`: a line of JSON for each frame, until it is closed.",
    parameters: [{ name: "line", in: "query", schema: text, description: "Of this line alone, by its name" }],
    responses: {
      200: { description: "A stream that goes on", content: { "application/x-ndjson": { schema: text } } },
    },
  },
  "GET /recording": {
    summary: "What the lines were given last, masked",
    description: "For `posline replay`: JSON lines.",
    responses: { 200: { description: "The recording", content: { "application/x-ndjson": { schema: text } } } },
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
    requestBody: bodyOf({
      type: "object",
      required: ["service"],
      properties: {
        service: text,
        sale: object(
          { amount: { type: "integer", minimum: 1, description: "Minor units" }, currency: text },
          ["amount", "currency"],
          "Absent: a question alone",
        ),
      },
    }),
    responses: {
      200: json("What came of the question, or the test sales", {
        anyOf: [
          object({ service: text, outcome: text, ms: { type: "number" }, offer: { type: "object" }, error: text }, [
            "service",
            "outcome",
          ]),
          testSales,
        ],
      }),
      400: json("There is no such service, or no such test", object({ error: text }, ["error"])),
      409: json("A test sale of the service is under way", object({ error: text }, ["error"])),
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
    requestBody: bodyOf({
      type: "object",
      properties: {
        ask: { type: "integer", description: "The number of the question" },
        answer: { ...text, description: "A device's path; the merchant's id, or nothing; `yes` to write" },
        stop: { enum: [true], description: "If `yes` was not answered yet, nothing is written" },
      },
    }),
    responses: {
      200: json("How far it has come", setupView),
      400: json("There is no such request", object({ error: text }, ["error"])),
      409: json("Another setup is under way, or the question is over", object({ error: text }, ["error"])),
    },
  },
  "POST /journal/settle": {
    summary: "Record how an operation of unknown outcome ended, by what a person saw at the terminal",
    requestBody: bodyOf({
      type: "object",
      required: ["key", "as", "note"],
      properties: {
        key: { ...text, description: "pay_id or documentExtID" },
        as: { enum: ["done", "not-done"] },
        note: { ...text, description: "What was seen, and by whom" },
        service: text,
        route: text,
        folder: { ...text, description: "Of the journal that is meant" },
      },
    }),
    responses: {
      200: json("It is on the disk", object({ settled: { type: "array", items: { type: "object" } } }, ["settled"])),
      400: json("There is no such operation, or several", object({ error: text }, ["error"])),
      503: json("It was taken, and the disk has not: it is written once that is possible", object({ error: text }, ["error"])),
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
    responses: {
      200: json("An OpenAPI 3.1 document", object({ openapi: text, info: { type: "object" } }, ["openapi", "info"])),
    },
  },
  "GET /emulator": {
    summary: "What the emulator remembers, and what it was asked to do",
    responses: { 200: json("Its state", emulatorState) },
  },
  "POST /emulator": {
    summary: "Have the emulator's next operation go wrong, move its time on, or reset it",
    description: "A request is carried out whole or not at all.",
    requestBody: {
      required: true,
      content: {
        "application/json": {
          schema: {
            type: "object",
            minProperties: 1,
            additionalProperties: false,
            properties: {
              reset: { type: "boolean", description: "Forget everything" },
              advanceMs: { type: "integer", minimum: 0, description: "Milliseconds by which its time moves on" },
              next: {
                anyOf: [forced, { type: "array", items: forced }],
                description: "What becomes of the next request, or of the next ones",
              },
              chances: {
                type: "object",
                additionalProperties: { type: "number", minimum: 0, maximum: 1 },
                description: "The share of answers that have a fault, by fault",
              },
            },
          },
          example: { next: { service: "bank", route: "/sale", outcome: "declined" } },
        },
      },
    },
    responses: { 200: json("Its state", emulatorState) },
  },
};
