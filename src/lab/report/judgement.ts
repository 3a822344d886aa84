/**
 * A judgement: what was tried of a till or a terminal, and what came of it, case by case. This room owns the verdicts and how they are
 * written (a table, JUnit, a page for print); what is tried, and by what it is judged, is `rehearse` and `certify`.
 */

/**
 * passed: the rule was tried, and kept. failed: it was tried, and broken. not tested: it never came to be tried, so nothing is said of it.
 */
export type Verdict = "passed" | "failed" | "not tested";

/** A moment of a case. */
export interface Moment {
  /** Milliseconds from the case's beginning. */
  readonly atMs: number;
  readonly who: "till" | "bridge" | "terminal" | "rehearsal";
  /** What happened, in one line. */
  readonly text: string;
}

/** The sentence that a case is about. */
export interface Rule {
  /** Where it stands: `bank.md, Endpoints, rule 3`. */
  readonly from: string;
  /** The sentence, word for word, shortened by `...` at most. */
  readonly says: string;
}

/** A case as it was named, before it is tried. */
export interface Case {
  /** As a flag names it: `no-answer-carried-out`. */
  readonly name: string;
  /** As a person reads it. */
  readonly title: string;
  readonly rule: Rule;
  /** What acquirers' lists call it, if they have it. */
  readonly listed?: string;
}

/** What came of a case. */
export interface CaseResult {
  readonly verdict: Verdict;
  /** Why, in one sentence; of a failed one, who said or did what, with times and amounts. */
  readonly why: string;
  /** What to do better, beside the verdict. */
  readonly note?: string | undefined;
  /** The sentence that was broken, if it is another than the case is about. */
  readonly rule?: Rule;
}

export const passed = (why: string, note?: string): CaseResult => ({ verdict: "passed", why, note });
export const failed = (why: string, rule?: Rule): CaseResult => ({ verdict: "failed", why, ...(rule && { rule }) });
export const untested = (why: string): CaseResult => ({ verdict: "not tested", why });

/** A case that was tried. */
export interface Judged extends Case, Omit<CaseResult, "rule"> {
  readonly tookMs: number;
  readonly moments: readonly Moment[];
}

/** All cases of one run, and what they were run with. */
export interface Judgement {
  /** What was judged: the till's command, or the terminal's device. */
  readonly subject: string;
  /** What judged: `posline rehearse`. */
  readonly by: string;
  readonly version: string;
  /** When it began. */
  readonly began: Date;
  /** What a repetition needs, by name: the world, the seed. */
  readonly setup: Readonly<Record<string, string>>;
  readonly cases: readonly Judged[];
}

export function countOf(cases: readonly Judged[], verdict: Verdict): number {
  return cases.filter((each) => each.verdict === verdict).length;
}

/** All verdicts in a line: `17 passed, 1 failed, 6 not tested`. */
export function countsText(cases: readonly Judged[]): string {
  return (["passed", "failed", "not tested"] as const).map((verdict) => `${countOf(cases, verdict)} ${verdict}`).join(", ");
}

/** A moment's time as people read it: `12.4 s`. */
export const secondsText = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
