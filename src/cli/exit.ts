/** Exit codes (sysexits): what a script or a supervisor may decide by. */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, unknown: 75, config: 78 } as const;
