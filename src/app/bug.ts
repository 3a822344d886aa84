import type { Log, ProcessFields } from "../core/log.ts";

/** Something failed that should not: whoever reads the log is asked to tell us. */
export function reportBug(log: Log, error: unknown, fields: ProcessFields = {}): void {
  log.process("error", "internal error in posline: please report it", { ...fields, error: String(error) });
}
