import type { Contract, Route } from "../../contract/contract.ts";
import type { ContractName } from "../../core/call.ts";
import { durationText } from "../../core/duration.ts";
import { checkFirst } from "../../core/fault.ts";
import described from "./service.json" with { type: "json" };

/** A service's document in words: above all what an unknown outcome means, and what to do then. */

/** What may have happened, and how to learn it, as the faults' messages say it. */
const mayHaveBeen = (service: ContractName) => checkFirst[service].replace(/^Outcome unknown, /, "");

/** The document's introduction, as Markdown. */
export function introduction(contract: Contract, faultStatus: 200 | undefined): string {
  const { service, codes, inProgress, faultsInOk, faultCodes } = contract;
  const ofContent = codes.filter(({ code }) => faultsInOk.some((kind) => faultCodes[kind] === code));
  const contents = ofContent.map(({ code }) => code).join(", ");
  return [
    `A ${service} terminal on a serial line, reached through posline. Bodies are the terminal's own, byte for byte; posline adds ` +
      "headers, and answers by itself only when an exchange fails. Unknown fields travel on, in both directions.",
    "",
    "## Was it sent?",
    "",
    "Each answer says it in `X-Posline-Outcome`. Decide by that header, not by the HTTP status alone:",
    "",
    "- `answered` (200): the terminal answered, and the body is its answer, whatever its `status` and `code`.",
    "- `not-sent`: nothing reached the terminal. It may be sent again, after `Retry-After` or with the request fixed, unless an earlier try is in doubt.",
    `- \`unknown\`${faultStatus === undefined ? " (502, 504)" : ""}: the request was sent, and nobody knows whether it was carried out. ` +
      "**Never take it for a failure, " +
      `and never send a new operation in its place.** Whatever came back, ${mayHaveBeen(service)}.`,
    "",
    "A request whose answer never reached the till, because its own timeout or its connection ended first, is `unknown` too.",
    "posline never sends twice what moves money, prints or changes state.",
    "",
    "`X-Posline-Reason` says why, in one word of a closed list; `message` is for people.",
    ...(contents === ""
      ? []
      : ["", `Faults about a request's content (code ${contents}) come in HTTP 200, as the service itself sends them.`]),
    "",
    ...(faultStatus === undefined ? [] : ["This one is configured to answer faults in HTTP 200 (`faultStatus`).", ""]),
    "A path that the service doesn't have is answered with 404, another method with 405 and `Allow`.",
    "",
    "## Codes of the service",
    "",
    `Decide by \`status\` first. While it can't tell the end yet, the service says \`${inProgress.status}\` ` +
      `${inProgress.code === undefined ? "without a result" : `with code ${inProgress.code}`}.`,
    "",
    "| code | meaning |",
    "|---|---|",
    ...codes.map(({ code, name, meaning }) => `| ${code} | ${name === undefined ? "" : `${name}: `}${meaning} |`),
  ].join("\n");
}

/** A route's meaning, as Markdown. */
export function routeDescription(contract: Contract, route: Route): string {
  const { effect, polling, urgent, replyTimeoutMs, body } = route;
  const paragraphs = [
    effect === "none"
      ? "Only reads: whatever the outcome, it may be sent again."
      : `${described.tags[effect].description}. ${moneyRule(contract, route)}`,
    polling === undefined
      ? ""
      : `Follow it by \`${polling.route}\` with the same ${listed(polling.keys)}, every ${polling.intervalMs.min} to ` +
        `${polling.intervalMs.max} ms, until its result is final.`,
    urgent ? "Goes before all requests that wait for the line." : "",
    body === "none" ? "Takes no body; one that comes is passed on." : "",
    `posline waits ${durationText(replyTimeoutMs)} for the terminal's reply, unless \`replyTimeoutMs\` says otherwise. Wait longer than ` +
      "that for this answer, and for the calls that may be before it in the queue.",
  ];
  return paragraphs.filter((text) => text !== "").join("\n\n");
}

/** Advice after each outcome of a route that does something. */
function moneyRule({ service }: Contract, { key }: Route): string {
  const notSent = `After \`not-sent\` it may be sent again${key === undefined ? "" : `, with the same \`${key}\``}.`;
  if (key === undefined) {
    return `${notSent} After \`unknown\` it may have been carried out: look at the terminal before it is sent again.`;
  }
  return `${notSent} After \`unknown\` ${mayHaveBeen(service)}.`;
}

const listed = (keys: readonly string[]) => keys.map((key) => `\`${key}\``).join(", ");
