import { PoslineProcess } from "../posline-process.ts";

/** What one `posline rehearse` found. */
export interface Rehearsed {
  readonly code: number | null;
  readonly out: string;
  readonly complaint: string;
  /** The verdict of each scenario, by name. */
  readonly verdicts: Readonly<Record<string, string>>;
  /** The first broken scenario and its sentence. */
  readonly broken: readonly [scenario: string, why: string] | undefined;
}

/** Rehearses a till's command; what it keeps is in `state`. */
export async function rehearsed(command: string, state: string, flags: readonly string[]): Promise<Rehearsed> {
  const posline = new PoslineProcess(["rehearse", "--till", command, ...flags], { env: { TILL_FOLDER: state } });
  const code = await posline.ended(undefined, 300_000);
  const rows = [...posline.stdout.matchAll(/^(passed|FAILED|not tested) +([a-z0-9-]+) +[0-9.]+ s *(.*)$/gm)];
  const verdicts = Object.fromEntries(rows.map(([, verdict = "", name = ""]) => [name, verdict]));
  const [, , scenario, why] = rows.find(([, verdict]) => verdict === "FAILED") ?? [];
  const broken = scenario === undefined || why === undefined ? undefined : ([scenario, why] as const);
  return { code, out: posline.stdout, complaint: posline.stderr, verdicts, broken };
}
