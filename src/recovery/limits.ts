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
 * Asking in step: a pause, a question, its answer within `answerMs`; the pauses are `pauseMs` and twice that in turns, and at most `slackMs`
 * longer where they count. A terminal that works off what it was asked before, and takes some time for each, answers in such a pause unasked
 * if that time is below twice `pauseMs`; and if it is above, its answer comes later than `answerMs` after a question behind the shorter one.
 */
export const inStep = { pauseMs: 3_500, slackMs: 500, answerMs: 3_000 } as const;

/** So many answers in a row that came in step with such questions prove that nothing was left over: half a minute's worth. */
export const stepsMin = 6;

/** Milliseconds without an answer after which a silent service is reported: five probes. Within a minute for all that can be seen. */
export const silentWarnMs = 10_000;

/** Milliseconds for which what came in place of an answer counts as its cause: five probes were sent since, and nothing more came. */
export const evidenceMs = 10_000;
