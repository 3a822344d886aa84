/**
 * The fixed numbers that bound a line beside the settings, each with its unit and its reason. Those that a setting is held against
 * (`headerMs`, `payloadMsMin`, `probeIntervalMs`, `silenceMs`) stand with the settings.
 */

/** Milliseconds of silence that end corrupt bytes: twenty byte times at 2400 baud, and a USB adapter's 16 ms. */
export const corruptQuietMs = 100;

/** Milliseconds that the silence after an opening is waited for at most: on a line that never falls silent, probes decide. */
export const silenceMsMax = 2_000;

/**
 * Milliseconds a frame's payload may take at most, whatever its header says: a lie of some MiB at a slow rate would otherwise
 * hold its call for hours. 100 kB at 2400 baud fit.
 */
export const payloadMsMax = 600_000;

/**
 * Milliseconds an idle probe may take to be answered: calls that come meanwhile wait for it. A terminal needs a few hundredths of a second;
 * one that takes this long is off, or busy.
 */
export const probeReplyMs = 5_000;

/**
 * Milliseconds for which bytes that nobody asked for may keep an idle line from sending: longer, and calls would be refused one by one on a
 * line that counts as ready. A late answer of 5 kB takes as long at 9600 baud. The end of an overdue call may be put off as long, since its
 * answer may be among the bytes.
 */
export const babbleMsMax = 5_000;

/** Milliseconds the kernel may take at least to accept a frame; twice a long frame's time on the wire is added. */
export const writeMsMin = 5_000;

/** Milliseconds after which an opening that doesn't return is reported: an unplug can fall into it. */
export const openMs = 5_000;

/**
 * Milliseconds before a lost device is tried again, doubling up to `longest`: what is back is open within a second, with half of it for the
 * opening itself.
 */
export const reopenMs = { first: 100, longest: 500 } as const;

/** Milliseconds waited at most for more of a burst: four times a USB adapter's 16 ms. */
export const burstMsMax = 64;

/**
 * Milliseconds of silence after which a listener answers once more what it can't read. A line that echoes, or another listener at its far
 * end, sends back within tenths of a second; a till that tries again by itself has waited for an answer first.
 */
export const unreadQuietMs = 1_000;

/**
 * Milliseconds that an answer may still need on the wire without being waited for. A gateway answers `gatewayMarginMs` before its till
 * gives up, so an answer that is out this soon comes in time; and over USB, where the speed is but a number, a till may have it already and
 * rightly send the same request once more.
 */
export const shortWireMs = 1_000;

/** Milliseconds a frame must have been coming before its pace is believed. */
export const restAfterMs = 1;

/** Milliseconds before a frame's end from which on every byte is looked at: a timer may be late by a millisecond or more. */
export const restBeforeMs = 1;

/** Milliseconds that a rest must last to be worth it: its beginning and its end each wake the process. */
export const restMsMin = 3;

/** Milliseconds bytes may lie unread at most: how late a frame may be at worst, if the rest of it comes all at once. */
export const restMsMax = 32;

/** Bytes that may lie unread at most: half of what the kernel holds for a tty. */
export const restBytesMax = 2_048;

/** Bytes read at once from which on the kernel's 4095 were full, or nearly, and the sender had to wait: then a rest costs its time. */
export const fullBytesMin = 3_072;

/** Milliseconds between two heartbeats of a gateway: bytes that lay in the kernel for less are still in time, by `gatewayMarginMs`. */
export const standstillBeatMs = 5_000;

/** Milliseconds that a heartbeat may be late on a busy box; later means that the process stood still. */
export const standstillLateMs = 1_000;
