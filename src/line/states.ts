/**
 * The states of a line, and the only place where one becomes another.
 *
 * None of the three protocols carries a request's id, so the next frame is taken for the answer. A late answer given to another
 * call is the worst thing this product could do. Hence `recovering`: nothing is sent for a caller until each service is in step, or set aside.
 */

/** `down`: no device. `recovering`: open, some service isn't in step. `idle`: each is, or is set aside. `awaiting`: one request is out. `closed`: for good. */
export const lineStates = ["down", "recovering", "idle", "awaiting", "closed"] as const;
export type LineState = (typeof lineStates)[number];

/**
 * `up`: the device opened. `send`: a request's first byte goes out. `frame`: a frame that was asked for: the reply, or the answer
 * to a probe. `stray`: a whole frame that nobody asked for. `fail`: no reply in time, or none that is whole and correct.
 * `clean`: each service is in step, or set aside. `down`: the device is lost. `close`: posline stops.
 */
export const stateEvents = ["up", "send", "frame", "stray", "fail", "clean", "down", "close"] as const;
export type StateEvent = (typeof stateEvents)[number];

/** The next state, by state and event. A pair that isn't here can't happen; if it does, that is a bug. */
export const transitions: Readonly<Record<LineState, Readonly<Partial<Record<StateEvent, LineState>>>>> = {
  down: { up: "recovering", close: "closed" },
  recovering: { frame: "recovering", stray: "recovering", clean: "idle", down: "down", close: "closed" },
  // A stray frame while idle means that question and answer are out of step: the next reply would be the wrong one.
  idle: { send: "awaiting", frame: "idle", stray: "recovering", down: "down", close: "closed" },
  awaiting: { frame: "idle", stray: "awaiting", fail: "recovering", clean: "idle", down: "down", close: "closed" },
  closed: {},
};

/**
 * The state after an event.
 * @throws Error for a pair that the table doesn't have.
 */
export function nextState(state: LineState, event: StateEvent): LineState {
  const next = transitions[state][event];
  if (next === undefined) throw new Error(`Cannot take ${event} on a line: it is ${state}, and the table has no such cell`);
  return next;
}

/** The table as Markdown, for docs/architecture.md. */
export function transitionTable(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["state \\ event", ...stateEvents]),
    row(["---", ...stateEvents.map(() => "---")]),
    ...lineStates.map((state) => row([`**${state}**`, ...stateEvents.map((event) => transitions[state][event] ?? "")])),
  ].join("\n");
}
