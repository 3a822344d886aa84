import { hash } from "node:crypto";
import { lineStates, stateEvents, transitions } from "../../src/line/states.ts";
import { type Choice, LineModel } from "./line-model.ts";
import { type OpenEngine, openEngine } from "./open-engine.ts";
import { type Part, partMs, type Row } from "./part.ts";

/**
 * Every sequence of events of a line with two services, up to a depth, from a few beginnings. Two sequences that lead to the same state
 * of engine, calls and terminal are gone on with once: what follows is the same.
 */

/** How deep at most; the time may be over before. */
const depthMax = 7;

/** The engine that is looked at now notes its transitions here. */
type Edges = Set<string>;

interface Beginning {
  readonly name: string;
  /** Makes what makes it, as often as it is wanted. */
  readonly begin: (open: OpenEngine) => () => LineModel;
}

export const beginnings: readonly Beginning[] = [
  { name: "a line that begins", begin: (open) => () => new LineModel(open) },
  {
    name: "a line that begins, and a call of the process before is still owed an answer",
    begin: (open) => () => {
      const model = new LineModel(open);
      model.oweFormerCall();
      return model;
    },
  },
  {
    name: "a line whose terminal answers one service's probes with something of its own, and the other's not",
    begin: (open) => {
      const rest = LineModel.answeredOddly(open);
      return () => new LineModel(open, rest);
    },
  },
  {
    name: "a clean line",
    begin: (open) => {
      const rest = LineModel.clean(open);
      return () => new LineModel(open, rest);
    },
  },
];

interface Search {
  /** Depth that was looked at whole. */
  depth: number;
  states: number;
  sequences: number;
  /** States by depth. */
  broken: string | undefined;
}

/** Breadth first, so that what breaks is found by a shortest sequence. */
export function search({ begin }: Beginning, open: OpenEngine, untilMs: number): Search {
  const start = begin(open);
  const found: Search = { depth: 0, states: 1, sequences: 0, broken: undefined };
  const seen = new Set([digestOf(start().key)]);
  let level: (readonly Choice[])[] = [[]];
  for (let depth = 1; depth <= depthMax && level.length > 0; depth++) {
    const next: (readonly Choice[])[] = [];
    for (const path of level) {
      if (performance.now() > untilMs) return found;
      for (const choice of at(start(), path).choices()) {
        found.sequences++;
        const longer = [...path, choice];
        try {
          const state = digestOf(at(start(), longer).key);
          if (seen.has(state)) continue;
          seen.add(state);
          next.push(longer);
        } catch (error) {
          found.broken = `${error instanceof Error ? error.message : String(error)}: ${longer.map(textOf).join(", ")}`;
          return found;
        }
      }
    }
    found.depth = depth;
    found.states = seen.size;
    level = next;
  }
  return found;
}

/** Millions of states are kept, each of a thousand characters and more. */
const digestOf = (key: string): string => hash("sha1", key, "binary");

function at(model: LineModel, path: readonly Choice[]): LineModel {
  for (const choice of path) model.take(choice);
  return model;
}

const textOf = ({ what, timing }: Choice) => `${what} (${timing})`;

/** Each change of state that the engine makes from now on is noted. */
function noteEdges({ LineEngine }: OpenEngine, edges: Edges): void {
  // Its private method, readable as compiled: the only place where the state changes.
  const open = LineEngine.prototype as unknown as { p_take(this: { readonly p_state: string }, ...args: unknown[]): void };
  const take = open.p_take;
  open.p_take = function (event, ...more) {
    edges.add(`${this.p_state} ${String(event)}`);
    take.call(this, event, ...more);
  };
}

export const exhaustive: Part = {
  name: "exhaustive",
  run: async (options) => {
    const open = await openEngine();
    const edges: Edges = new Set();
    noteEdges(open, edges);
    const beganMs = performance.now();
    const rows: Row[] = [];
    for (const [index, beginning] of beginnings.entries()) {
      // What one beginning leaves of its time is the next ones'.
      const leftMs = beganMs + partMs(options) - performance.now();
      const { depth, states, sequences, broken } = search(
        beginning,
        open,
        performance.now() + leftMs / (beginnings.length - index),
      );
      const { name } = beginning;
      rows.push(
        { what: `promises broken, from ${name}`, value: broken === undefined ? 0 : 1, most: 0, note: broken ?? "" },
        { what: `depth, from ${name}`, value: depth, note: depth < depthMax ? "the time was over" : "whole" },
        { what: `states, from ${name}`, value: states },
        { what: `sequences, from ${name}`, value: sequences, note: "those behind equal states are not counted" },
      );
    }
    return [...rows, ...edgeRows(edges)];
  },
};

/** The table's cells that were reached, and those that were not. */
function edgeRows(edges: Edges): readonly Row[] {
  const all = lineStates.flatMap((state) =>
    stateEvents.filter((event) => transitions[state][event] !== undefined).map((event) => `${state} ${event}`),
  );
  const missing = all.filter((each) => !edges.has(each));
  const reached = lineStates.filter((state) => [...edges].some((edge) => edge.startsWith(`${state} `)) || state === "closed");
  return [
    { what: "states of the table that were reached", value: reached.length, note: reached.join(", ") },
    { what: "edges of the table that were reached", value: all.length - missing.length, note: `of ${all.length}` },
    { what: "edges that were not reached", value: missing.length, note: missing.join(", ") },
  ];
}
