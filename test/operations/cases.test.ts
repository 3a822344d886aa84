import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { virtualTime } from "../support/virtual-time.ts";
import { type Answer, type Case, Shop, type Step } from "./shop.ts";
import { absent, final, success } from "./whole-box.ts";

/**
 * Tests src/operations/whose.ts, src/operations/hearing.ts, src/operations/sending.ts, src/operations/answer.ts.
 *
 * The cases of docs/keys.md: what is sent and answered, and the word that a till is given then. Every contract, by the handlers of a bridge.
 */

const time = virtualTime();
afterEach(() => time.forgetTimers());

const approved = final("APPROVED", "T-1");
const declined = final("ERROR", "T-1");
/** A terminal that loses an operation's answer, and says this of it. */
const losing =
  (...says: readonly object[]): Answer =>
  (route, _, count) =>
    route.startsWith("/check") ? (says[count - 1] ?? says.at(-1)) : undefined;

const closed = { status: "success", docStatus: 1, documentID: 7 };
const noDocument = { status: "error", code: 9 };
const code = { status: "success", data: { trans: "T-9" } };
const paid = { status: "success", data: { rrn: "77", trans: "T-9" } };

type More = { readonly body?: object; readonly by?: string; readonly waitS?: number };
/** Sent with the header, and what is told then. */
const told = (send: string, is: string, more: More = {}): Step => ({ send, is, ...more });
/** Sent without the header. */
const plain = (send: string, more: More = {}): Step => ({ send, plain: true, ...more });

const cases: readonly Case[] = [
  { name: "alone: what /check says counts", answer: losing(success, approved), steps: [told("/sale", "approved")] },
  { name: "alone: so does that it was declined", answer: losing(declined), steps: [told("/sale", "declined")] },
  {
    name: "alone: an answer to the till's own question counts as well, and the same call again is only asked about",
    answer: losing(approved),
    steps: [plain("/sale"), { check: "/check" }, { restart: true }, told("/sale", "approved")],
  },
  {
    name: "'there is none' counts after 30 s, said three times, and then the same call is sent again",
    answer: losing(absent),
    steps: [told("/sale", "failed"), told("/sale", "failed")],
    times: 2,
  },
  {
    name: "'there is none' proves nothing once a batch was closed behind it",
    answer: (route) => (route === "/check" ? absent : route === "/sale" ? undefined : success),
    steps: [plain("/sale"), plain("/close-shift", { body: { pay_id: "Z" } }), told("/sale", "unknown")],
  },
  {
    name: "'there is none' proves nothing of what the terminal had, and that doesn't go on either",
    answer: losing(success, absent),
    steps: [told("/sale", "unknown")],
  },
  {
    name: "an end in its data is one, though its code says that there is none",
    answer: losing(success, { ...final("ERROR", "T-1"), code: -15 }),
    steps: [told("/sale", "declined")],
  },
  {
    name: "fiscal: accepted, and denied for good afterwards",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 44 } : noDocument),
    steps: [told("/sale", "unknown")],
  },
  {
    name: "fiscal: closed, and not printed, as a question's answer said",
    contract: "fiscal",
    answer: losing({ status: "error", code: 15 }, closed),
    steps: [told("/sale", "unprinted")],
  },
  {
    name: "qr: /cancel beside a /refund of unknown end, which may have given the payment back, isn't sent",
    contract: "qr",
    answer: (route) => (route === "/refund" ? { status: "error", code: 1 } : { status: "success", data: { rrn: "1" } }),
    steps: [told("/refund", "unknown"), told("/cancel", "422")],
  },
  {
    name: "'failed' is taken back by the terminal's own word",
    answer: (route, { note }) => (route === "/sale" ? undefined : note === "till" ? approved : absent),
    steps: [told("/sale", "failed"), { check: "/check", body: { note: "till" } }, told("/sale", "approved")],
  },
  {
    name: "sent twice without the header: a bad end doesn't count",
    answer: losing(declined),
    steps: [plain("/sale"), plain("/sale"), told("/sale", "unknown")],
    times: 2,
  },
  {
    name: "sent twice without the header: a good one does",
    answer: losing(approved),
    steps: [plain("/sale"), plain("/sale"), told("/sale", "approved")],
    times: 2,
  },
  {
    name: "shared: another body is refused, and the first one goes on",
    answer: losing(success, approved),
    steps: [told("/sale", "approved"), told("/sale", "422", { body: { amount: 200 } }), told("/sale", "approved")],
  },
  {
    name: "shared: another route is refused, after a restart too",
    answer: losing(approved),
    steps: [plain("/sale"), { restart: true }, told("/preauth", "422")],
  },
  {
    name: "shared: another body without the header makes the word unknown",
    answer: losing(approved),
    steps: [plain("/sale"), plain("/sale", { body: { amount: 200 } }), told("/sale", "unknown")],
    times: 2,
  },
  {
    name: "shared: another service's key on the same terminal is refused",
    answer: losing(approved),
    steps: [plain("/sale", { by: "other" }), told("/sale", "422")],
  },
  {
    name: "shared: what another service sends under the key later makes the word unknown",
    answer: losing(approved),
    steps: [plain("/sale"), plain("/sale", { by: "other" }), told("/sale", "unknown")],
    times: 2,
  },
  {
    name: "another terminal's answer counts for nothing, until the service has the first one again",
    answer: losing(approved),
    steps: [plain("/sale"), { move: "two" }, told("/sale", "unknown"), { move: "one" }, told("/sale", "approved")],
  },
  {
    name: "follow-up: what differs from before counts, and is known after a restart",
    answer: (route, _, count) => (route !== "/check" ? success : count <= 2 ? approved : final("APPROVED", "T-2")),
    steps: [told("/sale", "approved"), told("/cancel", "approved"), { restart: true }, told("/cancel", "approved")],
  },
  {
    name: "follow-up: what stood there before is not its end",
    answer: (route) => (route !== "/check" ? success : approved),
    steps: [told("/sale", "approved"), told("/cancel", "unknown")],
  },
  {
    name: "follow-up: without an end of the sale it isn't sent",
    answer: (route) => (route === "/check" ? success : success),
    steps: [plain("/cancel", { body: { pay_id: "B" } }), told("/sale", "pending"), told("/cancel", "failed")],
  },
  {
    name: "follow-up: after a restart what was seen before is forgotten",
    answer: (route, _, count) =>
      route === "/check" ? (count <= 2 ? approved : final("APPROVED", "T-2")) : route === "/sale" ? success : undefined,
    steps: [told("/sale", "approved"), plain("/cancel"), { restart: true }, told("/cancel", "unknown")],
  },
  {
    name: "fiscal: a refund under its own number",
    contract: "fiscal",
    answer: (route, _, count) => (route === "/refund" ? undefined : count <= 3 ? noDocument : closed),
    steps: [told("/refund", "closed"), { restart: true }, told("/refund", "closed")],
  },
  {
    name: "fiscal: a refund under the number of its sale isn't given the sale's end",
    contract: "fiscal",
    answer: (route) => (route.startsWith("/check") ? closed : { status: "success" }),
    steps: [told("/sale", "closed"), told("/refund", "unknown")],
  },
  {
    name: "fiscal: closed, and not printed",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 15 } : closed),
    steps: [told("/sale", "unprinted")],
  },
  {
    name: "fiscal: 'failed' by its own answer is taken back, once the terminal says that it goes on",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 14 } : { status: "success", code: 0, docStatus: 0 }),
    steps: [told("/sale", "failed"), { check: "/check_status", body: { note: "till" } }, told("/sale", "pending")],
  },
  {
    name: "fiscal: what an abort took away has failed",
    contract: "fiscal",
    answer: (route, _, count) =>
      route === "/sale"
        ? { status: "error", code: 44 }
        : route === "/abort"
          ? success
          : count < 2
            ? { status: "error", code: 44 }
            : noDocument,
    steps: [plain("/sale"), { check: "/check_status" }, plain("/abort"), told("/sale", "failed")],
  },
  {
    name: "fiscal: no answer but that it goes on takes back that an abort took it away, and the same call is a new one",
    contract: "fiscal",
    answer: (route, { note }, count) => {
      if (route === "/sale") return { status: "error", code: 44 };
      if (route === "/abort") return success;
      return note === "till" ? { status: "error", code: 5 } : count < 2 ? { status: "error", code: 44 } : noDocument;
    },
    steps: [
      plain("/sale"),
      { check: "/check_status" },
      plain("/abort"),
      told("/sale", "failed"),
      { check: "/check_status", body: { note: "till" } },
      { check: "/check_status" },
      { restart: true },
      { check: "/check_status" },
      { check: "/check_status", body: { note: "till" } },
      told("/sale", "unknown"),
    ],
    times: 2,
  },
  {
    name: "qr: paid by the trans that its answer gave, after a restart too",
    contract: "qr",
    answer: (route, { trans }) => (route === "/showqrcode" ? code : trans === "T-9" ? paid : { status: "error", code: 1 }),
    steps: [plain("/showqrcode"), { restart: true }, told("/showqrcode", "approved")],
  },
  {
    name: "qr: an error proves nothing where the trans is lost",
    contract: "qr",
    answer: losing({ status: "error", code: 1 }),
    steps: [told("/showqrcode", "unknown")],
  },
  {
    name: "qr: what is given back is told apart by its amount, and ended by its own success alone",
    contract: "qr",
    answer: (_, { amount }) => (amount === 300 ? { status: "error", code: 1 } : { status: "success", data: { rrn: "1" } }),
    steps: [
      told("/refund", "approved"),
      told("/refund", "unknown", { body: { amount: 300 } }),
      told("/refund", "422", { body: { amount: 300, note: "x" } }),
      told("/refund", "approved"),
    ],
    times: 2,
  },
  {
    name: "qr: a plain refund whose own answer says that it was carried out is told by the same call, beside its payment",
    contract: "qr",
    answer: (route) => (route === "/showqrcode" ? code : paid),
    steps: [told("/showqrcode", "approved"), plain("/refund"), { restart: true }, told("/refund", "approved")],
  },
  {
    name: "a plain sale that was lost and a second that is refused: none of the second fails the first, after a restart neither",
    answer: (route, _, count) => (route === "/check" ? absent : count === 1 ? undefined : { status: "error", code: -20 }),
    steps: [plain("/sale"), plain("/sale"), { restart: true }, told("/sale", "unknown"), told("/sale", "unknown")],
    times: 2,
  },
  {
    name: "what refuses a new attempt after 'failed' doesn't end the first, which was carried out late",
    answer: (route, _, count) =>
      route === "/check" ? (count === 1 ? absent : approved) : { status: "error", code: count === 1 ? -20 : -80 },
    steps: [told("/sale", "failed"), told("/sale", "approved"), { restart: true }, told("/sale", "approved")],
    times: 2,
  },
  {
    name: "what refuses a new attempt after a restart doesn't either",
    answer: (route, _, count) =>
      route === "/check" ? (count === 1 ? absent : approved) : { status: "error", code: count === 1 ? -20 : -80 },
    steps: [told("/sale", "failed"), { restart: true }, told("/sale", "approved")],
    times: 2,
  },
  {
    name: "a call that is refused once more is refused at once",
    contract: "fiscal",
    answer: (route) => (route === "/sale" ? { status: "error", code: 3 } : noDocument),
    steps: [told("/sale", "failed"), { restart: true }, told("/sale", "failed")],
    times: 2,
  },
  {
    name: "an answer whose data name another key says nothing",
    answer: losing({ ...approved, data: { ...approved.data, pay_id: "OTHER" } }, declined),
    steps: [told("/sale", "declined")],
  },
  {
    name: "without a journal the same call is only asked about as long as posline runs",
    noJournal: true,
    answer: losing(approved),
    steps: [told("/sale", "approved"), told("/sale", "approved")],
  },
];

for (const each of cases) {
  test(`Settling, ${each.name}`, async () => {
    const shop = new Shop(time, each);
    const words: (string | undefined)[] = [];
    const wanted: (string | undefined)[] = [];
    let first: string | undefined;
    for (const step of each.steps) {
      const word = await shop.do(step);
      if (!("send" in step)) continue;
      first ??= step.send;
      words.push(step.is === undefined ? undefined : word);
      wanted.push(step.is);
    }
    assert.deepEqual([words, shop.count(first ?? "")], [wanted, each.times ?? 1]);
  });
}
