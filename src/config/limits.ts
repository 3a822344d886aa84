/**
 * The numbers that an operator may set, and the fixed ones that those are held against, with unit, reason and source. What may be set has
 * a default and two bounds, and the configuration refuses what lies outside them with the reason.
 */

/** Milliseconds a length header may take from its first to its last byte (bank contract, Limits: 3 s recommended). */
export const headerMs = 3_000;

/**
 * Milliseconds a payload may take at least (bank and qr contracts, Limits: 5 s recommended). A long payload on a slow line
 * gets more: twice its time on the wire.
 */
export const payloadMsMin = 5_000;

/** Milliseconds between two sendings of a probe that found no answer: slow enough not to flood a busy terminal. */
export const probeIntervalMs = 2_000;

/** Milliseconds without a byte after which a freshly opened line counts as empty: old bytes survive the driver's flush. */
export const silenceMs = 50;

/** Largest payload in bytes of any frame; no setting allows more. The length field could announce 4 GiB. */
export const payloadBytesMax = 8 * 1024 * 1024;

/**
 * Bytes of request bodies that may wait for one line: `queueCallsMax` times the largest `bodyBytesMax` of its services. A box
 * with 1 GiB of memory must live through a till that fills the queue.
 */
export const queueBytesMax = 512 * 1024 * 1024;

/**
 * Milliseconds by which `posline gateway` gives up before a till on the line would, unless configured otherwise: its answer has to
 * be back while the till still waits. After that the till takes it for the answer to what it asks next.
 */
export const gatewayMarginMs = 5_000;

/** Bytes of the configuration file: every key of every route fits many times over. */
export const fileBytesMax = 1024 * 1024;

/** Bytes of a file that holds one secret: a larger one is the wrong file. */
export const secretBytesMax = 4_096;

/** The bounds of one setting, both included, with its default and the reason, as a message and the schema quote it. */
export interface Bound {
  readonly min: number;
  readonly max: number;
  readonly unit: string;
  readonly why: string;
}

/** What an operator may set, and how far. */
export const bounds = {
  baudRate: {
    min: 50,
    max: 4_000_000,
    unit: "baud",
    why: "serial drivers support no rate below 50 baud, and adapters none above 4 Mbaud",
  },
  /** Above `headerMs`, or a reply whose header is on its way would time out; ten minutes at most. */
  replyTimeoutMs: {
    min: headerMs + 1,
    max: 600_000,
    unit: "ms",
    why: `the header of a reply alone may take ${headerMs} ms, and nobody waits at a till for more than ten minutes`,
  },
  /** Two probes at least fit into it, so that one lost probe doesn't end the recovery by silence. */
  lateReplyMs: {
    min: 2 * probeIntervalMs,
    max: 600_000,
    unit: "ms",
    why: `two probes, ${probeIntervalMs} ms apart, must fit in, and no till can use a line while it recovers`,
  },
  /** Its values between 0 and `idleProbeMsMin` are refused by a rule. */
  idleProbeMs: {
    min: 0,
    max: 86_400_000,
    unit: "ms",
    why: "0 turns probing off, a pause below 5000 would keep the tills waiting, and one above a day is of no use",
  },
  /** A longer one would hold up posline's own questions. */
  pauseMs: {
    min: 0,
    max: probeIntervalMs,
    unit: "ms",
    why: `0 is no pause, and a terminal that listens only ${probeIntervalMs} ms after it spoke is broken`,
  },
  queueCallsMax: {
    min: 1,
    max: 10_000,
    unit: "calls",
    why: "at least one call must be able to wait, and with more than 10,000 the last one would wait for hours",
  },
  /** A call's own record in the journal counts: five syncs of a slow SD card, so that a call of an idle line is never refused for it. */
  queueWaitMs: {
    min: 100,
    max: 600_000,
    unit: "ms",
    why: "a call's record in the journal counts, for which an SD card takes up to 20 ms, and after ten minutes its customer has left",
  },
  bodyBytesMax: {
    min: 1_024,
    max: payloadBytesMax,
    unit: "bytes",
    why: "a receipt with a few items needs 1 kB, and a frame's payload ends at 8 MiB",
  },
  /** A reply that is too large leaves its outcome unknown, so the least is more than most ever are. */
  replyBytesMax: {
    min: 64 * 1024,
    max: payloadBytesMax,
    unit: "bytes",
    why: "print data takes tens of kB, and a frame's payload ends at 8 MiB",
  },
  /** Every operation takes two records of 512 bytes. */
  journalBytes: {
    min: 64 * 1024,
    max: 64 * 1024 * 1024,
    unit: "bytes",
    why: "64 kB hold 64 operations, about an hour at a till, and the whole file is read at each start",
  },
  /** Zero, any free port, comes from the environment alone: in a file it would hide the service from its tills. */
  port: { min: 1, max: 65_535, unit: "", why: "a TCP port is a number from 1 to 65535" },
} as const satisfies Record<string, Bound>;

/** Milliseconds between two idle probes at least, where there are any. */
export const idleProbeMsMin = 5_000;

/** Line settings in force when nobody set them: 115200 8N1 without flow control is what such terminals ship with. */
export const lineDefaults = {
  baudRate: 115_200,
  dataBits: 8,
  parity: "none",
  stopBits: 1,
  flowControl: "none",
  crc16: "arc",
  recovery: "barrier",
  lateReplyMs: 30_000,
  idleProbeMs: 60_000,
  pauseMs: 0,
  queueCallsMax: 64,
  queueWaitMs: 15_000,
  hupcl: true,
} as const;

/**
 * Service settings in force when nobody set them; port and reply time-outs come from the contract. A receipt of a thousand items
 * takes 200 kB, in Base64 too; terminal lists and print data run to some hundred kB.
 */
export const serviceDefaults = {
  host: "localhost",
  bodyBytesMax: 256 * 1024,
  replyBytesMax: 1024 * 1024,
  check: "envelope",
} as const;

/** The admin port's settings in force when nobody set them. */
export const adminDefaults = { host: "localhost", port: 8880, allowOrigins: [], allowHosts: [] } as const;

/** The journal's settings in force when nobody set them: 8 MiB hold 8192 operations, which a till makes in weeks. */
export const journalDefaults = { bytes: 8 * 1024 * 1024, onFailure: "relay", resolve: "ask" } as const;

/** The log level in force when nobody set it. */
export const logDefaults = { level: "info" } as const;
