/** The fixed numbers that bound a recovery beside the settings, each with its unit and its reason. */

/** Right answers in a row to drawn questions that prove a service in step: older answers are right by chance once in a million. */
export const rowMin = 20;

/**
 * Answers that may stay out while a row is made. As many may come later, so the row ends with that many questions, and one more, whose
 * answers are known by their shape.
 */
export const lostMax = 3;

/**
 * Times in a row that a service leaves out the second question, or answers the first otherwise, after which it counts as impossible to tell
 * apart.
 */
export const vagueMin = 3;

/**
 * Added to `vagueMin` if the service answered otherwise before: a service that is behind by an answer is right as often as wrong, and so
 * wrong three times in a row by chance.
 */
export const vagueMore = 7;

/** Milliseconds of silence before a row begins, in which older answers come; doubled by each contradiction. */
export const pauseMs = 200;

/** Milliseconds after a right answer before the next question, once an answer was wrong, doubling too: a copy of it comes before. */
export const copyMs = { first: 100, most: 5_000 } as const;

/**
 * How many times `lateReplyMs` a service that owes a call's answer may be silent before it counts as away: a customer may look for the
 * card.
 */
export const owingPatience = 10;

/**
 * Milliseconds for which a recorded call without an end counts as owed its answer after a restart: longer than a reply's timeout and the
 * silence after it are by default.
 */
export const owedForMs = 3_600_000;

/**
 * Milliseconds between two questions to services that were set aside. `most` holds beside services that answer, since each question holds
 * them up.
 */
export const asideMs = { least: 20_000, most: 600_000 } as const;

/** Milliseconds without an answer after which a silent service is reported: five probes, and everything visible within a minute. */
export const silentWarnMs = 10_000;

/** Milliseconds for which a symptom counts as the cause of a silence: five probes were sent since, and nothing more came. */
export const evidenceMs = 10_000;
