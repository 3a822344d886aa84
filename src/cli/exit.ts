/** Exit codes (sysexits): what a script or a supervisor may decide by. */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, bug: 70, unknown: 75, config: 78 } as const;

/** The exit code that an error names, such as a ConfigError's; undefined for one that names none. */
export function exitCodeOf(error: unknown): number | undefined {
  // Not by class: a part of the bundle that is compiled on first use has classes of its own.
  return error instanceof Error && "exitCode" in error && typeof error.exitCode === "number" ? error.exitCode : undefined;
}

/** What is wrong with how a command was called. */
export class UsageError extends Error {
  readonly exitCode: number = exitCodes.usage;
}
