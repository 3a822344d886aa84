/** The bounds of the HTTP side, each with its unit and its reason. */

/** Milliseconds for a request's headers: on localhost they take less than one; a client that drips them is cut off soon. */
export const headersMs = 5_000;

/** Milliseconds for a whole request, body included. The answer may take as long as the terminal does. */
export const requestMs = 15_000;

/**
 * Milliseconds an idle connection is kept when the service ends, for a request on its way: on localhost that takes less than one, from a
 * busy box some hundred. A restart takes as much longer.
 */
export const idleMs = 500;

/**
 * Milliseconds for which a client may take nothing of its answer when the service ends: one that stands still must not hold up a
 * restart. Node notices it after twice that; with the 60 s of an exchange in flight it is less than the units' TimeoutStopSec.
 */
export const answerMs = 5_000;

/** Milliseconds an idle connection is kept for the till's next request. */
export const keepAliveMs = 5_000;

/** Milliseconds between two looks at connections that are overdue. */
export const checkConnectionsMs = 500;

/** Bytes of a request's headers: a browser sends the cookies of localhost to every port of it, so other programs' come too. */
export const headersBytesMax = 16 * 1024;

/**
 * Connections to one service. Far above what tills need: a tight limit is itself a denial of service, since a client that holds
 * that many idle connections shuts out every honest till. The descriptors of a process are the real bound.
 */
export const connectionsMax = 16_384;

/**
 * Requests of one connection that may wait for their answers (pipelining). No till sends a second one before it has its answer, and a
 * waiting one takes memory until the terminal has answered all before it. One more is refused, and later bytes are not read.
 */
export const waitingRequestsMax = 8;

/**
 * Connections that the system keeps until they are accepted, as many as Linux allows by default. On a socket of systemd's these are
 * the clients that connect while posline restarts.
 */
export const backlogMax = 4_096;

/** Bodies held at one time by one service, in multiples of the largest body. */
export const bodiesMax = 16;

/**
 * Bytes of a body that are taken even while `bodiesMax` is reached: a client that fills the memory with large bodies must not shut
 * out a till's ordinary sale. Less than the headers of its connection may take anyway, so `connectionsMax` bounds them too.
 */
export const bodyBytesFree = headersBytesMax / 2;

/**
 * Milliseconds a broken connection is kept after its error was answered. Closing it while bytes still come resets it, and the answer
 * would be lost before it is read.
 */
export const lingerMs = 1_000;

/** Seconds a browser may remember a preflight's answer. */
export const preflightMaxAgeS = 600;

/**
 * Milliseconds an upstream may take to be reached: a lost packet is sent again after one second and after three. In that time
 * nothing was sent, so giving up does no harm.
 */
export const connectMs = 5_000;

/**
 * Milliseconds that one address of a host may take to be reached before the next is tried: the most that RFC 8305 (8) allows, since a lost
 * packet is sent again after one second. In Node's 250 ms no slow link answers.
 */
export const addressMs = 2_000;

/** Milliseconds that must remain for the response, or nothing is sent: with less, the outcome would almost certainly be unknown. */
export const responseMsMin = 1_000;

/** Bytes of the headers of an upstream's response: what Node takes by default, and cookies of proxies fit. */
export const responseHeadersBytesMax = 16 * 1024;

/** Milliseconds for which a caller may want an operation followed, at most: a customer who takes ten minutes has left. */
export const followMsMax = 600_000;

/** Characters of a `trans` that a header says: four times what the journal keeps of one, and little beside what readers of headers take. */
export const transCharsMax = 256;
