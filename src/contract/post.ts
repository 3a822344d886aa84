import type { Effect, Route } from "./contract.ts";

/** Makes the routes of one contract with the usual settings: POST, with a body, in their turn. */
export function posts(common: Pick<Route, "replyTimeoutMs" | "key"> & Partial<Pick<Route, "errorStatusMax">>) {
  return (path: string, effect: Effect, more: Partial<Route> = {}): Route => ({
    path,
    methods: ["POST"],
    body: "required",
    effect,
    urgent: false,
    polling: undefined,
    amounts: [],
    receipt: undefined,
    faultWords: { "not-sent": "error", unknown: "error" },
    errorStatusMax: 599,
    ...common,
    ...more,
  });
}
