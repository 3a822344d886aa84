"""Plays a bank terminal on a pty of its own: answers every length frame at once, or at the pace of a real line.

Usage: responder.py LINK [BAUD PIECE_BYTES WARM_UP | REPLY_BYTES]

Prints one JSON line when LINK can be opened. With a baud rate it answers as a line of 8N1 would: the request takes its wire
time from the moment its first byte came, the reply follows without a pause, in pieces of PIECE_BYTES, each handed over when
its last byte would have come. Everything is scheduled from the request's first byte, so a late piece delays no other. The first WARM_UP exchanges
are answered at once, for the bridge's compiler. When the
line has been idle for a moment after a burst, it prints the burst as one JSON line. With REPLY_BYTES it answers at once with a reply
of that size.
"""

import json
import os
import select
import sys
import time
import tty

from wire import REPLY_FRAME, REQUEST_FRAME, answer, large_reply

BITS_PER_BYTE = 10
# A burst has ended when nothing came for this long.
IDLE_S = 0.25
# The first exchanges of a burst, before all clients wait in the queue.
SKIPPED_EXCHANGES = 6
# How long to spin for the next request: a wake-up costs as much as the gap that is measured. With one core the bridge needs it.
SPIN_FOR_REQUEST_NS = 2_000_000 if (os.cpu_count() or 1) > 1 else 0
# Sleep to within this of the time aimed at, spin the rest: sleep() alone is 60 µs late and more.
SPIN_NS = 150_000


def open_line(link: str) -> int:
    master, slave = os.openpty()
    tty.setraw(slave)
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(os.ttyname(slave), link)
    # The slave stays open here as well, so that the master reads no hang-up between two openings of the bridge.
    return master


def frame_bytes(pending: bytes) -> int:
    """Bytes of the whole frame at the start of `pending`, 0 when it isn't there yet."""
    if len(pending) < 4:
        return 0
    whole = int.from_bytes(pending[:4], "big") + 6
    return whole if len(pending) >= whole else 0


def serve_at_once(master: int, the_reply: bytes) -> None:
    pending = b""
    read, write = os.read, os.write
    while True:
        pending += read(master, 65536)
        while pending:
            # Nearly always the one request, whole and alone.
            if pending == REQUEST_FRAME:
                reply, pending = the_reply, b""
            elif n := frame_bytes(pending):
                reply, pending = answer(pending[:n]), pending[n:]
            else:
                break
            while reply:
                reply = reply[write(master, reply):]


def wait_until(at_ns: int) -> None:
    left = at_ns - time.monotonic_ns()
    if left > 2 * SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.monotonic_ns() < at_ns:
        os.sched_yield()


class Burst:
    """Exchanges on a line that was never let rest.

    The line is busy from a request's first byte to the moment the reply's last byte was handed over, and idle from then to the
    next request's first byte. What the responder itself was late by, against the wire time, counts as busy and is printed.
    """

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[int] = []
        self.wire: list[int] = []

    def print(self) -> None:
        first = SKIPPED_EXCHANGES
        last = len(self.started) - 1
        if last - first < 4:
            return
        # From the first byte of one request to the first byte of the last: as many exchanges as gaps.
        span = range(first, last)
        elapsed = self.started[last] - self.started[first]
        busy = sum(self.finished[i] - self.started[i] for i in span)
        gaps = sorted(self.started[i + 1] - self.finished[i] for i in span)
        late = sorted(self.finished[i] - self.started[i] - self.wire[i] for i in span)
        print(json.dumps({
            "exchanges": last - first,
            "full": busy / elapsed,
            "wireUs": sum(self.wire[first:last]) / (last - first) / 1e3,
            "gapP50Us": gaps[len(gaps) // 2] / 1e3,
            "lateP50Us": late[len(late) // 2] / 1e3,
            "lateMaxUs": late[-1] / 1e3,
        }), flush=True)


def await_bytes(master: int, idle) -> bytes:
    """The next bytes of the bridge: spins first, since the gap is what is measured, then blocks."""
    until = time.monotonic_ns() + SPIN_FOR_REQUEST_NS
    while time.monotonic_ns() < until:
        try:
            return os.read(master, 65536)
        except BlockingIOError:
            # Lets the kernel's own worker bring the bytes when it shares this core.
            os.sched_yield()
    poller = select.poll()
    poller.register(master, select.POLLIN)
    while True:
        if poller.poll(IDLE_S * 1000):
            return os.read(master, 65536)
        idle()


def serve_paced(master: int, baud: int, piece_bytes: int, warm_up: int) -> None:
    byte_ns = BITS_PER_BYTE * 1e9 / baud
    os.set_blocking(master, False)
    burst = Burst()

    def idle() -> None:
        nonlocal burst
        burst.print()
        burst = Burst()

    while True:
        pending = await_bytes(master, idle)
        started = time.monotonic_ns()
        while not (n := frame_bytes(pending)):
            pending += await_bytes(master, lambda: None)
        reply = answer(pending[:n])
        if warm_up > 0:
            warm_up -= 1
            os.write(master, reply)
            continue
        replied = started + n * byte_ns
        end = 0
        while end < len(reply):
            start, end = end, min(end + piece_bytes, len(reply))
            wait_until(int(replied + end * byte_ns))
            os.write(master, reply[start:end])
        burst.finished.append(time.monotonic_ns())
        burst.started.append(started)
        burst.wire.append(int((n + len(reply)) * byte_ns))


def main() -> None:
    link = sys.argv[1]
    numbers = [int(text) for text in sys.argv[2:]]
    reply = large_reply(numbers[0]) if len(numbers) == 1 else REPLY_FRAME
    master = open_line(link)
    print(json.dumps({"ready": 1}), flush=True)
    if len(numbers) > 1:
        serve_paced(master, *numbers)
    else:
        serve_at_once(master, reply)


main()
