import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Deed } from "../../../src/lab/rehearse/scenario.ts";

/**
 * Wrong tills: each is one of three right ones with one mistake, which is a change of its text. run.ts runs all of them, and
 * test/e2e/rehearse.test.ts those whose sentence is given.
 */

export const kinds = [
  ...["new key", "false word", "kill", "code", "amount", "text", "refund", "unasked", "booking", "pace"],
] as const;

/** One call with `Prefer: wait`; its own questions; curl and sh. */
export const styles = {
  wait: { file: fileURLToPath(new URL("../../../docs/tills/shop.py", import.meta.url)), runner: "python3" },
  polling: { file: fileURLToPath(new URL("polling.py", import.meta.url)), runner: "python3" },
  curl: { file: fileURLToPath(new URL("curl.sh", import.meta.url)), runner: "sh" },
} as const;

export type Style = keyof typeof styles;

type Changes = readonly (readonly [from: string, to: string])[];

export interface Mistake {
  readonly name: string;
  readonly kind: (typeof kinds)[number];
  readonly style: Style;
  readonly deed: Deed;
  /** What it does wrong. */
  readonly wrong: string;
  /** The scenarios that ought to name it, by the first that does. */
  readonly scenarios: readonly string[];
  readonly changes: Changes;
  /** The sentence that names it, if the tests are to try it each time. */
  readonly why?: RegExp;
}

export const commandOf = (style: Style, file: string = styles[style].file) =>
  `${styles[style].runner} ${file} {do} {key} {amount} {of}`;

/** The text of the wrong till. */
export function wrongTill({ name, style, changes }: Mistake): string {
  return changes.reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new RangeError(`Cannot make the till ${name}: ${style} has no: ${from}`);
      return text.replaceAll(from, to);
    },
    readFileSync(styles[style].file, "utf8"),
  );
}

const row =
  (kind: Mistake["kind"], style: Style, deed: Deed) =>
  (name: string, wrong: string, scenarios: string, changes: Changes, why?: RegExp): Mistake => {
    const shared = { name: `${style}-${deed}-${name}`, kind, style, deed, wrong, scenarios: scenarios.split(" "), changes };
    return why === undefined ? shared : { ...shared, why };
  };

// What the polling till does after its start, at its first question, and before all.
const start = "            answer = post(service, route, body)\n";
const opening = "    word = end()\n    nones =";
const again = "        word = end()\n        nones";
const first = "os.makedirs(FOLDER, exist_ok=True)\n";
const approvedData = '        save(key, {"rrn": data["rrn"]})\n';

const afterStart = (deed: Deed, lines: string): Changes => [
  [start, `${start}            if do == "${deed}":\n${lines.replace(/^/gm, " ".repeat(16))}\n`],
];
const noAnswerIs = (deed: Deed, word: string) => afterStart(deed, `if answer is None:\n    return "${word}"`);
const newKey = (deed: Deed, field: string): Changes => [
  [opening, `    global key\n${opening}`],
  ...afterStart(deed, `if answer is None:\n    key += "x"\n    post(service, route, {**body, "${field}": key})`),
];
const atFirst = (deed: Deed, lines: string): Changes => [
  [first, `${first}if do == "${deed}":\n${lines.replace(/^/gm, "    ")}\n`],
];
const keyOfRun = (deed: Deed) => atFirst(deed, 'key += f"-{os.getpid()}"');
const refusesSecondRun = (deed: Deed) =>
  atFirst(deed, 'if saved(key + ".begun"):\n    print("failed")\n    sys.exit()\nsave(key + ".begun", {"begun": True})');
const newKeyAtEnd = (status: string): Changes => [
  ["def card_end():\n", "def card_end():\n    global key, card\n"],
  [
    '    if data.get("status") == "ERROR":\n',
    `    if data.get("status") == "${status}":\n        key += "x"\n        post("bank", "/sale", {**card, "pay_id": key})\n        return None\n    if data.get("status") == "ERROR":\n`,
  ],
];
/** What else is called when a deed went well. */
const alsoCalls = (deed: Deed, service: string, route: string, body: string): Changes => [
  [
    "print(word)\n",
    `if do == "${deed}" and word in ("approved", "closed"):\n    post("${service}", "${route}", ${body})\nprint(word)\n`,
  ],
];
const afterCurlFails: Changes = [["      :*:408*) ;;", '      ::) set -- "$1" "$(printf %s "$2" | sed "s/$key/&x/")" ;;']];
const fiscalAfterCut: Changes = [
  [
    "            pass  # Not there",
    '            document["documentExtID"] += "x"\n            body = form(document)  # Not there',
  ],
  ["def settled(address, route, body):", "def settled(address, route, body, document={}):"],
  [
    'settled(FISCAL, route, form({"documentExtID": key, **document}))',
    'settled(FISCAL, route, form({"documentExtID": key, **document}), {"documentExtID": key, **document})',
  ],
];
const finals = 'FINAL = {"bank": (-16, -29, -47, -80, -100, -101)';
const itemLine = '    item = os.environ.get("POSLINE_ITEM", "Coffee")\n';
const itemIs = (text: string): Changes => [[itemLine, `${itemLine}    item = ${text}\n`]];

export const mistakes: readonly Mistake[] = [
  // A new key
  row("new key", "polling", "sale")(
    "after-timeout",
    "makes a new key after 504",
    "no-answer-carried-out late-answer",
    newKey("sale", "pay_id"),
    /the till began 2: /,
  ),
  row("new key", "polling", "refund")(
    "after-timeout",
    "gives back under a new key after 504",
    "given-back",
    newKey("refund", "pay_id"),
  ),
  row("new key", "polling", "receipt")(
    "after-timeout",
    "prints under a new key after 504",
    "receipt-no-answer",
    newKey("receipt", "documentExtID"),
  ),
  row("new key", "polling", "return")(
    "after-timeout",
    "prints the return under a new key after 504",
    "return",
    newKey("return", "documentExtID"),
  ),
  row("new key", "polling", "cash-in")(
    "after-timeout",
    "puts cash in under a new key after 504",
    "cash-in-doubt",
    newKey("cash-in", "documentExtID"),
  ),
  row("new key", "polling", "qr")("after-timeout", "shows a second code if a question has no answer", "qr-no-answer", [
    ["def qr_end():\n", "def qr_end():\n    global key\n"],
    [
      '"pay_system": "QRPAY"}) or {}\n',
      '"pay_system": "QRPAY"})\n    if asked is None:\n        key += "x"\n        post("qr", "/showqrcode", {"pay_id": key, "currency_name": "EUR", **payment})\n        asked = {}\n',
    ],
  ]),
  row("new key", "wait", "sale")("after-cut", "makes a new key when the connection is cut", "connection-cut posline-killed", [
    ["            pass  # Not there", '            body = body.replace(key, key + "x")  # Not there'],
  ]),
  ...(["receipt", "cash-in"] as const).map((deed) =>
    row("new key", "wait", deed)(
      "after-cut",
      "prints under a new key when the connection is cut",
      "receipt-connection-cut cash-in-outage",
      fiscalAfterCut,
    ),
  ),
  row("new key", "curl", "sale")(
    "after-cut",
    "makes a new key when curl fails",
    "connection-cut posline-killed",
    afterCurlFails,
  ),
  row("new key", "wait", "sale")(
    "after-503",
    "makes a new key after failed with 503, and forgets it",
    "cable-out",
    [
      [
        '            retry_after = answer.getheader("Retry-After", "")\n',
        '            retry_after = answer.getheader("Retry-After", "")\n            if word == "failed":\n                body = body.replace(key, key + "x")\n',
      ],
    ],
    /Asked for one sale of .*, the till began 2: /,
  ),
  row("new key", "curl", "refund")("after-cut", "makes a new key when curl fails", "refund-of-part", afterCurlFails),
  row("new key", "wait", "qr")("after-cut", "shows a second code when the connection is cut", "qr-given-back", [
    ["            pass  # Not there", '            body = body.replace(key, key + "x")  # Not there'],
  ]),
  row("new key", "wait", "sale")(
    "by-amount",
    "makes the key of the amount, so that tomorrow's sale has it too",
    "new-day",
    [
      [
        "do, key, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])",
        'do, key, amount = sys.argv[1], "A-" + sys.argv[3], int(sys.argv[3])',
      ],
    ],
    /The till said approved at .*; asked was .*, and the terminal has nothing of it/,
  ),
  row("new key", "polling", "sale")(
    "after-decline",
    "tries a declined card again under a new key",
    "declined",
    newKeyAtEnd("ERROR"),
  ),
  row("new key", "polling", "sale")("after-reversal", "sells anew after a reversal", "reversed", newKeyAtEnd("REVERSED")),
  row("new key", "polling", "sale")(
    "two-at-once",
    "sends a sale under two keys at once",
    "approved",
    afterStart("sale", 'post(service, route, {**body, "pay_id": key + "y"})'),
    /the till began 2: /,
  ),
  row("new key", "polling", "sale")(
    "after-slow",
    "aborts a sale that goes on, and sells anew",
    "slow",
    [
      [
        again,
        `        if do == "sale" and card_end() is None:\n            post("bank", "/abort", {"pay_id": key})\n            post("bank", "/sale", {**card, "pay_id": key + "x"})\n${again}`,
      ],
    ],
    /the till began \d+: /,
  ),

  // A false word
  row("false word", "polling", "sale")(
    "no-answer-declined",
    "takes 504 for declined",
    "no-answer-carried-out",
    noAnswerIs("sale", "declined"),
    /The till said declined at .* the terminal has \/sale of .*, approved/,
  ),
  row("false word", "polling", "sale")(
    "no-answer-approved",
    "takes 504 for approved",
    "no-answer-not-carried-out",
    noAnswerIs("sale", "approved"),
  ),
  row("false word", "polling", "sale")(
    "start-approved",
    "takes the success of a start for paid",
    "declined",
    afterStart("sale", 'if answer and answer["status"] == "success":\n    return "approved"'),
    /The till said approved .* the terminal has \/sale of .*, declined/,
  ),
  row("false word", "polling", "refund")(
    "no-answer-declined",
    "says that a refund without an answer failed",
    "given-back",
    noAnswerIs("refund", "failed"),
  ),
  row("false word", "polling", "refund")(
    "no-answer-approved",
    "says that a refund without an answer is done",
    "refund-lost",
    noAnswerIs("refund", "approved"),
  ),
  row("false word", "polling", "refund")(
    "start-approved",
    "takes the success of a refund's start for given back",
    "refund-refused",
    afterStart("refund", 'if answer and answer["status"] == "success":\n    return "approved"'),
  ),
  row("false word", "polling", "receipt")(
    "no-answer-failed",
    "says that a receipt without an answer failed",
    "receipt-no-answer",
    noAnswerIs("receipt", "failed"),
  ),
  row("false word", "polling", "receipt")(
    "no-answer-closed",
    "says that a receipt without an answer is closed",
    "receipt-lost-start",
    noAnswerIs("receipt", "closed"),
  ),
  row("false word", "polling", "cash-in")(
    "no-answer-failed",
    "says that cash without an answer failed",
    "cash-in-doubt",
    noAnswerIs("cash-in", "failed"),
  ),
  row("false word", "polling", "cash-in")(
    "no-answer-closed",
    "says that cash without an answer is in",
    "cash-in-doubt",
    noAnswerIs("cash-in", "closed"),
  ),
  row("false word", "polling", "qr")("no-answer-declined", "takes a question without an answer for declined", "qr-no-answer", [
    ['"pay_system": "QRPAY"}) or {}\n', '"pay_system": "QRPAY"}) or {"status": "error"}\n'],
  ]),
  row("false word", "polling", "qr")(
    "start-approved",
    "takes a shown code for paid",
    "qr-declined",
    afterStart("qr", 'if answer and answer["status"] == "success":\n    return "approved"'),
  ),
  row("false word", "polling", "qr-refund")(
    "no-answer-declined",
    "says that a QR refund without an answer failed",
    "qr-refund-in-doubt",
    [['"unknown" if answer is None', '"failed" if answer is None']],
  ),
  row("false word", "polling", "qr-refund")(
    "no-answer-approved",
    "says that a QR refund without an answer is done",
    "qr-refund-in-doubt",
    [['"unknown" if answer is None', '"approved" if answer is None']],
  ),
  row("false word", "polling", "sale")(
    "reversed-approved",
    "takes a reversal for approved, since it has an auth code",
    "reversed",
    [['        return "reversed"', '        return "approved"']],
  ),
  row("false word", "wait", "sale")("by-status", "takes HTTP 200 for approved", "declined", [
    [
      "            if not is_open or is_late:\n",
      '            word = "approved" if answer.status == 200 else word\n            if not is_open or is_late:\n',
    ],
  ]),
  row("false word", "curl", "sale")(
    "pending-approved",
    "says approved after a second of pending",
    "declined no-answer-not-carried-out",
    [
      ["wait=60", "wait=1"],
      ["      pending:* | unknown:*) ;;", "      pending:* | unknown:*) word=approved && break ;;"],
    ],
  ),
  row("false word", "wait", "sale")(
    "pending-approved",
    "waits 3 s, and takes pending for approved",
    "slow",
    [
      ["wait=60", "wait=3"],
      [
        "            if not is_open or is_late:\n",
        '            if word == "pending":\n                return "approved", answer, text\n            if not is_open or is_late:\n',
      ],
    ],
    /said approved at .*, while it still went on; later the terminal has \/sale of .*, approved/,
  ),
  row("false word", "curl", "sale")(
    "success-approved",
    "takes success in the body for approved: pending has it too",
    "slower",
    [
      [
        "    word=$(header X-Posline-Result)\n",
        '    word=$(header X-Posline-Result)\n    case $answer in *\'"status":"success"\'*) word=approved ;; esac\n',
      ],
    ],
  ),
  row("false word", "curl", "sale")("unknown-wordless", "ends without a word if the minute's end is unknown", "cable-away", [
    ["      pending:* | unknown:*) ;;", "      pending:*) ;;\n      unknown:*) exit 1 ;;"],
  ]),
  row("false word", "wait", "sale")(
    "three-tries",
    "says failed after three calls without an answer",
    "connection-cut",
    [
      ["    while True:\n        retry_after", "    tries = 0\n    while True:\n        retry_after"],
      ["            pass  # Not there", "            tries += 1  # Not there"],
      [
        "        time.sleep(int(retry_after)",
        '        if tries == 3:\n            return "failed", None, ""\n        time.sleep(int(retry_after)',
      ],
    ],
    /The till said failed at .*; the terminal has \/sale of .*, approved/,
  ),
  row("false word", "wait", "sale")("pending-failed", "says failed after five seconds of pending, and takes cash", "slow", [
    ["wait=60", "wait=5"],
    [
      'is_open = word in ("", "pending", "unknown")',
      'word = {"pending": "failed", "unknown": "failed"}.get(word, word)\n            is_open = word in ("",)',
    ],
  ]),
  row("false word", "polling", "sale")("gives-up", "says failed after 25 s, and takes cash", "slower", [
    [opening, `    until = time.monotonic() + 25\n${opening}`],
    [again, `        if time.monotonic() > until:\n            return "failed"\n${again}`],
  ]),
  row("false word", "wait", "sale")("gives-up", "says declined after 25 s, and takes cash", "slower", [
    ["wait=60", "wait=25"],
    [
      'is_open = word in ("", "pending", "unknown")',
      'word = {"pending": "declined", "unknown": "declined"}.get(word, word)\n            is_open = word in ("",)',
    ],
  ]),
  row("false word", "polling", "sale")(
    "abort-declined",
    "aborts a sale that goes on, and says declined without waiting",
    "slow abort-too-late",
    [
      [
        again,
        `        if do == "sale" and card_end() is None:\n            post("bank", "/abort", {"pay_id": key})\n            return "declined"\n${again}`,
      ],
    ],
  ),
  row("false word", "polling", "abort")(
    "accepted-is-declined",
    "takes the answer to /abort for the end of the sale",
    "abort-too-late",
    [
      [
        '    post("bank", "/abort", {"pay_id": key})\n    word = carried',
        '    word = "declined" if post("bank", "/abort", {"pay_id": key}) else carried',
      ],
    ],
    /said declined at .* the terminal has \/sale of .*, approved/,
  ),
  row("false word", "curl", "abort")("other-key", "aborts another key than that of the sale", "abort-in-time", [
    ['{\\"pay_id\\":\\"$key\\"}" "$POSLINE_BANK_URL/abort"', '{\\"pay_id\\":\\"$key-1\\"}" "$POSLINE_BANK_URL/abort"'],
  ]),
  row("new key", "wait", "abort")("sold-again", "sells again under a new key after an abort", "abort-in-time", [
    [
      '(BANK, "/abort", json.dumps({"pay_id": key}), {})).start()\n    word = bank("/sale", {})',
      '(BANK, "/abort", json.dumps({"pay_id": key}), {})).start()\n    word = bank("/sale", {})\n    key += "x"\n    word = bank("/sale", {})',
    ],
  ]),
  row("false word", "polling", "sale")("cash-without-abort", "takes cash after three seconds, while the card is out", "slow", [
    [again, `        nones += 0.001\n        if nones % 1 > 0.0025:\n            return "failed"\n${again}`],
  ]),
  row("false word", "polling", "sale")("terminate", "ends a sale that goes on by /terminate", "slow", [
    [again, `        if do == "sale" and card_end() is None:\n            post("bank", "/terminate", {})\n${again}`],
  ]),
  row("false word", "polling", "receipt")("as-card", "reads a receipt's answer as a card's", "receipt-no-answer", [
    ['            return "closed"', '            return "approved"'],
  ]),
  row("false word", "curl", "receipt")("unprinted-closed", "says closed of a document without paper", "receipt-unprinted", [
    ['echo "$word"', 'echo "$word" | sed s/unprinted/closed/'],
  ]),
  row("false word", "wait", "receipt")(
    "unprinted-failed",
    "takes code 15 for failed",
    "receipt-unprinted",
    [["    return word\n\n\ndef receipt", '    return "failed" if word == "unprinted" else word\n\n\ndef receipt']],
    /The till said failed at .*; the terminal has \/sale of/,
  ),
  row("false word", "polling", "sale")(
    "amount-unseen",
    "ignores the amount of the answer",
    "key-reused",
    [['        if data["data"]["amount"] != amount:', "        if False:"]],
    /The till said approved at .*; asked was .*, and the terminal has nothing of it/,
  ),

  // Codes
  row("code", "polling", "sale")(
    "15-for-ever",
    "waits for ever for a sale that the terminal doesn't have (-15)",
    "no-answer-not-carried-out",
    [
      ['"none" if checked.get("code") == -15', '"none" if checked.get("code") == -15 and nothing_sent'],
      [start, `            nothing_sent = False\n${start}`],
      [opening, `    global nothing_sent\n${opening}`],
      [first, `${first}nothing_sent = True\n`],
    ],
  ),
  row("code", "polling", "sale")("3-declined", "takes -3 for declined", "error-in-doubt", [
    [finals, 'FINAL = {"bank": (-3, -16, -29, -47, -80, -100, -101)'],
  ]),
  row("code", "polling", "sale")(
    "error-for-ever",
    "polls for ever, since it knows only REVERSED",
    "declined",
    [['if data.get("status") == "ERROR":', 'if data.get("status") == "DECLINED":']],
    /had not ended the sale after/,
  ),
  row("code", "polling", "sale")("54-for-ever", "knows -20 and -21 only, and polls for ever after -54", "card-timeout", [
    ['if data.get("status") == "ERROR":', 'if data.get("status") == "ERROR" and checked.get("code") in (-20, -21):'],
  ]),
  row("code", "polling", "sale")("54-approved", "takes an error that it doesn't know (-54) for approved", "card-timeout", [
    [
      '        return "declined"\n    if data.get("status") == "REV',
      '        return "declined" if checked.get("code") in (-20, -21) else "approved"\n    if data.get("status") == "REV',
    ],
  ]),
  row("code", "polling", "sale")(
    "100-for-ever",
    "sends again for ever after -100",
    "refused-at-start",
    afterStart("sale", 'while answer and answer.get("code") == -100:\n    time.sleep(PAUSE_S)'),
  ),
  row("code", "polling", "sale")(
    "101-approved",
    "takes any answer but -20 and -21 for approved (-101)",
    "refused-at-start",
    afterStart("sale", 'if answer and answer.get("code") in (-100, -101):\n    return "approved"'),
  ),
  row("code", "polling", "sale")(
    "401-approved",
    "takes a refused API key for approved",
    "unauthorized",
    [['sys.exit("posline knows no such API key: nothing was sent")', 'print("approved")\n            sys.exit()']],
    /said approved at .* the terminal has nothing of it/,
  ),
  row("code", "polling", "refund")("16-approved", "takes -16 for given back, and sends a wrong rrn", "given-back", [
    ['"rrn": earlier["rrn"]}, card_end', '"rrn": "000000009999"}, card_end'],
    ...afterStart("refund", 'if answer and answer.get("code") == -16:\n    return "approved"'),
  ]),
  row("code", "polling", "refund")("16-declined", "sends a wrong rrn, and says that the refund is declined", "given-back", [
    ['"rrn": earlier["rrn"]}, card_end', '"rrn": "000000009999"}, card_end'],
  ]),
  row("code", "polling", "sale")("29-failed", "sends an amount as text, and says failed of -29", "approved", [
    ['card = {"pay_id": key, "amount": amount', 'card = {"pay_id": key, "amount": f"{amount / 100:.2f}"'],
  ]),
  row("code", "polling", "receipt")(
    "5-failed",
    "takes code 5 for failed, of a document that is closed",
    "receipt-errors",
    afterStart("receipt", 'if answer and answer.get("code") == 5:\n    return "failed"'),
  ),
  row("code", "polling", "receipt")("5-new-key", "prints under a new key after code 5", "receipt-errors", [
    [opening, `    global key\n${opening}`],
    ...afterStart(
      "receipt",
      'if answer and answer.get("code") == 5:\n    key += "x"\n    post(service, route, {**body, "documentExtID": key})',
    ),
  ]),
  row("code", "polling", "receipt")(
    "44-failed",
    "takes code 44 for failed",
    "receipt-processing",
    afterStart("receipt", 'if answer and answer.get("code") == 44:\n    return "failed"'),
  ),
  row("code", "polling", "receipt")("open-closed", "takes docStatus 0 for closed", "receipt-processing", [
    [
      '    if asked.get("docStatus") == 1:\n',
      '    if asked.get("docStatus") == 0:\n        return "closed"\n    if asked.get("docStatus") == 1:\n',
    ],
  ]),
  row("code", "polling", "receipt")(
    "10-closed",
    "takes code 10 for closed",
    "receipt-errors",
    afterStart("receipt", 'if answer and answer.get("code") == 10:\n    return "closed"'),
  ),

  // A kill
  row("kill", "polling", "sale")(
    "key-of-run",
    "makes a new key when it is run again",
    "till-killed",
    keyOfRun("sale"),
    /the till began 2: /,
  ),
  row("kill", "polling", "refund")(
    "key-of-run",
    "makes a new key for the refund when it is run again",
    "refund-till-killed",
    keyOfRun("refund"),
  ),
  row("kill", "polling", "receipt")(
    "key-of-run",
    "makes a new key for the receipt when it is run again",
    "receipt-till-killed",
    keyOfRun("receipt"),
  ),
  row("kill", "polling", "return")(
    "key-of-run",
    "makes a new key for the return when it is run again",
    "receipt-till-killed",
    keyOfRun("return"),
  ),
  row("kill", "polling", "cash-in")(
    "key-of-run",
    "makes a new key for the cash when it is run again",
    "cash-in-doubt",
    keyOfRun("cash-in"),
  ),
  row("new key", "polling", "qr")(
    "each-run",
    "shows a second code when it is asked for the same payment again",
    "qr-repeated",
    keyOfRun("qr"),
    /Asked for one qr of .*, the till began [23]: /,
  ),
  row("kill", "polling", "qr")(
    "key-of-run",
    "makes a new key for the code when it is run again",
    "qr-till-killed",
    keyOfRun("qr"),
  ),
  row("kill", "polling", "sale")(
    "second-run-failed",
    "says failed when it is run again",
    "till-killed",
    refusesSecondRun("sale"),
  ),
  row("kill", "polling", "refund")(
    "second-run-failed",
    "says that the refund failed when it is run again",
    "refund-till-killed",
    refusesSecondRun("refund"),
  ),
  row("kill", "polling", "receipt")(
    "second-run-failed",
    "says that the receipt failed when it is run again",
    "receipt-till-killed",
    refusesSecondRun("receipt"),
  ),
  row("kill", "polling", "qr-refund")("second-run-sends", "sends a QR refund again when it is run again", "qr-till-killed", [
    ["    if saved(key):\n        answer = None", "    if False:\n        answer = None"],
  ]),
  row("kill", "polling", "sale")("rrn-lost", "keeps the rrn only if it sees the start's answer itself", "refund-till-killed", [
    [approvedData, '        if sent_here:\n            save(key, {"rrn": data["rrn"]})\n'],
    [opening, `    global sent_here\n${opening}`],
    [start, `${start}            sent_here = answer is not None\n`],
    [first, `${first}sent_here = False\n`],
  ]),

  // Amounts
  row("amount", "polling", "sale")(
    "float",
    "rounds amounts through a float",
    "huge-amount",
    [["amount = int(amount)\n", "amount = int(float(amount) / 100 * 100)\n"]],
    /asked was 90071992547\d+\.\d\d, and the terminal has \/sale of 90071992547/,
  ),
  row("amount", "polling", "sale")("32-bit", "cuts amounts to 32 bits", "huge-amount", [
    ["amount = int(amount)\n", "amount = int(amount) % 2**32\n"],
  ]),
  row("amount", "polling", "sale")("whole", "drops what is behind the point", "approved", [
    ["amount = int(amount)\n", "amount = int(amount) // 100 * 100\n"],
  ]),
  row("amount", "polling", "sale")("hundredfold", "takes minor units for whole ones", "approved", [
    ["amount = int(amount)\n", "amount = int(amount) * 100\n"],
  ]),
  row("amount", "curl", "receipt")("float", "writes a receipt's amount by a float", "receipt-exact", [
    ["do=$1 key=$2 amount=$3 of=$4", 'do=$1 key=$2 of=$4\namount=$(awk "BEGIN { printf \\"%.0f\\", $3 }")'],
  ]),
  row("amount", "polling", "cash-in")("float", "rounds cash through a float", "cash-in-doubt", [
    ["amount = int(amount)\n", 'amount = int(float(amount)) if do == "cash-in" else int(amount)\n'],
  ]),
  row("amount", "polling", "qr")("float", "rounds a QR payment through a float", "qr-no-answer", [
    ["amount = int(amount)\n", 'amount = int(float(amount)) if do == "qr" else int(amount)\n'],
  ]),
  row("amount", "polling", "receipt")("quantity-float", "makes 1.000 of 1.001 by a float", "receipt-exact", [
    [
      'int(os.environ.get("POSLINE_QUANTITY", "1000"))',
      'int(float(int(os.environ.get("POSLINE_QUANTITY", "1000")) / 1000) * 1000)',
    ],
  ]),
  row("amount", "polling", "receipt")("quantity-whole", "sells whole pieces only", "receipt-exact", [
    [
      'int(os.environ.get("POSLINE_QUANTITY", "1000"))',
      'max(1, int(os.environ.get("POSLINE_QUANTITY", "1000")) // 1000) * 1000',
    ],
  ]),

  // Text
  row("text", "wait", "receipt")(
    "signs-anew",
    "signs data that it encodes anew",
    "receipt-exact",
    [["(data + MERCHANT)", "(base64.b64encode(json.dumps(document, indent=1).encode()).decode() + MERCHANT)"]],
    /the terminal has nothing of it/,
  ),
  row("text", "polling", "receipt")(
    "latin1",
    "writes names in Latin-1",
    "receipt-exact",
    itemIs('item.encode("latin1", "replace").decode("latin1")'),
  ),
  row("text", "polling", "receipt")(
    "bmp",
    "drops letters of four bytes",
    "receipt-exact",
    itemIs('"".join(each for each in item if ord(each) < 0x10000)'),
    /Asked for an article named .*, the till sold/,
  ),
  row("text", "polling", "receipt")(
    "mojibake",
    "reads UTF-8 as Latin-1",
    "receipt-exact",
    itemIs('item.encode().decode("latin1")'),
  ),
  row("text", "polling", "receipt")("escaped-twice", "escapes a name twice", "receipt-exact", itemIs("json.dumps(item)[1:-1]")),
  row("text", "polling", "receipt")(
    "cut",
    "cuts names at ten bytes",
    "receipt-exact",
    itemIs('item.encode()[:10].decode(errors="ignore")'),
  ),
  row("text", "polling", "receipt")(
    "trimmed",
    "makes names plain ASCII",
    "receipt-exact",
    itemIs('item.encode("ascii", "ignore").decode().strip()'),
  ),

  // Refunds
  row("refund", "wait", "refund")("twice", "gives back twice", "given-back", [
    [
      '    word = bank("/refund", {"rrn": earlier.get("rrn") or end(2, f"No rrn is known of {of}")})\n',
      '    word = bank("/refund", {"rrn": earlier["rrn"]})\n    key += "x"\n    bank("/refund", {"rrn": earlier["rrn"]})\n',
    ],
  ]),
  row("refund", "wait", "refund")(
    "last-sale",
    "gives back the last sale, whichever is asked for",
    "refund-of-part",
    [
      [
        '        save(key, {"rrn": rrn})\n',
        '        save(key, {"rrn": rrn})\n        if route == "/sale":\n            save("last", {"rrn": rrn})\n',
      ],
      [
        '    word = bank("/refund", {"rrn": earlier.get("rrn")',
        '    earlier = saved("last")\n    word = bank("/refund", {"rrn": earlier.get("rrn")',
      ],
    ],
    /the till gave back another: \/refund/,
  ),
  row("refund", "wait", "refund")("whole", "gives back the whole sale when a part is asked for", "refund-of-part", [
    ['        save(key, {"rrn": rrn})\n', '        save(key, {"rrn": rrn, "amount": amount})\n'],
    [
      '    word = bank("/refund", {"rrn": earlier.get("rrn")',
      '    amount = earlier.get("amount", amount)\n    word = bank("/refund", {"rrn": earlier.get("rrn")',
    ],
  ]),
  row("refund", "wait", "refund")("more-approved", "says approved of a refund of more than was paid", "refund-refused", [
    [
      '    word = bank("/refund", {"rrn": earlier.get("rrn") or end(2, f"No rrn is known of {of}")})\n',
      '    word = bank("/refund", {"rrn": earlier["rrn"]})\n    word = "approved"\n',
    ],
  ]),
  row("refund", "polling", "refund")("as-sale", "sells once more in place of giving back", "given-back", [
    [
      'carried_out("bank", "/refund", {**card, "rrn": earlier["rrn"]}',
      'carried_out("bank", "/sale", {**card, "rrn": earlier["rrn"]}',
    ],
  ]),
  row("refund", "polling", "refund")(
    "cancel-too",
    "cancels the sale after it was given back",
    "given-back refund-of-part",
    alsoCalls("refund", "bank", "/cancel", '{**card, "pay_id": key + "c", "rrn": earlier["rrn"]}'),
  ),
  row("refund", "polling", "refund")(
    "not-at-all",
    "says approved, and gives nothing back",
    "given-back",
    atFirst("refund", 'print("approved")\nsys.exit()'),
  ),
  row("refund", "polling", "return")(
    "twice",
    "prints the return twice",
    "return",
    alsoCalls("return", "fiscal", "/refund", '{**receipt({}), "documentExtID": key + "x"}'),
  ),
  row("refund", "polling", "return")("no-parent", "prints a return that names no sale", "return", [
    ['receipt({"parentDocID": str(earlier["documentID"])})', "receipt({})"],
  ]),
  row("refund", "polling", "return")(
    "last-receipt",
    "prints the return of the last receipt, whichever is asked for",
    "return",
    [
      [
        '        save(key, {"documentID": asked["documentID"]})\n',
        '        save(key, {"documentID": asked["documentID"]})\n        if do == "receipt":\n            save("last", {"documentID": asked["documentID"]})\n',
      ],
      ['    word = carried_out("fiscal", "/refund"', '    earlier = saved("last")\n    word = carried_out("fiscal", "/refund"'],
    ],
    /the till gave back another: \/refund/,
  ),
  row("refund", "wait", "qr-refund")(
    "no-trans",
    "keeps no trans",
    "qr-given-back",
    [['{"trans": answer.getheader("X-Posline-Trans"), ', "{"]],
    /said unknown at .* of a qr-refund .* whose end could be known/,
  ),
  row("refund", "polling", "qr-refund")(
    "second-trans",
    "gives back the last QR payment, whichever is asked for",
    "qr-given-back",
    [
      [
        '    save(key, {"trans": trans, "rrn": rrn})\n',
        '    save(key, {"trans": trans, "rrn": rrn})\n    save("last", {"pay_id": key, "trans": trans, "rrn": rrn})\n',
      ],
      ['{"pay_id": of, **earlier, **payment}', '{**saved("last"), **payment}'],
    ],
    /the till gave back another: \/refund|began what nobody asked for/,
  ),
  row("refund", "polling", "qr-refund")("sent-again", "sends a QR refund again after no answer", "qr-refund-in-doubt", [
    [
      '    word = "unknown" if answer is None',
      '    if answer is None:\n        answer = post("qr", "/refund", {"pay_id": of, **earlier, **payment})\n    word = "unknown" if answer is None',
    ],
  ]),

  // What nobody asked for
  row("unasked", "wait", "receipt")(
    "twice",
    "prints the receipt twice",
    "receipt-no-answer",
    [
      [
        '    save(key, {"documentID": number})',
        '    save(key, {"documentID": number})\n    settled(FISCAL, route, form({"documentExtID": key + "-2", **document}))',
      ],
    ],
    /the till began 2: /,
  ),
  row("unasked", "polling", "sale")("receipt", "prints a receipt before the sale is paid", "declined", [
    [
      '    word = carried_out("bank", "/sale", card',
      '    post("fiscal", "/sale", {**receipt({}), "documentExtID": key + "r"})\n    word = carried_out("bank", "/sale", card',
    ],
  ]),
  row("unasked", "polling", "sale")("preauth", "begins a preauthorisation in place of a sale", "approved", [
    ['carried_out("bank", "/sale"', 'carried_out("bank", "/preauth"'],
  ]),
  row("unasked", "polling", "sale")(
    "close-batch",
    "closes the batch after a sale",
    "approved",
    alsoCalls("sale", "bank", "/close-shift", '{"pay_id": key + "b"}'),
    /the till called bank \/close-shift, which nobody asked for/,
  ),
  row("unasked", "polling", "sale")(
    "x-report",
    "prints a report after a sale",
    "approved",
    alsoCalls("sale", "bank", "/xreport", '{"pay_id": key + "b"}'),
  ),
  row("unasked", "polling", "receipt")(
    "close-shift",
    "closes the shift after a receipt",
    "receipt-no-answer",
    alsoCalls("receipt", "fiscal", "/close_shift", "{}"),
  ),
  row("unasked", "polling", "receipt")(
    "copy",
    "prints a copy of each receipt",
    "receipt-no-answer",
    alsoCalls("receipt", "fiscal", "/check_copy", "saved(key)"),
  ),
  row("unasked", "wait", "receipt")(
    "two-copies",
    "prints two copies of what has no paper",
    "receipt-unprinted",
    [
      [
        "        _, copy = post(FISCAL",
        '        post(FISCAL, "/check_copy", form({"documentID": number}), {})\n        _, copy = post(FISCAL',
      ],
    ],
    /the till called fiscal \/check_copy twice in a row, which nobody asked for/,
  ),
  row("unasked", "polling", "receipt")(
    "cash-in",
    "puts the receipt's sum into the drawer too",
    "receipt-no-answer",
    alsoCalls("receipt", "fiscal", "/deposit", '{"documentExtID": key + "d", "amount": amount}'),
  ),
  row("unasked", "polling", "qr")("card-too", "sells by card when the code isn't paid at once", "qr-no-answer", [
    ["    if rrn is None:\n", '    if rrn is None:\n        post("bank", "/sale", card)\n'],
  ]),

  row("booking", "polling", "receipt")(
    "card",
    "sells by card when a receipt is asked for, and says closed",
    "receipt-no-answer",
    [
      [
        'carried_out("fiscal", "/sale", receipt({}), document_end, 1)',
        '"closed" if carried_out("bank", "/sale", card, card_end, 3) == "approved" else "failed"',
      ],
    ],
  ),
  // How it is booked
  row("booking", "polling", "receipt")(
    "cash",
    "books a card payment as cash",
    "receipt-fails-after-payment",
    [['"extraPayments": [{"amount": amount, **paid}]', '"payments": {"cashAmount": amount}']],
    /The till booked .* as cash that were not paid in cash/,
  ),
  row("booking", "polling", "receipt")("no-payment", "says nothing of how a receipt was paid", "receipt-fails-after-payment", [
    ['"extraPayments": [{"amount": amount, **paid}], ', ""],
  ]),
  row("booking", "polling", "receipt")("no-rrn", "leaves the card's rrn out of the receipt", "receipt-fails-after-payment", [
    ['{"trxParams": {"rrn": earlier["rrn"]}} if "rrn" in earlier else {"code": "CARD"}', '{"code": "CARD"}'],
  ]),
  row("booking", "polling", "sale")("currency", "sells in another currency", "approved", [
    ['"amount": amount, "currency_name": "EUR"}\npayment', '"amount": amount, "currency_name": "USD"}\npayment'],
  ]),
  row("booking", "polling", "sale")("tips", "adds a tip that nobody gave", "approved", [
    ['"amount": amount, "currency_name": "EUR"}\npayment', '"amount": amount, "tips": 100, "currency_name": "EUR"}\npayment'],
  ]),

  // Pace
  row("pace", "polling", "sale")(
    "no-answer-for-ever",
    "sends again without an end while it has no answer",
    "no-answer-carried-out",
    [['    while word in (None, "none"):\n', '    while word in (None, "none", "approved"):\n']],
  ),
  row("pace", "polling", "cash-in")(
    "blind-resend",
    "sends cash again without asking before, under the same key",
    "cash-in-doubt",
    [[start, `${start}            if answer is None:\n                answer = post(service, route, body)\n`]],
    /the till called fiscal \/deposit twice in a row, which nobody asked for/,
  ),
];
