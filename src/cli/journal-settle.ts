import { adminOfBox } from "../config/admin-target.ts";
import type { AdminConfig, Config } from "../config/config.ts";
import { contractOf } from "../contract/contracts.ts";
import { codeOf } from "../core/error-code.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { printable, quoted } from "../core/shell-text.ts";
import { nodeDisk } from "../journal/disk.ts";
import { JournalError } from "../journal/errors.ts";
import { readJournal } from "../journal/reader.ts";
import { type JournalOperation, joinOperations, type SentRecord } from "../journal/record.ts";
import { Recorder, recordMs } from "../journal/recorder.ts";
import { slotBytes } from "../journal/slot.ts";
import { chosenBy, endBy, type OperatorSettle } from "../operations/operator-settle.ts";
import { mayBeSettled } from "../operations/recall.ts";
import { pageKeyIn } from "./page.ts";

/**
 * `posline journal settle`: the person who looked at the terminal says how an operation ended. A posline that runs writes its journal
 * alone, so then it is asked to; otherwise the command appends the record itself.
 */

/**
 * What a running posline answers on its admin port; undefined where it can't be reached, and "unanswered" where it may have taken the
 * request: one that hangs reads it as soon as it goes on.
 */
export type AskAdmin = (
  admin: AdminConfig,
  method: "GET" | "POST",
  path: string,
  body?: string,
) => Promise<JsonObject | "unanswered" | undefined>;

/** Milliseconds for an answer of the admin port, which is on this box: from memory, or once what it is given is on the disk. */
const adminMs = { GET: 5_000, POST: recordMs + 5_000 } as const;

/** Asks it over HTTP. */
export const askAdmin: AskAdmin = async (admin, method, path, body) => {
  const { url, headers: known } = adminOfBox(admin);
  let headers = known;
  if (method === "POST" && admin.token === undefined) {
    const facts = await askAdmin(admin, "GET", "/page/paths.json");
    // Nothing was sent yet that could be taken.
    if (facts === undefined || facts === "unanswered") return undefined;
    const key = pageKeyIn(facts["keyFile"], "settle");
    if (key !== undefined) headers = { Authorization: `Bearer ${key.session()}` };
  }
  try {
    const response = await fetch(new URL(path, url), {
      method,
      ...(body === undefined ? { headers } : { body, headers: { ...headers, "Content-Type": "application/json" } }),
      signal: AbortSignal.timeout(adminMs[method]),
    });
    const answer: unknown = await response.json();
    return isObject(answer) ? answer : undefined;
  } catch (error) {
    // No posline answers so.
    if (error instanceof SyntaxError) return undefined;
    const cause = error instanceof Error ? codeOf(error.cause) : undefined;
    return unreached.has(cause ?? "") ? undefined : "unanswered";
  }
};

/** Why no connection was made, so that nothing was sent over it. */
const unreached: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Where the journal is, and who may be keeping it. */
export interface JournalSettleTarget {
  readonly folder: string;
  readonly admin: AdminConfig;
  readonly services: Config["services"] | undefined;
}

/** How often it is looked whether a running posline has written the record, and how long between two looks, in milliseconds. */
const looks = 50;
const lookMs = 100;

/**
 * Settles an operation.
 * @returns what was recorded, as a sentence.
 * @throws JournalError saying why nothing was, and what to do.
 */
export async function settleByOperator(target: JournalSettleTarget, wanted: OperatorSettle, ask: AskAdmin): Promise<string> {
  const { folder, admin } = target;
  const { records, slots, isWritten: isLocked } = await readJournal(folder);
  // On a full disk, or one that has no sockets, a posline that runs holds no lock.
  const isWritten = isLocked || (await askAboutJournal(target, ask)) !== undefined;
  const contract = (service: string) => contractOf(service, target.services);
  const isOpen = (each: JournalOperation) =>
    (each.lost || !isWritten || each.ending) && mayBeSettled(each, contract(each.sent.service));
  const all = joinOperations(records);
  const settled = all.filter((each) => each.settled?.by === "operator");
  const chosen = chosenBy(all.filter(isOpen), wanted, settled);
  if (!isWritten) await append(target, wanted, chosen, slots);
  else {
    const answer = await ask(admin, "POST", "/journal/settle", JSON.stringify({ ...wanted, folder }));
    if (answer === undefined) {
      throw new JournalError(
        `Cannot settle "${wanted.key}": posline runs and keeps the journal, and its admin port (${admin.host}:${admin.port}) does not ` +
          "answer: check admin in the configuration, or stop posline first",
      );
    }
    if (answer === "unanswered") {
      throw new JournalError(
        `Cannot say whether "${wanted.key}" is settled: posline runs, and its admin port (${admin.host}:${admin.port}) took it and gave no ` +
          `answer: it may be settled yet. See posline journal --key ${quoted(wanted.key)} before you settle it again`,
      );
    }
    if (typeof answer["error"] === "string") throw new JournalError(answer["error"]);
    await untilWritten(folder, chosen, wanted, records.at(-1)?.sequence ?? 0);
  }
  const which = [...new Set(chosen.map(({ sent }) => settledName(sent)))];
  const again = wanted.as === "not-done" ? ": if the same call comes again, it is sent" : "";
  return `${printable(which.join(", "))} is settled: ${wanted.as}${again}`;
}

/** With its amount, by which a person sees which of several under one key it was. */
const settledName = ({ service, route, key, requestId, amount }: SentRecord) =>
  `${service} ${route} ${key ?? requestId}${amount === undefined ? "" : ` of ${amount}`}`;

/** What a posline that runs and keeps this journal says of it; undefined where none does. */
export async function askAboutJournal(
  { folder, admin }: Pick<JournalSettleTarget, "folder" | "admin">,
  ask: AskAdmin,
): Promise<JsonObject | undefined> {
  const status = await ask(admin, "GET", "/status");
  const journal = isObject(status) ? status["journal"] : undefined;
  return isObject(journal) && journal["folder"] === folder ? journal : undefined;
}

/** Appends what posline itself would; the file keeps its size, and nothing else in it changes. */
async function append(
  { folder, services }: JournalSettleTarget,
  { as, note }: OperatorSettle,
  chosen: readonly JournalOperation[],
  slots: number,
): Promise<void> {
  const problems: string[] = [];
  const ignore = () => {};
  const unheard = { recovered: ignore, noticed: ignore, found: ignore, onSettled: ignore };
  const report = { ...unheard, failed: (reason: string) => problems.push(reason) };
  const bytes = slots * slotBytes;
  const recorder = new Recorder({ disk: nodeDisk, folder, bytes, report, onReplaced: ignore, onFirstRead: ignore });
  try {
    for (const { sequence, sent } of chosen) {
      const end = { result: endBy(as, contractOf(sent.service, services)), by: "operator", note } as const;
      const record = { kind: "settled", timeMs: Date.now(), sent: sequence, digest: sent.digest, ...end } as const;
      if (!(await recorder.add(record).recorded))
        throw new JournalError(problems[0] ?? `Cannot write the journal in ${folder}`);
    }
  } finally {
    await recorder.close();
  }
}

/** Waits until the running posline has the records on the disk, after that of a number. */
async function untilWritten(
  folder: string,
  chosen: readonly JournalOperation[],
  { key }: OperatorSettle,
  after: number,
): Promise<void> {
  for (let look = 0; look < looks; look++) {
    const { records } = await readJournal(folder);
    const news = records.flatMap(({ sequence, record }) =>
      sequence > after && record.kind === "settled" ? [record.sent] : [],
    );
    if (chosen.every(({ sequence }) => news.includes(sequence))) return;
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
  throw new JournalError(
    `Cannot say that "${key}" is settled: posline took it, and has not written it within ${(looks * lookMs) / 1_000} s: look at ` +
      "the state of the journal in /status",
  );
}
