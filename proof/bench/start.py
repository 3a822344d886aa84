"""Starts programs again and again and prints how long each took until all its TCP ports accepted a connection.

Usage: start.py ROUNDS, with the programs as a JSON list of {"name", "argv", "ports"} on stdin. Prints {name: [ms of each round]}.

The programs take turns. Connecting is the fair way to find out: it asks nothing of what is started.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

LIMIT_S = 20


def accepts(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def start_ms(program: dict) -> float:
    begin = time.perf_counter()
    # A group of its own, so that whatever it starts ends with it.
    child = subprocess.Popen(program["argv"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        for port in program["ports"]:
            while not accepts(port):
                if child.poll() is not None:
                    raise SystemExit("Cannot start %s: it ended with exit code %d" % (program["name"], child.returncode))
                if time.perf_counter() - begin > LIMIT_S:
                    raise SystemExit("Cannot start %s: port %d is silent after %d s" % (program["name"], port, LIMIT_S))
                time.sleep(0.0003)
        return (time.perf_counter() - begin) * 1000
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def main() -> None:
    programs = json.load(sys.stdin)
    times: dict[str, list[float]] = {program["name"]: [] for program in programs}
    for program in programs:
        start_ms(program)
    for _ in range(int(sys.argv[1])):
        for program in programs:
            times[program["name"]].append(start_ms(program))
    print(json.dumps(times))


main()
