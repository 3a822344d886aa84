"""Asks a bridge with many callers and prints what it took as one JSON line: what it cost the callers, and the bridge.

Usage: callers.py KIND PORTS CALLERS COUNT WARMUP GROUP ROUTE REPLY_BYTES
  KIND    http (one keep-alive connection a caller) or raw (frames over one TCP connection, on which the callers take turns: a
          relay of bytes has no queue, so whoever uses one from several places has to make one)
  PORTS   TCP ports of 127.0.0.1, separated by commas; the callers spread over them
  GROUP   the process group of the bridge, whose processor time and memory are read while its connections are open
  ROUTE   /check, or /sale, of which each has a pay_id of its own
  REPLY_BYTES  what the responder replies with when it was started with that size; 0: its usual reply

Each caller asks about a sale of its own: posline answers identical calls that wait at one time with one exchange, and that
would be another measurement. Every reply is compared with what the responder sent.
"""

import json
import os
import select
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from wire import REPLY_FRAME, body_of, large_reply, request_frame  # noqa: E402

READY_S = 20
# While the bridge starts it may lose a reply; the next attempt follows soon.
ATTEMPT_S = 3
# A relay may greet its client: ser2net as Debian ships it does. Nothing comes later than this.
GREETING_S = 0.1
# So far apart are the numbers that callers begin with.
SALES_EACH = 1000
# The longest that nothing at all may be answered.
SILENCE_S = 30


class Caller:
    def __init__(self, kind: str, port: int, number: int, route: str, reply: bytes) -> None:
        self.http = kind == "http"
        self.route = route
        self.reply_frame = reply
        self.reply_body = reply[4:-2]
        self.data = b""
        self.begun = 0
        self.port = port
        self.number = number
        self.fd = -1
        self.request = self.request_of(number)

    def request_of(self, number: int) -> bytes:
        if not self.http:
            return request_frame(number, self.route)
        body = body_of(number)
        head = "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return (head % (self.route, self.port, len(body))).encode() + body

    def open(self) -> None:
        s = socket.create_connection(("127.0.0.1", self.port), 2)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.http:
            s.settimeout(GREETING_S)
            try:
                s.recv(4096)
            except TimeoutError:
                pass
        s.settimeout(None)
        # A time limit of the kernel's own: settimeout() would cost a poll() before every recv().
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ATTEMPT_S, 0))
        self.fd = s.detach()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.data = -1, b""

    def ask(self) -> None:
        if self.route == "/sale":
            self.number += 1
            self.request = self.request_of(self.number)
        self.begun = time.perf_counter_ns()
        os.write(self.fd, self.request)

    def read(self) -> bool:
        """Reads once; whether the whole reply is there, and right."""
        more = os.read(self.fd, 65536)
        if not more:
            raise RuntimeError("Cannot finish the exchange: the bridge closed the connection after %r" % self.data[:200])
        self.data = more if not self.data else self.data + more
        if self.http:
            done = self.data.startswith(b"HTTP/1.1 200 ") and self.data.endswith(self.reply_body)
            wrong = self.data.startswith(b"HTTP/1.1 ") and not self.data.startswith(b"HTTP/1.1 200 ")
        else:
            done = self.data == self.reply_frame
            wrong = len(self.data) >= len(self.reply_frame) and not done
        if wrong:
            raise RuntimeError("Cannot go on: wrong answer %r" % self.data[:400])
        if done:
            self.data = b""
        return done

    def exchange(self) -> int:
        self.ask()
        while not self.read():
            pass
        return time.perf_counter_ns() - self.begun


def connected(caller: Caller) -> None:
    """Opens and asks until a right answer comes."""
    until = time.monotonic() + READY_S
    last: object = None
    while time.monotonic() < until:
        try:
            caller.open()
            caller.exchange()
            return
        except (OSError, RuntimeError) as e:
            last = e
            caller.close()
        time.sleep(0.1)
    raise SystemExit("Cannot reach port %d: no right answer within %d s, last %r" % (caller.port, READY_S, last))


def in_turns(callers: list[Caller], count: int) -> list[int]:
    """Callers of one connection: each has wanted to ask since its last answer, and waits for its turn."""
    connection = callers[0]
    wanted = [time.perf_counter_ns()] * len(callers)
    times = []
    for i in range(count):
        turn = i % len(callers)
        connection.exchange()
        now = time.perf_counter_ns()
        times.append(now - wanted[turn])
        wanted[turn] = now
    return times


def together(callers: list[Caller], count: int) -> list[int]:
    """One request of each caller is waiting or in flight at any time."""
    epoll = select.epoll()
    by_fd = {caller.fd: caller for caller in callers}
    for caller in callers:
        epoll.register(caller.fd, select.EPOLLIN)
        caller.ask()
    to_start = count - len(callers)
    times: list[int] = []
    now = time.perf_counter_ns
    while len(times) < count:
        ready = epoll.poll(SILENCE_S)
        if not ready:
            raise SystemExit("Cannot go on: no answer for %d s" % SILENCE_S)
        for fd, _ in ready:
            caller = by_fd[fd]
            if caller.read():
                times.append(now() - caller.begun)
                if to_start > 0:
                    to_start -= 1
                    caller.ask()
    epoll.close()
    return times


def group_figures(group: int) -> tuple[int, float]:
    """Processor time in ns, and resident memory in MiB, of all processes of a group: socat has one for each connection."""
    ns, kib = 0, 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                if int(f.read().rpartition(")")[2].split()[2]) != group:
                    continue
            for task in os.listdir("/proc/%s/task" % pid):
                with open("/proc/%s/task/%s/schedstat" % (pid, task)) as f:
                    ns += int(f.read().split()[0])
            with open("/proc/%s/status" % pid) as f:
                kib += next((int(line.split()[1]) for line in f if line.startswith("VmRSS:")), 0)
        except (FileNotFoundError, ProcessLookupError):
            # It has ended meanwhile.
            continue
    return ns, kib / 1024


def main() -> None:
    kind, ports = sys.argv[1], [int(port) for port in sys.argv[2].split(",")]
    count_of_callers, count, warmup, group = map(int, sys.argv[3:7])
    route, reply_bytes = sys.argv[7], int(sys.argv[8])
    # A responder of large replies gives them to the first caller's request alone.
    reply = large_reply(reply_bytes) if reply_bytes > 0 else REPLY_FRAME
    callers = [Caller(kind, ports[i % len(ports)], i * SALES_EACH, route, reply) for i in range(count_of_callers)]
    connected(callers[0])
    if kind == "http":
        for caller in callers[1:]:
            connected(caller) if caller.port != callers[0].port else caller.open()

    def run(n: int) -> list[int]:
        if n == 0:
            return []
        if len(callers) == 1:
            return [callers[0].exchange() for _ in range(n)]
        return together(callers, max(n, len(callers))) if kind == "http" else in_turns(callers, n)

    run(warmup)
    before, _ = group_figures(group)
    begin = time.perf_counter_ns()
    times = sorted(run(count))
    elapsed = time.perf_counter_ns() - begin
    after, rss = group_figures(group)
    print(json.dumps({
        "p50Us": times[len(times) // 2] / 1e3,
        "p99Us": times[len(times) * 99 // 100] / 1e3,
        "perS": len(times) * 1e9 / elapsed,
        "processorUs": (after - before) / len(times) / 1e3,
        "rssMiB": rss,
    }))


main()
