import { nowMs } from "../core/clock.ts";
import { loggedSentence } from "../core/log-text.ts";
import { quoted } from "../core/shell-text.ts";
import type { LineState, LiveService, Shown, ShownJournal, ShownLine } from "./shown.ts";

/** Whether the next request would be sent at once to a terminal that is there, and if not, why and what to do. */

/** Something that stands between a till and its terminal. */
export interface NotReady {
  readonly what: "process" | "line" | "service" | "journal";
  /** The line's name. */
  readonly line?: string;
  readonly service?: string;
  readonly state: string;
  /** Why it is in that state, for people. */
  readonly reason: string;
  /** What to do: a command to paste, or something to wait for. */
  readonly cure: string;
}

/** Each reason why the next request would wait or be refused; none when all is well. */
export function notReady({ lines, journal }: Shown, stopping: boolean): readonly NotReady[] {
  return [
    ...(stopping ? [stops] : []),
    ...lines.flatMap(lineNotReady),
    ...(journal === undefined ? [] : journalNotReady(journal)),
  ];
}

const stops: NotReady = {
  what: "process",
  state: "stopping",
  reason: "posline was told to stop: what is in flight may end, nothing new is taken",
  cure: "wait until it has started again: systemctl status posline",
};

/** What to do about a line in each state; undefined where a request is sent at once. */
const cures: Readonly<Record<LineState, ((name: string) => string) | undefined>> = {
  idle: undefined,
  awaiting: undefined,
  open: undefined,
  recovering: (name) => `wait: it mostly takes less than a second; if it lasts: posline doctor --line ${name}`,
  down: (name) => `posline doctor --line ${name}`,
  closed: () => "it was closed for good: systemctl restart posline",
};

function lineNotReady({ name, live }: ShownLine): readonly NotReady[] {
  const { state, reason } = live;
  const cure = cures[state];
  if (cure !== undefined) {
    return [{ what: "line", line: name, state, reason: loggedSentence(reason), cure: cure(quoted(name)) }];
  }
  return servicesOf(live).flatMap(({ service, state: heard, cause }) =>
    heard !== "unheard" || cause === undefined
      ? []
      : [
          {
            what: "service",
            line: name,
            service,
            state: heard,
            reason: loggedSentence(cause.cause),
            cure: loggedSentence(cause.cure),
          },
        ],
  );
}

const servicesOf = (live: ShownLine["live"]): readonly LiveService[] => live.liveness?.(nowMs()) ?? [];

/** What readiness can't vouch for: services of clean lines of which nothing was heard, and which posline asks nothing by itself. */
export function unprovenOf({ lines }: Shown): readonly string[] {
  return lines.flatMap(({ name, live }) =>
    servicesOf(live).flatMap(({ service, state }) =>
      state === "unproven" ? [`${service} on line ${name} is not asked by posline: only a call shows whether it is there`] : [],
    ),
  );
}

/** One that fails while requests go on without a record is seen in the status: no till is kept waiting by it. */
function journalNotReady({ onFailure, live: { state } }: ShownJournal): readonly NotReady[] {
  if (state === "ok" || onFailure !== "refuse") return [];
  const cure = "mend the disk; requests go on without a record under journal.onFailure relay";
  return [{ what: "journal", state: "failing", reason: loggedSentence(state), cure }];
}
