/** What bounds a recovery beside the settings: fixed numbers, each with its unit and its reason. */

/** Right answers in a row to drawn questions that prove a service in step: older answers are right by chance once in a million. */
export const rowMin = 20;

/** Answers that may stay out while a row is made. As many may come later, so that many and one more end it whose shape tells them. */
export const lostMax = 3;

/** Times in a row that a service leaves out the second question, or answers the first otherwise, by which it can't be told apart. */
export const vagueMin = 3;

/** So many more if it did otherwise before: one that is behind by an answer is as often right as wrong, and three times wrong by chance. */
export const vagueMore = 7;

/** Milliseconds of silence before a row begins, in which older answers come; twice as long after each contradiction. */
export const pauseMs = 200;

/** Milliseconds after a right answer before the next question, once one was wrong, doubling too: a copy of it comes before. */
export const copyMs = { first: 100, most: 5_000 } as const;

/** How many times `lateReplyMs` a service that owes a call may be silent before it counts as away: a customer may look for the card. */
export const owingPatience = 10;

/** Milliseconds between two questions to services that were set aside; the most beside services that answer, which each one holds up. */
export const asideMs = { least: 20_000, most: 600_000 } as const;

/** Milliseconds without an answer after which a silent service is reported: five probes. Within a minute for all that can be seen. */
export const silentWarnMs = 10_000;

/** Milliseconds for which what came in place of an answer counts as its cause: five probes were sent since, and nothing more came. */
export const evidenceMs = 10_000;
