"""Plays a bank terminal that now and then answers after the deadline, and keeps a ledger of the sales that it carried out.

Usage: terminal.py LINK LEDGER SALES LATE_FROM_MS LATE_TO_MS SEED

Of the sales S-000000 to S-(SALES-1), one in a hundred is answered late when it comes for the first time: the seed says which, and
by how much. The terminal does one thing at a time, in order, as real ones do; what comes meanwhile waits in its input. It
carries out each sale request that reaches it: many terminals and printers know no key, and the contract's pay_id is only
recommended. Each reply names its sale in txn_id, for the bookkeeping alone: a till of this contract can't compare it.
"""

import json
import os
import random
import sys
import time
import tty

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from wire import OPERATIONS_FRAME, UNKNOWN_FRAME, frame  # noqa: E402

# What an ordinary sale takes.
WORK_S = 0.003


def approved(pay_id: str) -> bytes:
    return frame(json.dumps({
        "status": "success", "data": {"txn_id": pay_id, "status": "APPROVED", "rrn": "632500184217"}, "code": 0, "message": None,
    }).encode())


NOT_FOUND = frame(b'{"status":"error","code":-15,"message":"transaction not found"}')


def main() -> None:
    link, ledger_path = sys.argv[1:3]
    sales, late_from, late_to, seed = map(int, sys.argv[3:7])
    chance = random.Random(seed)
    late = {"S-%06d" % n: chance.uniform(late_from, late_to) / 1e3 for n in chance.sample(range(sales), sales // 100)}
    carried_out: set[str] = set()
    master, slave = os.openpty()
    tty.setraw(slave)
    os.symlink(os.ttyname(slave), link)
    ledger = open(ledger_path, "w", buffering=1)
    print(json.dumps({"ready": 1}), flush=True)

    def answer(payload: bytes) -> bytes:
        route, _, body = payload.partition(b"\n")
        if route == b"/supported_operations":
            return OPERATIONS_FRAME
        if route not in (b"/sale", b"/check"):
            return UNKNOWN_FRAME
        pay_id = json.loads(body)["pay_id"]
        if route == b"/check":
            return approved(pay_id) if pay_id in carried_out else NOT_FOUND
        print(pay_id, file=ledger)
        carried_out.add(pay_id)
        time.sleep(late.pop(pay_id, WORK_S))
        return approved(pay_id)

    pending = b""
    while True:
        pending += os.read(master, 65536)
        while len(pending) >= 4 and len(pending) >= (whole := int.from_bytes(pending[:4], "big") + 6):
            payload, pending = pending[4:whole - 2], pending[whole:]
            reply = answer(payload)
            while reply:
                reply = reply[os.write(master, reply):]


main()
