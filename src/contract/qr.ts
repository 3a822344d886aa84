import { isObject } from "../core/json-object.ts";
import type { Contract, Polling, Probe, Route, SecondProbe } from "./contract.ts";
import { posts } from "./post.ts";

/** The QR and palm payment service: a payment is shown, then polled. Sections named here are those of the qr contract. */

/** Limits: initial command response time-out (recommended), 30 s. */
const replyTimeoutMs = 30_000;

/** Flow rule 2: polled with the same pay_id, trans and pay_system; `trans` comes from the reply of /showqrcode. */
const polling: Polling = { route: "/check", keys: ["pay_id", "trans", "pay_system"], intervalMs: { min: 1000, max: 2000 } };

/** Errors: the one code says nothing, so a server's failure (5xx) can't be told from the service's refusal by it. */
const post = posts({ replyTimeoutMs, key: "pay_id", errorStatusMax: 499 });

/** Flow rule 2 goes on while the answer is success without data, and both states and rule 3 lead there from a start. */
const startWords = { "not-sent": "error", unknown: "in progress" } as const;

/** States: status error on /check ends the payment, and no fault of asking may: a wrong question (4xx) has no word at all. */
const checkWords = { "not-sent": "in progress", unknown: "in progress" } as const;

/** Endpoints: these aren't polled, so success says that it was done and error that it was not. */
const onceWords = { "not-sent": "error", unknown: "none" } as const;

/** Limits: a long in minor units. */
const amounts = ["amount"] as const;

/** Endpoints. No route stops a payment that runs, so none is urgent: /cancel gives back what was paid. */
const routes: readonly Route[] = [
  post("/check_connection", "none", { body: "none", key: undefined }),
  post("/showqrcode", "money", { polling, amounts, faultWords: startWords }),
  // Asked again and again by design (flow rule 3), so it only reads. Its error is believed with a status of success alone
  post("/check", "none", { faultWords: checkWords, errorStatusMax: 299 }),
  post("/cancel", "money", { amounts, faultWords: onceWords }),
  post("/refund", "money", { amounts, faultWords: onceWords }),
  // Hands fiscal data to the payment system and may not be resent blindly (flow rule 3); the money has moved before
  post("/final_confirm", "state", { amounts, faultWords: onceWords }),
];

/** The shape is proof, since only /check_connection answers with `data.systems` (Endpoints, responses). */
const probe: Probe = {
  route: "/check_connection",
  isAnswer: (reply) => reply["status"] === "success" && isObject(reply["data"]) && Array.isArray(reply["data"]["systems"]),
};

/** Asks for the status of a payment that nobody made: the answer is an error, as any call's may be, and never has the probe's shape. */
const secondProbe: SecondProbe = {
  route: "/check",
  body: '{"pay_id":"posline","trans":"posline","pay_system":"posline"}',
  alikeRoutes: [],
  isAnswer: () => false,
};

export const qr: Contract = {
  service: "qr",
  port: 8887,
  framing: "length",
  // Endpoints, serial: mandatory, and it selects the target service
  linePrefix: ":8887",
  envelope: "text",
  replyContentType: "application/json",
  routes,
  decisive: ["pay_id", "trans", "rrn", "pay_system", "amount", "currency", "currency_name"],
  // Errors: "code (typically 1)"; the contract lists no other
  codes: [{ code: 1, name: undefined, meaning: "implementation or system error" }],
  faultCodes: {
    malformed: 1,
    missing: 1,
    date: 1,
    amount: 1,
    sign: 1,
    http: 1,
    method: 1,
    slow: 1,
    size: 1,
    headers: 1,
    reused: 1,
    key: 1,
    origin: 1,
    host: 1,
    route: 1,
    unavailable: 1,
    timeout: 1,
    broken: 1,
  },
  // The HTTP status is all that tells these faults apart, since code 1 says nothing: none of them travels in 200
  faultsInOk: [],
  inProgress: { status: "success", code: undefined },
  probe,
  secondProbe,
  // States: data.rrn is success, status "error" is failure, success without data goes on
  finals: { field: ["data", "rrn"], values: [], pendingCodes: [], errorIsFinal: true, absentCodes: [] },
};
