"""Plays systemd for one service: opens its sockets, hands them over, and prints what the service tells, a JSON line each.

  systemd.py fd|socket WATCHDOG_USEC [HOST:]PORT[,...][,/PATH] COMMAND...

A path is the Unix socket of posline-tap.socket.

`fd` hands over a connected notification socket, as systemd 253 and later do; `socket` only names it, as before that. Commands on
standard input: a signal's number goes to the service, "start" starts it again, end of input ends it.
"""
import json
import os
import select
import signal
import socket
import sys
import tempfile

# Whoever started this may hold a pty's other end, which must hang up when it is let go of there.
os.closerange(3, 256)
how, watchdog, ports, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]


def say(**what):
    print(json.dumps(what), flush=True)


folder = tempfile.mkdtemp(prefix="systemd-")
address = os.path.join(folder, "notify")
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(address)

listening = []
tap = None
for place in ports.split(","):
    if place.startswith("/"):
        tap = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        tap.bind(place)
        tap.listen(16)
        continue
    host, _, port = place.rpartition(":")
    one = socket.socket(socket.AF_INET6 if "[" in host else socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # FreeBind= of posline.socket: IPV6_FREEBIND, which Python has no name for.
    if "[" in host:
        one.setsockopt(socket.IPPROTO_IPV6, 78, 1)
    one.bind((host.strip("[]") or "127.0.0.1", int(port)))
    one.listen(128)
    listening.append(one)
say(ports=[one.getsockname()[1] for one in listening])


def start():
    passed = [("posline.socket", one) for one in listening]
    if tap is not None:
        passed.insert(1, ("tap", tap))
    if how == "fd":
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        told.connect(address)
        # In the middle, since systemd promises no order.
        passed.insert(1, ("notify", told))
    pid = os.fork()
    if pid:
        return pid
    # First out of the way, then to their places: one must not take another's.
    high = [os.dup2(one.fileno(), 100 + n) for n, (_, one) in enumerate(passed)]
    for n, fd in enumerate(high):
        os.dup2(fd, 3 + n, inheritable=True)
    os.closerange(3 + len(passed), 256)
    # The service writes its log to standard error here, and reads nothing.
    os.dup2(2, 1)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    env = dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(passed)))
    env["LISTEN_FDNAMES"] = ":".join(name for name, _ in passed)
    env["NOTIFY_SOCKET"] = address
    if watchdog != "0":
        env["WATCHDOG_USEC"] = watchdog
        env["WATCHDOG_PID"] = str(os.getpid())
    os.execvpe(command[0], command, env)


# Ends are noticed at once, and without polling. The byte is written by the interpreter's own handler: one in Python waits
# until select returns, and an end just before select begins would never be noticed.
read_end, write_end = os.pipe()
os.set_blocking(write_end, False)
signal.set_wakeup_fd(write_end)
signal.signal(signal.SIGCHLD, lambda *_: None)
child = start()
stdin_open = True
while True:
    ready, _, _ = select.select([notify, read_end] + ([0] if stdin_open else []), [], [])
    if notify in ready:
        say(told=notify.recv(65536).decode())
        continue
    if 0 in ready:
        words = os.read(0, 4096).split()
        if not words:
            stdin_open = False
            os.kill(child, signal.SIGKILL)
        for word in words:
            if word == b"start":
                child = start()
            else:
                os.kill(child, int(word))
        continue
    if read_end in ready:
        os.read(read_end, 1)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            say(ended=os.waitstatus_to_exitcode(status))
            if not stdin_open:
                break
os.unlink(address)
os.rmdir(folder)
