import type { Status } from "../../src/admin/status.ts";
import type { LineSource, LiveLine, StatusLineState, StatusSources } from "../../src/admin/status-sources.ts";
import type { ContractName } from "../../src/core/call.ts";
import type { ExchangeRecord } from "../../src/core/log-fields.ts";
import type { Discard, DiscardReason, Frame } from "../../src/wire/decoded.ts";

/** Lines, exchanges and frames for the tests of the status. */

/** A line whose state the test sets. */
export interface Played extends LiveLine {
  state: StatusLineState;
  reason: string;
  device?: string | undefined;
  waiting?: number | undefined;
  stalled: number;
}

export function played(state: StatusLineState = "idle", more: Partial<Played> = {}): Played {
  return {
    state,
    reason: "a reason",
    stalled: 0,
    stalledMs() {
      return this.stalled;
    },
    ...more,
  };
}

export function lineSource(name: string, live: LiveLine, more: Partial<LineSource> = {}): LineSource {
  return { name, path: `/dev/${name}`, queueCallsMax: 64, live, ...more };
}

/** One line with the bank on it. */
export function oneLineSources(live: LiveLine): StatusSources {
  return { lines: [lineSource("till", live)], services: [{ service: "bank", line: "till", host: "127.0.0.1", port: 8888 }] };
}

export function recordOf(
  service: ContractName,
  outcome: ExchangeRecord["outcome"],
  more: Partial<ExchangeRecord> = {},
): ExchangeRecord {
  return {
    requestId: "6fcc1715-1",
    service,
    route: "/sale",
    key: "A-1",
    outcome,
    httpStatus: 200,
    status: "success",
    code: 0,
    queueMs: 1.234,
    lineMs: 8.765,
    requestBytes: 56,
    replyBytes: 20,
    left: false,
    message: undefined,
    ...more,
  };
}

export function discard(reason: DiscardReason, wireBytes: number): Discard {
  return { kind: "discard", reason, wireBytes, head: "41 54" };
}

export function frame(wireBytes: number): Frame {
  return { kind: "frame", framing: "length", payload: [], payloadBytes: wireBytes - 6, wireBytes };
}

/** What /status says, to be looked into by field. */
export const statusOf = (status: Status) => JSON.parse(status.status().text);
