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

/** After so many wrong answers a service isn't probed until a silence settles it: asked on, it would never fall silent. */
export const refusalsMax = 3;

/**
 * How many times longer the silence must last, and how many times more wrong answers are borne, of a service that has answered a
 * probe before. A terminal that waits for a customer's card is silent for minutes and then answers; since this one can prove itself,
 * it should.
 */
export const provenPatience = 10;

/** Unanswered probes that are remembered: most of an hour's worth, of a line that hums and has nobody who answers. */
export const unansweredMax = 100;

/** Answers that are assumed to come of a terminal that was silent for long, at most: more than are asked in a night and a day. */
export const assumedMax = 2_000;

/** So many answers are nearly as many as the next process takes for left over. */
export const fullMin = staleProbesMax - 2;

/** So many frames that are neither an error nor of a probe's shape, in one recovery, answer probes: a call's late answer is one. */
export const oddMin = 2;

/** Answers in a row to questions that were drawn, each the right one, which older answers are by chance once in a million. */
export const rowMin = 20;

/**
 * Milliseconds before the next question of such a row is asked where an answer stays out: one behind another says less. Nor is a copy waited for
 * longer.
 */
export const rowAnswerMs = 5_000;

/** Milliseconds behind a right answer before the next question, once one was wrong, and twice as long with each: a copy of it comes before. */
export const copyMs = 100;

/** Questions that are out and answers are compared with, at most: of a service that answers none of them. */
export const openMax = 100;

/**
 * How often in a row a service may leave out the second question before it is asked only its probe: one or two may get lost. Of one that has
 * answered it more often: older answers look like that as well, and all of them come in the pauses after so many.
 */
export const passedOverMax = { ofUnknown: 3, ofKnown: 8 } as const;

/** Answers in one recovery to questions that were asked at once behind another, at most: more than a row takes behind all that is assumed. */
export const hastyMax = 2_500;

/** Answers in one recovery before their pace says how long it takes to count the rest: the first one may have been slow. */
export const pacedMin = 4;

/**
 * How many silences long left-over answers are waited for on a line that is never silent: a few of them may come corrupt, and then
 * nobody knows whose they were. A service that only posline asks, and that may have many, is asked as seldom.
 */
export const humPatience = 3;

/** Milliseconds without an answer after which a silent service is reported: five probes. Within a minute for all that can be seen. */
export const silentWarnMs = 10_000;

/** Milliseconds for which what came in place of an answer counts as its cause: five probes were sent since, and nothing more came. */
export const evidenceMs = 10_000;
