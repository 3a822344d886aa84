#!/usr/bin/env python3
"""A sale by card, then its fiscal receipt: python3 receipt.py KEY AMOUNT MERCHANT_ID [BANK] [FISCAL].

After a crash, run it again with the same arguments: nothing is charged, or printed as a sale, a second time.
Exit code 4: the card is charged, and there is no receipt yet.
"""
import base64
import hashlib
import json
import sys
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlencode, urlsplit


def post(address, route, body, headers):
    connect = HTTPSConnection if urlsplit(address).scheme == "https" else HTTPConnection
    connection = connect(urlsplit(address).netloc, timeout=240)
    connection.request("POST", route, body, headers)
    answer = connection.getresponse()
    return answer, answer.read().decode(errors="replace")


def settled(address, route, body):
    """How a call ends, and the answer that shows it: the same call is sent until that is known."""
    while True:
        retry_after = ""
        try:
            answer, text = post(address, route, body, {"Prefer": "wait=60"})
            word = answer.getheader("X-Posline-Result", "")
            if word not in ("", "pending", "unknown") and not (word == "failed" and answer.status == 503):
                print(text, file=sys.stderr)
                return word, text
            if word in ("pending", "unknown") and answer.getheader("X-Posline-Repeat-Guard") == "off":
                end(3, f"{route} is {word}, and no journal: look at the terminal, and do not send it again before")
            if word == "" and text and answer.status < 500 and answer.status != 408:
                end(2, f"{answer.status} {text}")
            retry_after = answer.getheader("Retry-After", "")
        except (OSError, HTTPException):
            pass  # Not there, or cut: the same call again.
        time.sleep(int(retry_after) if retry_after.isdecimal() else 2)


def form(document):
    """The fiscal form: the sign is Base64 of the hexadecimal SHA-1 of data and the merchant's id."""
    data = base64.b64encode(json.dumps(document).encode()).decode()
    digest = hashlib.sha1((data + merchant).encode()).hexdigest()
    return urlencode({"data": data, "sign": base64.b64encode(digest.encode()).decode()})


def end(code, text):
    print(text, file=sys.stderr)
    sys.exit(4 if is_charged else code)


is_charged = False
if len(sys.argv) < 4 or not sys.argv[2].isdecimal():
    end(64, "Usage: python3 receipt.py KEY AMOUNT MERCHANT_ID [BANK] [FISCAL], such as A-1 1500 MERCHANT-1")
key, amount, merchant = sys.argv[1], int(sys.argv[2]), sys.argv[3]
bank, fiscal = (sys.argv[4:] + ["http://localhost:8888", "http://localhost:8008"][len(sys.argv[4:]):])[:2]

paid, text = settled(bank, "/sale", json.dumps({"pay_id": key, "amount": amount, "currency_name": "EUR"}))
print(paid)
if paid != "approved":
    sys.exit(1)
is_charged = True
rrn = (json.loads(text).get("data") or {}).get("rrn") or end(1, "The answer has no rrn for the receipt: run it again")
# A key of its own: a document under the sale's would be refused on the same terminal.
receipt = {
    "documentExtID": key + "-R",
    "items": [{"itemName": "Coffee", "itemQty": 1000, "itemAmount": amount, "itemTaxes": [{"taxPrc": 1800}]}],
    "extraPayments": [{"amount": amount, "trxParams": {"rrn": rrn}}],
}
issued, text = settled(fiscal, "/sale", form(receipt))
print(issued)
if issued == "unprinted":
    # The document is closed, only the paper is missing. A run asks for a copy once: a lost answer may have printed it.
    _, copy = post(fiscal, "/check_copy", form({"documentID": json.loads(text)["documentID"]}), {})
    print("copied" if json.loads(copy).get("status") == "success" else f"no copy: {copy}")
sys.exit(0 if issued in ("closed", "unprinted") else 4)
