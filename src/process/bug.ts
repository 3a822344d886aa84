import type { Log, ProcessFields } from "../core/log.ts";

/** Logs an error that should not happen, and asks to report it. */
export function reportBug(log: Log, error: unknown, fields: ProcessFields = {}): void {
  log.process("error", "internal error in posline: please report it", { ...fields, error: String(error) });
}
