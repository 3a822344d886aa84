#!/usr/bin/env python3
"""A sale, sent again until its end is known: python3 till.py KEY AMOUNT [ADDRESS], the amount in minor units."""
import json
import sys
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

if len(sys.argv) not in (3, 4) or not sys.argv[2].isdecimal():
    print("Usage: python3 till.py KEY AMOUNT [ADDRESS], such as A-1 1500", file=sys.stderr)
    sys.exit(64)
address = urlsplit(sys.argv[3] if len(sys.argv) == 4 else "http://localhost:8888")
connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
sale = json.dumps({"pay_id": sys.argv[1], "amount": int(sys.argv[2]), "currency_name": "EUR"})
exits = {"approved": 0, "declined": 1, "failed": 1, "reversed": 1}
while True:
    retry_after = ""
    try:
        connection = connect(address.netloc, timeout=90)
        connection.request("POST", "/sale", sale, {"Content-Type": "application/json", "Prefer": "wait=60"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        word = answer.getheader("X-Posline-Result")
        if word in exits and not (word == "failed" and answer.status == 503):  # Nothing was sent: the same call again.
            print(word)
            print(text, file=sys.stderr)
            sys.exit(exits[word])
        if word in ("pending", "unknown") and answer.getheader("X-Posline-Repeat-Guard") == "off":
            print(word + ", and no journal: look at the terminal, and do not sell again before", file=sys.stderr)
            sys.exit(3)
        if word is None and text and answer.status < 500 and answer.status != 408:
            print(answer.status, text, file=sys.stderr)
            sys.exit(2)
        retry_after = answer.getheader("Retry-After", "")
    except (OSError, HTTPException):
        pass  # Not there, or cut: the same call again.
    time.sleep(int(retry_after) if retry_after.isdecimal() else 2)
