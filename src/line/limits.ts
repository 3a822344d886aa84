/**
 * What bounds a line beside the settings: fixed numbers, each with its unit and its reason. Those that a setting is held
 * against (`headerMs`, `payloadMsMin`, `probeIntervalMs`, `silenceMs`) stand with the settings.
 */

/** Milliseconds of silence after which what came corrupt is over: twenty byte times at 2400 baud, and a USB adapter's 16 ms. */
export const corruptQuietMs = 100;

/** Milliseconds that the silence after an opening is waited for at most: on a line that never falls silent, probes decide. */
export const silenceMsMax = 2_000;

/**
 * Milliseconds a frame's payload may take at most, whatever its header says: a lie of some MiB at a slow rate would otherwise
 * hold its call for hours. 100 kB at 2400 baud fit.
 */
export const payloadMsMax = 600_000;

/**
 * Milliseconds an idle probe may take to be answered: calls that come meanwhile wait for it. What needs no thought takes a few
 * hundredths of a second; a terminal that takes longer is off, or busy.
 */
export const probeReplyMs = 5_000;

/**
 * Milliseconds for which bytes that nobody asked for may keep an idle line from sending: calls would be refused one by one, of a line
 * that counts as ready. A late answer of 5 kB takes as long at 9600 baud. As long may they put off the end of a call whose time is over: its
 * answer may be among them.
 */
export const babbleMsMax = 5_000;

/** Milliseconds the kernel may take at least to accept a frame; long ones get twice their time on the wire more. */
export const writeMsMin = 5_000;

/** Milliseconds after which an opening that doesn't return is reported: an unplug can fall into it. */
export const openMs = 5_000;

/** Milliseconds before a lost device is tried again, doubling; with the longest a replug is served well within three seconds. */
export const reopenMs = { first: 100, longest: 1_000 } as const;

/** Milliseconds waited at most for more of a burst: four of a USB adapter's 16 ms. */
export const burstMsMax = 64;

/**
 * Milliseconds of silence after which a listener answers what it can't read once more. A line that echoes, or another listener at its far
 * end, sends back within tenths of a second; a till that tries again by itself has waited for an answer first.
 */
export const unreadQuietMs = 1_000;

/**
 * Milliseconds that an answer may still need on the wire without being waited for. A gateway answers `gatewayMarginMs` before its till gives
 * up, so what is out this soon comes in time; and over USB, where the speed is but a number, a till may have it and rightly send the same once
 * more.
 */
export const shortWireMs = 1_000;

/** Milliseconds a frame must have been coming before its pace is believed. */
export const restAfterMs = 1;

/** Milliseconds before a frame's end from which on every byte is looked at: a timer may be a millisecond or more late. */
export const restBeforeMs = 1;

/** Milliseconds that a rest is worth: to begin and to end one wakes the process twice. */
export const restMsMin = 3;

/** Milliseconds bytes may lie unread at most: what a frame is late by at worst, when the rest of it comes all at once. */
export const restMsMax = 32;

/** Bytes that may lie unread at most: half of what the kernel holds for a tty. */
export const restBytesMax = 2_048;

/** Bytes read at once from which on the kernel's 4095 were, or nearly were, full, and the sender had to wait: a rest costs its time. */
export const fullBytesMin = 3_072;

/** Milliseconds between two heartbeats of a gateway: what lay in the kernel for less is in time still, by `gatewayMarginMs`. */
export const standstillBeatMs = 5_000;

/** Milliseconds that a heartbeat may be late without the process having stood still: a busy box. */
export const standstillLateMs = 1_000;
