"""A till without `Prefer: wait`, which asks /check itself: python3 polling-till.py KEY AMOUNT. For the rehearsal's tests."""
import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

BANK = urlsplit(os.environ["POSLINE_BANK_URL"]).netloc
PAUSE_S = 1
key, amount = sys.argv[1], int(sys.argv[2])


def post(route, body):
    """The answer's status, outcome and body; None if there was none."""
    try:
        connection = HTTPConnection(BANK, timeout=90)
        connection.request("POST", route, json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.getheader("X-Posline-Outcome"), json.loads(answer.read())
    except (OSError, HTTPException, ValueError):
        return None


def ended():
    """How the sale ended by /check: a word, `none` if the terminal has no such sale, None if that isn't known."""
    checked = post("/check", {"pay_id": key})
    if checked is None or checked[1] != "answered":
        return None
    data = checked[2].get("data") or {}
    if data.get("status") == "APPROVED":
        # The key may be an earlier sale's.
        return "approved" if data["data"]["amount"] == amount else "failed"
    if data.get("status") in ("ERROR", "REVERSED"):
        return "declined"
    return "none" if checked[2].get("code") == -15 else None


nones = 0
word = ended()
if word in (None, "none"):
    word = None
    while post("/sale", {"pay_id": key, "amount": amount, "currency_name": "EUR"}) is None:
        time.sleep(PAUSE_S)
while word is None:
    time.sleep(PAUSE_S)
    word = ended()
    if word == "none":
        # What was refused as not sent, and what was lost: the same sale again, under the same key.
        nones, word = nones + 1, None
        if nones == 3:
            nones = 0
            post("/sale", {"pay_id": key, "amount": amount, "currency_name": "EUR"})
print(word)
