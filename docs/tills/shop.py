#!/usr/bin/env python3
"""A till that does everything: python3 shop.py DO KEY AMOUNT [OF], the amount in minor units.

DO is sale, abort, refund, receipt, return, cash-in, qr or qr-refund; abort is a sale that the cashier cancels. OF is the key of what
is given back, or of the sale that the receipt is for. The last line on standard output is how it ended; the exit code is 0 only if that
is good. After a crash, run it again with the same arguments.
"""
import base64
import hashlib
import json
import os
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlencode, urlsplit

BANK = os.environ.get("POSLINE_BANK_URL", "http://localhost:8888")
FISCAL = os.environ.get("POSLINE_FISCAL_URL", "http://localhost:8008")
QR = os.environ.get("POSLINE_QR_URL", "http://localhost:8887")
MERCHANT = os.environ.get("POSLINE_MERCHANT_ID", "MERCHANT-1")
FOLDER = os.environ.get("TILL_FOLDER", "till-state")


def end(code, text):
    print(text, file=sys.stderr)
    sys.exit(code)


def post(address, route, body, headers):
    connect = HTTPSConnection if urlsplit(address).scheme == "https" else HTTPConnection
    connection = connect(urlsplit(address).netloc, timeout=240)
    connection.request("POST", route, body, headers)
    answer = connection.getresponse()
    return answer, answer.read().decode(errors="replace")


def settled(address, route, body):
    """How a call ends, and the answer that shows it: the same call is sent until that is known, for ten minutes."""
    until = time.monotonic() + 600
    while True:
        retry_after = ""
        try:
            answer, text = post(address, route, body, {"Prefer": "wait=60"})
            word = answer.getheader("X-Posline-Result", "")
            is_open = word in ("", "pending", "unknown") or (word == "failed" and answer.status == 503)
            # A person has to look at the terminal: nobody else can tell, or nobody could for ten minutes.
            is_late = word != "" and (time.monotonic() > until or answer.getheader("X-Posline-Reason") == "no-question")
            if not is_open or is_late:
                print(text, file=sys.stderr)
                return word, answer, text
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
    digest = hashlib.sha1((data + MERCHANT).encode()).hexdigest()
    return urlencode({"data": data, "sign": base64.b64encode(digest.encode()).decode()})


def saved(name):
    """What is known of an operation: kept on disk, since it is given back on another day."""
    try:
        with open(os.path.join(FOLDER, name + ".json"), encoding="utf8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def save(name, what):
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, name + ".json")
    with open(f"{path}.{os.getpid()}", "w", encoding="utf8") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.{os.getpid()}", path)


def bank(route, more):
    body = json.dumps({"pay_id": key, "amount": amount, "currency_name": "EUR", **more})
    word, _, text = settled(BANK, route, body)
    rrn = (json.loads(text).get("data") or {}).get("rrn") if word == "approved" else None
    if rrn and not (of and of == key):  # What is given back by the sale's own key keeps the sale's.
        save(key, {"rrn": rrn})
    return word


def fiscal(route, document):
    word, _, text = settled(FISCAL, route, form({"documentExtID": key, **document}))
    if word not in ("closed", "unprinted"):
        return word
    number = json.loads(text).get("documentID")
    save(key, {"documentID": number})
    if word == "unprinted":
        # The document is closed, only the paper is missing. A run asks for a copy once: a lost answer may have printed it.
        _, copy = post(FISCAL, "/check_copy", form({"documentID": number}), {})
        print("copied" if json.loads(copy).get("status") == "success" else f"no copy: {copy}", file=sys.stderr)
    return word


def receipt(more):
    rrn = {"trxParams": {"rrn": earlier["rrn"]}} if earlier.get("rrn") else {"code": "CARD"}
    item = {"itemName": ITEM, "itemQty": QUANTITY, "itemAmount": amount, "itemTaxes": [{"taxPrc": 1800}]}
    return {"items": [item], "extraPayments": [{"amount": amount, **rrn}], **more}


def qr(route, more):
    body = {"pay_id": key, "amount": amount, "currency": "978", "currency_name": "EUR", "pay_system": "QRPAY", **more}
    word, answer, text = settled(QR, route, json.dumps(body))
    if route == "/showqrcode" and word == "approved":
        # Without both nothing can be given back.
        save(key, {"trans": answer.getheader("X-Posline-Trans"), "rrn": (json.loads(text).get("data") or {}).get("rrn")})
    return word


if len(sys.argv) not in (4, 5) or not sys.argv[3].isdecimal():
    end(64, "Usage: python3 shop.py DO KEY AMOUNT [OF], such as sale A-1 1500")
do, key, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])
of = sys.argv[4] if len(sys.argv) == 5 else ""
earlier = saved(of) if of else {}
ITEM = os.environ.get("POSLINE_ITEM", "Coffee")
QUANTITY = int(os.environ.get("POSLINE_QUANTITY", "1000"))  # In thousandths
if do == "sale":
    word = bank("/sale", {})
elif do == "abort":
    # Sent while the sale's own call waits. Only that call's end says what the customer owes.
    threading.Timer(2, post, (BANK, "/abort", json.dumps({"pay_id": key}), {})).start()
    word = bank("/sale", {})
elif do == "refund":
    word = bank("/refund", {"rrn": earlier.get("rrn") or end(2, f"No rrn is known of {of}")})
elif do == "receipt":
    word = fiscal("/sale", receipt({}))
elif do == "return":
    word = fiscal("/refund", receipt({"parentDocID": str(earlier.get("documentID") or end(2, f"No document is known of {of}"))}))
elif do == "cash-in":
    word = fiscal("/deposit", {"amount": amount})
elif do == "qr":
    word = qr("/showqrcode", {})
elif do == "qr-refund":
    named = {"pay_id": of, "trans": earlier.get("trans"), "rrn": earlier.get("rrn") or end(2, f"No rrn is known of {of}")}
    word = qr("/refund", named)
else:
    word = "unsupported"
print(word)
sys.exit(0 if word in ("approved", "closed", "unprinted", "unsupported") else 1)
