import { nowMs } from "../core/clock.ts";
import { loggedSentence } from "../core/log-text.ts";
import { quoted } from "../core/shell-text.ts";
import type { JournalSource, LineSource, LiveService, StatusLineState, StatusSources } from "./status-sources.ts";

/** Whether the next request would be sent, at once or in its turn, to a terminal that is there, and if not, why and what to do. */

/** A reason why a till's next request would wait for more than its turn, or be refused. */
export interface NotReady {
  readonly what: "process" | "line" | "service" | "journal";
  /** The line's name. */
  readonly line?: string;
  readonly service?: string;
  readonly state: string;
  /** Why the line is in that state, for people. */
  readonly reason: string;
  /** The cure: a command to paste, or something to wait for. */
  readonly cure: string;
}

/**
 * Each reason why the next request would wait or be refused; none if all is well.
 * @param sinceMs Milliseconds for which a line has been in its state.
 */
export function notReady(
  { lines, journal }: StatusSources,
  stopping: boolean,
  sinceMs: (line: LineSource) => number,
): readonly NotReady[] {
  return [
    ...(stopping ? [stops] : []),
    ...lines.flatMap((line) => lineNotReady(line, sinceMs(line))),
    ...(journal === undefined ? [] : journalNotReady(journal)),
  ];
}

const stops: NotReady = {
  what: "process",
  state: "stopping",
  reason: "posline is stopping: the exchange in flight may finish, new requests are refused",
  cure: "wait until it has started again: systemctl status posline",
};

/**
 * Milliseconds after which a recovery is longer than usual, and may not end by itself: three services at 9600 baud take 25 s
 * (docs/limits.md).
 */
const usualRecoveryMs = 30_000;

/** The cure for a line in each state, after so many milliseconds in it; undefined if a request is sent at once. */
const cures: Readonly<Record<StatusLineState, ((name: string, sinceMs: number) => string) | undefined>> = {
  idle: undefined,
  awaiting: undefined,
  open: undefined,
  recovering: (name, sinceMs) =>
    sinceMs < usualRecoveryMs
      ? `wait: this takes a few seconds, at 9600 baud up to half a minute; if it takes longer: sudo posline doctor --line ${name}`
      : `sudo posline doctor --line ${name}`,
  down: (name) => `sudo posline doctor --line ${name}`,
  closed: () => "the line is closed for good: sudo systemctl restart posline",
};

function lineNotReady({ name, queueCallsMax, live }: LineSource, sinceMs: number): readonly NotReady[] {
  const { state, reason, waiting = 0 } = live;
  const cure = cures[state];
  if (cure !== undefined) {
    return [{ what: "line", line: name, state, reason: loggedSentence(reason), cure: cure(quoted(name), sinceMs) }];
  }
  const unheard = servicesOf(live).flatMap(({ service, state: serviceState, cause }): readonly NotReady[] =>
    serviceState !== "unheard" || cause === undefined
      ? []
      : [
          {
            what: "service",
            line: name,
            service,
            state: serviceState,
            reason: loggedSentence(cause.cause),
            cure: loggedSentence(cause.cure),
          },
        ],
  );
  return queueCallsMax === undefined || waiting < queueCallsMax ? unheard : [queueFull(name, queueCallsMax), ...unheard];
}

/** A reason for a full queue: a clean line takes calls in turn, and refuses the call that finds no place. */
function queueFull(line: string, callsMax: number): NotReady {
  return {
    what: "line",
    line,
    state: "queue-full",
    reason: `${callsMax} calls are waiting, which is the limit: more are refused`,
    cure: "wait until the terminal has answered; if it lasts, see who calls, and what holds the terminal up: posline logs --live",
  };
}

const servicesOf = (live: LineSource["live"]): readonly LiveService[] => live.liveness?.(nowMs()) ?? [];

/** Facts that keep no till waiting, and should be known all the same. */
export function notesOf(sources: StatusSources): readonly string[] {
  const { journal, log } = sources;
  return [
    ...unprovenServices(sources),
    ...refusingServices(sources),
    ...(journal === undefined ? [] : journalNotes(journal)),
    ...(log === undefined || log.state === "ok" ? [] : [log.state]),
  ];
}

/** Services whose readiness is unproven: on a clean line, nothing heard yet, and posline sends them no probe. */
function unprovenServices({ lines }: StatusSources): readonly string[] {
  return lines.flatMap(({ name, live }) =>
    servicesOf(live).flatMap(({ service, state }) =>
      state === "unproven"
        ? [`posline sends no probe to ${service} on line ${name}: only a call shows whether it is there`]
        : [],
    ),
  );
}

/** Services that answer posline's own question with an error: calls sent to them may be refused likewise. */
function refusingServices({ lines }: StatusSources): readonly string[] {
  return lines.flatMap(({ live }) =>
    servicesOf(live).flatMap(({ refusal }) =>
      refusal === undefined ? [] : [loggedSentence(`${refusal.cause}: ${refusal.cure}`)],
    ),
  );
}

/** The effect of a journal that can't be written, by `onFailure`: in the log, and in the notes. */
export const journalFails: Readonly<Record<JournalSource["onFailure"], string>> = {
  relay: "the journal can't be written: requests are sent without a record",
  refuse: "the journal can't be written: requests that move money, print or change state are refused",
};

/** A note on the journal: if requests go on without a record, nobody would learn of it from a sale. */
function journalNotes({ onFailure, live: { state, isReadable } }: JournalSource): readonly string[] {
  const unwritten = state === "ok" || onFailure === "refuse" ? [] : [`${journalFails[onFailure]}: ${loggedSentence(state)}`];
  const unread = "the journal has not been read since posline started: what was in doubt before is not known";
  return isReadable === false ? [...unwritten, unread] : unwritten;
}

/**
 * A reason if the journal refuses requests. A journal that fails while requests go on without a record is a note: it keeps no till waiting.
 */
function journalNotReady({ onFailure, live: { state } }: JournalSource): readonly NotReady[] {
  if (state === "ok" || onFailure !== "refuse") return [];
  const cure = 'fix the disk, or set journal.onFailure to "relay" to go on without a record';
  return [{ what: "journal", state: "failing", reason: loggedSentence(state), cure }];
}
