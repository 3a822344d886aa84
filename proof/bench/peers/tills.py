"""Tills that make sales over a bridge whose terminal now and then answers late; prints what came of them as one JSON line.

Usage: tills.py WAY PORT SALES TIMEOUT_MS LEDGER

WAY is what the users of a bridge do, by its documentation or their threads:
  retry         a relay of bytes: frames over one TCP connection; no reply in time: send the sale again, three times in all
  flush-retry   the same, and the input is emptied before each request: the remedy of libmodbus#255, delphi-modbus#42, nut#1847
  http-retry    an HTTP bridge: an answer of 5xx means that no reply came: send the sale again, three times in all
  ask           posline, plain: an outcome of unknown is asked about by /check; only what wasn't sent is sent again
  wait          posline with Prefer: wait: the same call again until its word is none of unknown, pending, absent

Four HTTP tills sell at one time, so that the next sale is there when an answer comes; over a relay they take turns. With Prefer: wait
there are 32, since each sale is asked about once, a second after it.
"""

import http.client
import json
import os
import select
import socket
import sys
import threading
import time
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from wire import frame  # noqa: E402

TILLS = {"http-retry": 4, "ask": 4, "wait": 32}
ATTEMPTS = 3
READY_S = 20
HTTP_S = 90
# No till goes on for longer than this about one sale.
SALE_S = 90


def sale_body(pay_id: str) -> bytes:
    return json.dumps({"pay_id": pay_id, "amount": 1500, "currency_name": "EUR"}).encode()


class NoReply(Exception):
    pass


class Relay:
    """Frames over a TCP connection."""

    def __init__(self, port: int, timeout_s: float, flush: bool) -> None:
        self.timeout_s, self.flush, self.pending = timeout_s, flush, b""
        self.socket = socket.create_connection(("127.0.0.1", port), 2)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The relay opens its line with the connection, and may greet.
        time.sleep(0.3)
        self.empty()

    def empty(self) -> None:
        while select.select([self.socket], [], [], 0)[0]:
            if not self.socket.recv(65536):
                raise OSError("Cannot go on: the relay closed the connection")
        self.pending = b""

    def sale(self, pay_id: str) -> bytes:
        if self.flush:
            self.empty()
        self.socket.sendall(frame(b"/sale\n" + sale_body(pay_id)))
        until = time.monotonic() + self.timeout_s
        while True:
            if len(self.pending) >= 4 and len(self.pending) >= (whole := int.from_bytes(self.pending[:4], "big") + 6):
                payload, self.pending = self.pending[4:whole - 2], self.pending[whole:]
                return payload
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                raise NoReply
            more = self.socket.recv(65536)
            if not more:
                raise OSError("Cannot go on: the relay closed the connection")
            self.pending += more


class Http:
    """Calls over one keep-alive connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection: http.client.HTTPConnection | None = None

    def call(self, route: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HTTP_S)
        try:
            self.connection.request("POST", route, body, {"Content-Type": "application/json", **(headers or {})})
            response = self.connection.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise


def relay_sale(relay: Relay, pay_id: str) -> bytes | None:
    for _ in range(ATTEMPTS):
        try:
            return relay.sale(pay_id)
        except NoReply:
            continue
    return None


def http_retry_sale(http_: Http, pay_id: str) -> bytes | None:
    for _ in range(ATTEMPTS):
        status, _, body = http_.call("/sale", sale_body(pay_id))
        if status == 200:
            return body
    return None


def pause(headers: http.client.HTTPMessage) -> None:
    time.sleep(min(float(headers.get("Retry-After", "1")), 2))


def ask_sale(http_: Http, pay_id: str) -> bytes | None:
    route, until = "/sale", time.monotonic() + SALE_S
    while time.monotonic() < until:
        _, headers, body = http_.call(route, sale_body(pay_id) if route == "/sale" else json.dumps({"pay_id": pay_id}).encode())
        outcome = headers["X-Posline-Outcome"]
        if outcome == "not-sent":
            pause(headers)
        elif outcome == "unknown":
            route = "/check"
        elif route == "/check" and json.loads(body).get("code") == -15:
            # It was proven that the terminal knows nothing of it.
            route = "/sale"
        else:
            return body
    return None


def wait_sale(http_: Http, pay_id: str) -> bytes | None:
    until = time.monotonic() + SALE_S
    while time.monotonic() < until:
        _, headers, body = http_.call("/sale", sale_body(pay_id), {"Prefer": "wait=60"})
        if headers["X-Posline-Result"] not in (None, "unknown", "pending"):
            return body
        pause(headers)
    return None


def ready(port: int) -> None:
    until = time.monotonic() + READY_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 2).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise SystemExit("Cannot reach port %d: it refuses connections" % port) from None
            time.sleep(0.1)


def main() -> None:
    way, port, sales, timeout_ms, ledger_path = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    ready(port)
    time.sleep(1)
    to_make = iter(["S-%06d" % n for n in range(sales)])
    lock = threading.Lock()
    counts: Counter[str] = Counter()
    trouble: list[str] = []

    def sell(one_sale, connection) -> None:
        while True:
            with lock:
                pay_id = next(to_make, None)
            if pay_id is None:
                return
            try:
                body = one_sale(connection, pay_id)
            except (OSError, http.client.HTTPException, ValueError) as e:
                body = None
                with lock:
                    trouble.append(repr(e))
            with lock:
                counts["sales"] += 1
                if body is None:
                    counts["unanswered"] += 1
                elif json.loads(body).get("data", {}).get("txn_id") != pay_id:
                    counts["wrong"] += 1

    begin = time.monotonic()
    if way in ("retry", "flush-retry"):
        sell(relay_sale, Relay(port, timeout_ms / 1e3, way == "flush-retry"))
    else:
        one_sale = {"http-retry": http_retry_sale, "ask": ask_sale, "wait": wait_sale}[way]
        threads = [threading.Thread(target=sell, args=(one_sale, Http(port))) for _ in range(TILLS[way])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if trouble:
        print("trouble: %s" % trouble[:5], file=sys.stderr)
    # A call that got the answer before its own ends while the terminal still works at it.
    time.sleep(1)
    with open(ledger_path) as f:
        ran = Counter(f.read().split())
    print(json.dumps({
        "sales": counts["sales"],
        "wrong": counts["wrong"],
        "unanswered": counts["unanswered"],
        "twice": sum(1 for times in ran.values() if times > 1),
        "carriedOut": sum(ran.values()),
        "seconds": time.monotonic() - begin,
    }))


main()
