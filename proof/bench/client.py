"""Sends the same request over and over and prints what it took as one JSON line.

Usage: client.py KIND TARGET CLIENTS COUNT WARMUP
  KIND    http (keep-alive, /check), sale (the same, /sale with another pay_id each time), raw (frames over TCP) or line (frames on the slave side of a pty, no bridge between)
  TARGET  a TCP port of 127.0.0.1, or the path of the pty for `line`

First waits until the target answers right, then warms up, then measures COUNT exchanges over CLIENTS connections, each of
which has one request in flight at any time. Each connection asks about a sale of its own, since posline makes identical calls that
wait at one time one exchange. Every reply is compared with what the responder sent.
"""

import json
import os
import socket
import struct
import sys
import time
import tty

from wire import REPLY_BODY, REPLY_FRAME, REQUEST_FRAME, SALE_BODY, body_of, request_frame

READY_S = 20
EXCHANGE_S = 10
# While the bridge starts it may lose a reply; the next attempt follows soon.
ATTEMPT_S = 3


def http_request(port: int, body: bytes, route: bytes = b"/check") -> bytes:
    return (
        b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % (route, port, len(body))
    ) + body


def http_whole(data: bytes) -> bool:
    """Whether a whole HTTP answer is there."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = data[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        raise RuntimeError("Cannot read the answer: it has no Content-Length: %r" % data[:200])
    stop = head.find(b"\r\n", at + 2)
    length = int(head[at + 17:stop if stop > 0 else None])
    return len(data) >= end + 4 + length


HTTP_TAIL = b"\r\n\r\n" + REPLY_BODY


def http_right(data: bytes) -> bool:
    return data.startswith(b"HTTP/1.1 200 ") and data.endswith(HTTP_TAIL)


def raw_whole(data: bytes) -> bool:
    return len(data) >= len(REPLY_FRAME)


def raw_right(data: bytes) -> bool:
    return data == REPLY_FRAME


def connect(port: int) -> socket.socket:
    s = socket.create_connection(("127.0.0.1", port), 2)
    s.settimeout(None)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A time limit of the kernel's own: settimeout() would cost a poll() before every recv().
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ATTEMPT_S, 0))
    return s


class Target:
    def __init__(self, kind: str, target: str) -> None:
        self.kind = kind
        self.whole, self.right = (http_whole, http_right) if kind in ("http", "sale") else (raw_whole, raw_right)
        self.target = target
        # The runs of one bench sell under keys of their own.
        self.sold = time.time_ns() // 1000 % 10**11
        self.request = self.request_of(0)

    def request_of(self, client: int) -> bytes:
        """What this connection asks; the first one asks what the responder knows at sight."""
        if self.kind == "http":
            return http_request(int(self.target), body_of(client))
        if self.kind == "sale":
            self.sold += 1
            return http_request(int(self.target), SALE_BODY % self.sold, b"/sale")
        return REQUEST_FRAME if client == 0 else request_frame(client)

    def open(self) -> int:
        """A descriptor to talk on, blocking."""
        if self.kind == "line":
            fd = os.open(self.target, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(fd)
            return fd
        return connect(int(self.target)).detach()

    def exchange(self, fd: int) -> bytes:
        os.write(fd, self.request)
        data = os.read(fd, 65536)
        # Right is cheaper to see than whole, and almost always so.
        while not self.right(data) and not self.whole(data):
            more = os.read(fd, 65536)
            if not more:
                raise RuntimeError("Cannot finish the exchange: the bridge closed the connection after %r" % data[:200])
            data += more
        return data


def ready(target: Target) -> int:
    """Opens and asks until a right answer comes; returns the descriptor that works."""
    until = time.monotonic() + READY_S
    last: object = None
    while time.monotonic() < until:
        fd = -1
        try:
            fd = target.open()
            last = target.exchange(fd)
            if target.right(last):
                return fd
        except (OSError, RuntimeError) as e:
            last = e
        if fd >= 0:
            os.close(fd)
        time.sleep(0.1)
    raise SystemExit("Cannot reach %s %s: no right answer within %d s, last %r" % (target.kind, target.target, READY_S, last))


def one_by_one(target: Target, fd: int, count: int) -> list[int]:
    times = []
    now, exchange, right = time.perf_counter_ns, target.exchange, target.right
    for _ in range(count):
        if target.kind == "sale":
            target.request = target.request_of(0)
        begin = now()
        data = exchange(fd)
        times.append(now() - begin)
        if not right(data):
            raise SystemExit("Cannot go on: wrong answer %r" % data[:400])
    return times


def side_by_side(target: Target, fds: list[int], count: int) -> list[int]:
    """One request in flight on each connection, answered in the order of asking, as a line does: so no poll is paid for."""
    times: list[int] = []
    now, read, write, right = time.perf_counter_ns, os.read, os.write, target.right
    requests = {fd: target.request_of(client) for client, fd in enumerate(fds)}
    begun = {}
    for fd in fds:
        begun[fd] = now()
        write(fd, requests[fd])
    for left in range(count // len(fds) - 1, -1, -1):
        for fd in fds:
            data = read(fd, 65536)
            while not right(data):
                more = read(fd, 65536) if not target.whole(data) else b""
                if not more:
                    raise SystemExit("Cannot go on: wrong answer %r" % data[:400])
                data += more
            end = now()
            times.append(end - begun[fd])
            begun[fd] = end
            if left:
                write(fd, requests[fd])
    return times


def main() -> None:
    kind, to, clients, count, warmup = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    target = Target(kind, to)
    first = ready(target)
    fds = [first] + [target.open() for _ in range(clients - 1)]

    def run(n: int) -> list[int]:
        return one_by_one(target, first, n) if clients == 1 else side_by_side(target, fds, n)

    run(warmup)
    begin = time.perf_counter_ns()
    times = sorted(run(count))
    elapsed = time.perf_counter_ns() - begin
    print(json.dumps({
        "p50Us": times[len(times) // 2] / 1e3,
        "p99Us": times[len(times) * 99 // 100] / 1e3,
        "perS": len(times) * 1e9 / elapsed,
    }))


main()
