import { validateReply } from "../contract/schema.ts";
import type { ContractName } from "../core/call.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { crc32 } from "../wire/crc32.ts";
import type { Answer, Asker } from "./asker.ts";
import { broken, type Check, type Finding, held, ruleOf, unseen } from "./check.ts";

/** What a terminal answers to requests that change nothing: right ones, and wrong ones. */

/** A request that is right, on a route that only reads. */
interface Reading {
  readonly service: ContractName;
  readonly route: string;
  readonly says: readonly [place: string, says: string];
}

const readings: readonly Reading[] = [
  {
    service: "bank",
    route: "/supported_operations",
    says: ["Endpoints", "operations: array of strings (route names without slash"],
  },
  { service: "bank", route: "/terminals", says: ["Endpoints", "terminals: array of terminal objects"] },
  {
    service: "qr",
    route: "/check_connection",
    says: ["Endpoints, responses", "/check_connection: status success, data.systems = array of system entries."],
  },
  {
    service: "fiscal",
    route: "/supported_operations",
    says: ["Endpoints", "operations: array of strings, route names without leading slash"],
  },
  { service: "fiscal", route: "/check_shift", says: ["Endpoints", "shiftID, isShiftOpen, shiftStatus, shiftOpenAt, cash"] },
  { service: "fiscal", route: "/get_info", says: ["Endpoints", "fiscalData: raw JSON value, contents not shown"] },
];

const routeName = (route: string) => route.slice(1).replaceAll("_", "-");

function readingCheck({ service, route, says }: Reading): Check {
  return {
    name: `${service}-${routeName(route)}`,
    title: `${service}: the answer of ${route}`,
    rule: ruleOf(service, ...says),
    service,
    run: async (asker) => {
      const answer = await asker.ask(route);
      if (answer.status === "error") return unseen(`It answers ${route} with an error${codeText(answer)}`);
      return shapeFinding(asker, route, answer);
    },
  };
}

/** Judges an answer by its route's schema. */
export function shapeFinding({ contract }: Asker, route: string, { json }: Answer): Finding {
  const problem = validateReply(contract.service, route, json);
  if (problem !== undefined) return broken(problem.message);
  const slashed = namesIn(json).find((name) => name.startsWith("/"));
  if (slashed !== undefined) return broken(`Its answer to ${route} names ${slashed} with a slash`);
  return held(`Its answer to ${route} has what that route has`);
}

/** The operations that an answer lists. */
function namesIn({ operations, data }: JsonObject): readonly string[] {
  const listed = operations ?? (isObject(data) ? data["operations"] : undefined);
  return Array.isArray(listed) ? listed.filter((name): name is string => typeof name === "string") : [];
}

export const codeText = ({ code }: Answer) => (code === undefined ? "" : ` (code ${code})`);

/** A request that must be refused. */
interface Refusal {
  readonly service: ContractName;
  readonly name: string;
  readonly title: string;
  readonly says: readonly [place: string, says: string];
  readonly ask: (asker: Asker) => Promise<Answer>;
  /** What is wrong with the request, in words behind "a request". */
  readonly what: string;
  /** The code by which the contract has it refused; undefined if any will do. */
  readonly code?: number;
  readonly sells?: true;
}

export function refusalCheck({ service, name, title, says, ask, what, code, sells }: Refusal): Check {
  return {
    name: `${service}-${name}`,
    title: `${service}: ${title}`,
    rule: ruleOf(service, ...says),
    service,
    ...(sells === true && { sells }),
    run: async (asker) => refusalFinding(await ask(asker), what, code),
  };
}

function refusalFinding(answer: Answer, what: string, code: number | undefined): Finding {
  if (answer.status !== "error") return broken(`It answered a request ${what} with status ${String(answer.status)}`);
  if (answer.code === undefined) return broken(`It refused a request ${what} without a code`);
  if (code !== undefined && answer.code !== code) {
    return broken(`It refused a request ${what} with code ${answer.code}; the contract has ${code}`);
  }
  return held(`It refused a request ${what} with code ${answer.code}`);
}

const unknownRoute = "/posline_certify";

const refusals: readonly Refusal[] = [
  {
    service: "bank",
    name: "unknown-route",
    title: "A route that there is none of",
    says: ["Errors", "-80 | operation not supported"],
    ask: (asker) => asker.ask(unknownRoute),
    what: "on a route that there is none of",
    code: -80,
  },
  {
    service: "bank",
    name: "broken-json",
    title: "A body that is no JSON",
    says: ["Errors", "-29 | invalid request parameters or body"],
    ask: (asker) => asker.ask("/check", '{"pay_id":'),
    what: "whose body is cut-off JSON",
    code: -29,
  },
  {
    service: "bank",
    name: "missing-field",
    title: "A required field is missing",
    says: ["Status query request", "pay_id (string, required)"],
    ask: (asker) => asker.ask("/check", {}),
    what: "without its pay_id",
    code: -29,
  },
  {
    service: "bank",
    name: "unknown-key",
    title: "A pay_id that nothing has",
    says: ["Errors", "-15 | transaction not found"],
    ask: (asker) => asker.ask("/check", { pay_id: asker.key("none") }),
    what: "about a pay_id that nothing has",
    code: -15,
  },
  {
    service: "qr",
    name: "unknown-route",
    title: "A route that there is none of",
    says: ["Errors", "An error response has status 'error', code (typically 1) and message"],
    ask: (asker) => asker.ask(unknownRoute),
    what: "on a route that there is none of",
  },
  {
    service: "qr",
    name: "broken-json",
    title: "A body that is no JSON",
    says: ["Errors", "An error response has status 'error', code (typically 1) and message"],
    ask: (asker) => asker.ask("/check", '{"pay_id":'),
    what: "whose body is cut-off JSON",
  },
  {
    service: "qr",
    name: "missing-field",
    title: "A required field is missing",
    says: ["Endpoints, request bodies", "pay_id string R; trans string R; pay_system string R"],
    ask: (asker) => asker.ask("/check", { pay_id: asker.key("none") }),
    what: "without its trans and its pay_system",
  },
  {
    service: "fiscal",
    name: "unknown-route",
    title: "A route that there is none of",
    says: ["Errors", "Every error response has status 'error', an integer code and optionally message."],
    ask: (asker) => asker.ask(unknownRoute),
    what: "on a route that there is none of",
  },
  {
    service: "fiscal",
    name: "wrong-sign",
    title: "A wrong sign",
    says: ["Authentication", "A signature failure returns code 1 (AUTH_ERROR)."],
    ask: (asker) => asker.ask("/check_shift", {}, { sign: Buffer.from("0".repeat(40)).toString("base64") }),
    what: "with a wrong sign",
    code: 1,
  },
  {
    service: "fiscal",
    name: "no-sign",
    title: "No sign",
    says: ["Authentication", "Signature is mandatory for every request, on both transports."],
    ask: (asker) => asker.ask("/check_shift", {}, { sign: "" }),
    what: "without a sign",
  },
  {
    service: "fiscal",
    name: "broken-json",
    title: "Data that are no JSON",
    says: ["Errors, rule 2", "Unparseable JSON or Base64: code 2."],
    ask: (asker) => asker.ask("/check_status", '{"documentExtID":'),
    what: "whose data are cut-off JSON",
    code: 2,
  },
  {
    service: "fiscal",
    name: "broken-base64",
    title: "Data that are no Base64",
    says: ["Errors, rule 2", "Unparseable JSON or Base64: code 2."],
    ask: (asker) => asker.ask("/check_status", undefined, { data: "*posline*" }),
    what: "whose data are no Base64",
    code: 2,
  },
  {
    service: "fiscal",
    name: "missing-field",
    title: "A required field is missing",
    says: ["Errors, rule 2", "Missing required field: code 3."],
    ask: (asker) => asker.ask("/check_status", {}),
    what: "about a document without either of its ids",
    code: 3,
  },
  {
    service: "fiscal",
    name: "unknown-document",
    title: "A documentExtID that nothing has",
    says: ["Errors", "9 | DOCUMENT_NOT_FOUND | document not found"],
    ask: (asker) => asker.ask("/check_status", { documentExtID: asker.key("none") }),
    what: "about a documentExtID that nothing has",
    code: 9,
  },
];

const own: readonly Check[] = [
  {
    name: "qr-prefix",
    title: "qr: a route without its port",
    rule: ruleOf("qr", "Endpoints, Serial", "The :<port> prefix is mandatory and selects the target service"),
    service: "qr",
    run: async (asker) => {
      const { route, isAnswer } = asker.contract.probe;
      await asker.ask(route);
      const exchange = await asker.send(asker.frame([Buffer.from(route)]), {
        asked: `${route}, without the port that selects qr`,
        waitMs: asker.silentMs,
      });
      const [answer] = exchange.answers;
      if (answer !== undefined && isAnswer(answer.json)) return broken(`qr answered ${route} without the port that selects it`);
      await asker.ask(route);
      return held(answer === undefined ? "Without its port nothing is answered" : "Without its port another service is asked");
    },
  },
  {
    name: "qr-unknown-key",
    title: "qr: a payment that there is none of",
    rule: ruleOf("qr", "Endpoints, responses", "final error gives status error, code, message."),
    service: "qr",
    run: async (asker) => {
      const { route, body } = asker.contract.secondProbe;
      return refusalFinding(await asker.ask(route, body), "about a payment that there is none of", undefined);
    },
  },
  {
    name: "fiscal-command-without-slash",
    title: "fiscal: command without a leading slash",
    rule: ruleOf("fiscal", "Endpoints, Serial", "command (required, the route with or without a leading slash)"),
    service: "fiscal",
    run: async (asker) => {
      const { route, isAnswer } = asker.contract.probe;
      const slashed = await asker.ask(route);
      const bare = await asker.ask(route.slice(1));
      if (isAnswer(slashed.json) && isAnswer(bare.json)) return held("It answers both");
      const which = isAnswer(slashed.json) ? "without" : "with";
      return broken(`It doesn't answer a command ${which} a leading slash`);
    },
  },
  {
    name: "fiscal-reserved-checksum",
    title: "fiscal: a checksum that has a byte 03",
    rule: ruleOf(
      "fiscal",
      "Endpoints, Serial frame",
      "After the CRC is calculated, any CRC byte equal to 0x03 is replaced by 0x20.",
    ),
    service: "fiscal",
    run: async (asker) => {
      const { route } = asker.contract.probe;
      const reserved = withReservedChecksum(asker, route);
      const answer = await asker.askRaw(asker.frame(reserved), {
        asked: `${route}, with a byte 03 in its checksum`,
        waitMs: asker.answerMs(route),
      });
      if (answer.status === "error")
        return broken(`It refused a request whose checksum has a byte 03, sent as 20${codeText(answer)}`);
      return held("It took a request whose checksum has a byte 03, sent as 20");
    },
  },
];

/** Numbers that are tried: one in 64 has such a checksum. */
const triesMax = 10_000;

function withReservedChecksum(asker: Asker, route: string): readonly Buffer[] {
  for (let number = 0; number < triesMax; number++) {
    const payload = asker.payload(route, JSON.stringify({ posline: number }));
    const whole = Buffer.concat(payload);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(whole, 0, whole.length, 0));
    if (sum.includes(3)) return payload;
  }
  throw new Error("Cannot make a request whose checksum has a byte 03");
}

/** The checks of answers that change nothing. */
export const answerChecks = (service: ContractName): readonly Check[] => [
  ...readings.filter((each) => each.service === service).map(readingCheck),
  ...refusals.filter((each) => each.service === service).map(refusalCheck),
  ...own.filter((each) => each.service === service),
];
