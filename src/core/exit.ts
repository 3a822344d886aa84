/** Exit codes (sysexits): what a script or a supervisor may decide by. */
export const exitCodes = { ok: 0, usage: 64, unavailable: 69, bug: 70, unknown: 75, config: 78 } as const;

/**
 * The exit code that an error names, such as a ConfigError's; undefined for one that names none. By property, so that a room that
 * knows what its error means to a supervisor says it there, and no list of classes is kept here.
 */
export function exitCodeOf(error: unknown): number | undefined {
  return error instanceof Error && "exitCode" in error && typeof error.exitCode === "number" ? error.exitCode : undefined;
}

/**
 * What to say where the folder that a command was started in was deleted meanwhile, and the command needs it; undefined of any other
 * error. Node finds it out wherever a relative path is looked up.
 */
export function deletedFolderText(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("syscall" in error) || error.syscall !== "uv_cwd") return undefined;
  return "Cannot use the working folder: it was deleted: change to another one (cd) and start posline again";
}

/** What is wrong with how a command was called. */
export class UsageError extends Error {
  readonly exitCode: number = exitCodes.usage;
}
