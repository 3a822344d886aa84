import { fstatSync } from "node:fs";

/** The form that journald wants of a line: its priority in front, as `<4>`, which journald takes off. Only journald does. */

/**
 * True if a descriptor leads to journald. systemd gives device and inode to compare (systemd.exec, $JOURNAL_STREAM), since the variable
 * alone is handed on to children whose output goes elsewhere.
 */
export function isJournald(fd: number, journalStream: string | undefined): boolean {
  if (journalStream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journalStream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** The prefix of a line, for pino's number of its level. */
export function priorityPrefix(level: number): string {
  if (level >= 60) return "<2>";
  if (level >= 50) return "<3>";
  if (level >= 40) return "<4>";
  return level >= 30 ? "<6>" : "<7>";
}
