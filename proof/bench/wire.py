"""What client.py and responder.py both say on the wire: length frames, one request, one reply.

Both ends are the same for every bridge that is measured, so they only have to be cheap and right.
"""


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit: every frame is made once and cached, so its speed doesn't matter."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ 0xA001 if value & 1 else value >> 1
    return value


assert crc16(b"123456789") == 0xBB3D


def frame(payload: bytes) -> bytes:
    head = len(payload).to_bytes(4, "big") + payload
    return head + crc16(head).to_bytes(2, "big")


# A bank status query, the request that a till sends most often (bank contract: Status query request).
REQUEST_BODY = b'{"pay_id":"ORDER-2026-11-20-000184","language":"en","no_print_data":true}'
NUMBER = b"000184"
# A sale of the same length (bank contract: Sale request), its pay_id to be filled in.
SALE_BODY = b'{"pay_id":"ORDER-2026-%011d","amount":125000,"currency_name":"UZS"}'
REQUEST_FRAME = frame(b"/check\n" + REQUEST_BODY)


def body_of(client: int) -> bytes:
    """The request's body with a pay_id of this client's, of the same length."""
    return REQUEST_BODY.replace(NUMBER, b"%06d" % (int(NUMBER) + client))


def request_frame(client: int, route: str = "/check") -> bytes:
    return frame(route.encode() + b"\n" + body_of(client))


# A final approval (bank contract: Transaction result).
REPLY_BODY = (
    b'{"status":"success","data":{"txn_id":"9f3c2b7a-51de-4c0e-a6a1-0b6c5a1e77d2","status":"APPROVED",'
    b'"card_num":"411111******1111","rrn":"632500184217","auth":"A81J2K","data":{"terminal":1,"merchant":1,'
    b'"amount":125000,"currency_name":"UZS"},"print_data":{"header":"POSLINE BENCH 12","footer":"THANK YOU FOR YOUR VISIT 2026-11-20"'
    b'}},"code":0,"message":null}'
)
REPLY_FRAME = frame(REPLY_BODY)

OPERATIONS_FRAME = frame(b'{"status":"success","data":{"operations":["sale","check"]}}')
SYSTEMS_FRAME = frame(b'{"status":"success","data":{"systems":[]}}')
UNKNOWN_FRAME = frame(b'{"status":"error","code":-80,"message":"operation not supported"}')


def large_reply(payload_bytes: int) -> bytes:
    """A reply of this size, with all of its frame."""
    head, tail = b'{"status":"success","code":0,"data":"', b'"}'
    return frame(head + b"x" * (payload_bytes - len(head) - len(tail)) + tail)


def answer(request: bytes) -> bytes:
    """The reply frame to a whole request frame."""
    if request.startswith((b"/check\n", b"/sale\n"), 4):
        return REPLY_FRAME
    if request.startswith(b"/supported_operations", 4):
        return OPERATIONS_FRAME
    if request.startswith(b":8887/check_connection", 4):
        return SYSTEMS_FRAME
    return UNKNOWN_FRAME
