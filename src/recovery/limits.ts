/** What bounds a recovery beside the settings: fixed numbers, each with its unit and its reason. */

/**
 * Answers to a service's probes that are known to be possible when a call is sent, at most: the next process takes so many for left
 * over. As many are asked in the ten silences (of 30 s) that a service is waited for at most.
 */
export const staleProbesMax = 17;

/**
 * Milliseconds of silence that end a recovery in which more probes were asked than were answered. A terminal that answers
 * again answers what has piled up without a pause, so this outlasts the pause between two answers.
 */
export const drainMs = 200;

/**
 * Asking in step: a pause, a question, its answer within `answerMs`. The pauses are these in turns, and `slackMs` longer at most where they
 * count. A terminal that works off older questions at a pace of its own, which may lose some of its answers, can't answer all of them after
 * about the same time: no time has multiples that are as far apart as these pauses, unless it answers several times in each.
 */
export const inStep = {
  pausesMs: [3_500, 5_000, 8_500],
  slackMs: 500,
  answerMs: 3_000,
  /** Rows that are broken off, at most: a minute's worth. Then answers are counted. */
  triesMax: 8,
} as const;

/**
 * What a row of answers in step needs: so many of them, each pause twice or three times, that took alike to so many milliseconds. The less
 * alike they are, the easier is it to meet them by chance.
 */
export const rows = [
  { alikeMs: 300, answers: 2 * inStep.pausesMs.length },
  { alikeMs: 700, answers: 3 * inStep.pausesMs.length },
] as const;

/** Milliseconds that the pauses of the shortest row take. */
export const stepsMs = 2 * inStep.pausesMs.reduce((sum, ms) => sum + ms, 0);

/** Bytes behind an answer that break off no row of these, at most: CR LF, an ACK, some zeros. A part of an answer is longer. */
export const trailerBytesMax = 4;

/**
 * How many silences long left-over answers are waited for on a line that is never silent: a few of them may come corrupt, and then
 * nobody knows whose they were.
 */
export const humPatience = 3;

/** Milliseconds without an answer after which a silent service is reported: five probes. Within a minute for all that can be seen. */
export const silentWarnMs = 10_000;

/** Milliseconds for which what came in place of an answer counts as its cause: five probes were sent since, and nothing more came. */
export const evidenceMs = 10_000;
