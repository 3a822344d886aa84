"""The bridge that a Python developer would write in an afternoon, to compare with: http.server and pyserial, both Debian's.

Usage: python_bridge.py LINE PORT BAUD REPLY_TIMEOUT_S

What its users do is in here: a thread for each connection, a lock that keeps one exchange on the line, `reset_input_buffer()` before
each request (the advice for replies that came too late), pyserial's read timeout, and 504 when it has passed. An answer is
sent in one piece, since http.server's two would wait for each other on the network.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import serial

CRC_TABLE = []
for value in range(256):
    for _ in range(8):
        value = (value >> 1) ^ 0xA001 if value & 1 else value >> 1
    CRC_TABLE.append(value)


def crc16(data: bytes) -> int:
    value = 0
    for byte in data:
        value = (value >> 8) ^ CRC_TABLE[(value ^ byte) & 0xFF]
    return value


line = serial.Serial(sys.argv[1], int(sys.argv[3]), timeout=float(sys.argv[4]))
one_at_a_time = threading.Lock()


def exchange(payload: bytes) -> bytes | None:
    """The reply's payload; None when none came in time."""
    head = len(payload).to_bytes(4, "big") + payload
    with one_at_a_time:
        line.reset_input_buffer()
        line.write(head + crc16(head).to_bytes(2, "big"))
        length = line.read(4)
        if len(length) < 4:
            return None
        rest = line.read(int.from_bytes(length, "big") + 2)
    if len(rest) < 2 or crc16(length + rest[:-2]) != int.from_bytes(rest[-2:], "big"):
        return None
    return rest[:-2]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        reply = exchange(self.path.encode() + b"\n" + body)
        self.send_response(504 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply or b"")))
        self.end_headers()
        self.wfile.write(reply or b"")
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    # The default of 5 would refuse callers that come together.
    request_queue_size = 1024
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
