import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../../../src/contract/contracts.ts";
import { type Call, type ContractName, contractNames, type Reply } from "../../../../src/core/call.ts";
import { isObject, type JsonObject } from "../../../../src/core/json-object.ts";
import { signOf } from "../../../../src/envelope/sign.ts";
import { checks } from "../../../../src/lab/certify/certification.ts";
import { withReservedCrc } from "../../../../src/lab/emulator/faults/frame-faults.ts";
import { type Crc16, crc16 } from "../../../../src/wire/crc16.ts";
import { crc32 } from "../../../../src/wire/crc32.ts";
import { frameOf } from "../../../../src/wire/framing.ts";
import { certified, type Deviation, emulatedTerminal, merchantId, notHeld } from "../../../lab/certify/emulated-terminal.ts";

const sale = { amount: 100, currency: "EUR" };

test("certify() calls everything of the conforming emulator passed, at 9600 and at 115200 baud", async () => {
  const certifyAt = async (baudRate: number, service: ContractName) => {
    const terminal = emulatedTerminal({ baudRate });
    try {
      // At 9600 baud what sells would take minutes, and shows nothing that the rest doesn't.
      const made = checks.filter((each) => each.service === service && (baudRate !== 9_600 || each.sells !== true));
      const judged = await certified(terminal.open, { sale, baudRate, checks: made, services: [service] });
      assert.deepEqual(notHeld(judged), [], `${baudRate} baud`);
      assert.equal(judged.length, made.length);
    } finally {
      await terminal.stop();
    }
  };
  // A service alone, since it mostly waits.
  await Promise.all([9_600, 115_200].flatMap((baudRate) => contractNames.map((service) => certifyAt(baudRate, service))));
});

test("certify() calls a terminal broken neither for slow answers, nor for those in pieces, and for repeated ones of that alone", async () => {
  const torn = (frame: Buffer) => [{ bytes: frame.subarray(0, 5) }, { waitMs: 300 }, { bytes: frame.subarray(5) }];
  const rows: readonly (readonly [what: string, deviation: Deviation, isRepeated: boolean])[] = [
    ["in pieces", { writes: torn }, false],
    ["slow", { writes: (frame) => [{ waitMs: 700 }, { bytes: frame }] }, false],
    ["repeated", { writes: (frame) => [{ bytes: frame }, { bytes: frame }] }, true],
    ["with few operations", few, false],
    ["repeated later", { writes: (frame) => [{ bytes: frame }, { waitMs: 20 }, { bytes: frame }] }, true],
  ];
  // Fiscal answers what is cut short as well, and the waits of this test are too short for two slow answers.
  const servicesOf = (what: string) => (what === "slow" ? (["bank"] as const) : contractNames);
  const found = rows.flatMap(([what, deviation, isRepeated]) =>
    servicesOf(what).map(async (service) => {
      const terminal = emulatedTerminal(deviation);
      const asked = checks.filter((each) => each.service === service && each.sells !== true);
      const judged = await certified(terminal.open, { checks: asked, services: [service] });
      await terminal.stop();
      const broken = judged.filter(({ verdict }) => verdict === "failed").map(({ name }) => name);
      assert.deepEqual([what, broken], [what, isRepeated ? [`${service}-one-answer`] : []]);
    }),
  );
  await Promise.all(found);
});

/** Answers otherwise than the emulator, whose answer it sees. */
const answers = (change: (reply: Reply, call: Call) => Reply): Deviation => ({
  answers: async (call, answer) => change(await answer(call), call),
});

const listed = ["supported_operations", "sale", "check", "check_status", "check_shift", "terminals"];

/** It lists few operations, and says of others that it doesn't have them. */
const few = answers((reply, { contract, route }) => {
  if (contract === "qr") return reply;
  const none = { status: "error", code: contract === "bank" ? -80 : 5, message: "not implemented" };
  if (!listed.includes(route.slice(1))) return { ...reply, payload: [Buffer.from(JSON.stringify(none))] };
  const text = Buffer.concat(reply.payload).toString();
  return {
    ...reply,
    payload: [Buffer.from(text.replace(/"operations":\[[^\]]*\]/, `"operations":${JSON.stringify(listed)}`))],
  };
});

/** A right answer whose checksum a reader may take for the end of a frame. */
function withReservedSum(reply: Reply, { contract }: Call): Reply {
  return { ...reply, payload: [withReservedCrc(Buffer.concat(reply.payload), contracts[contract].framing, "arc")] };
}

test("certify() calls a terminal broken in nothing whose checksums hold 02 and 03", async () => {
  const found = contractNames.map(async (service) => {
    const terminal = emulatedTerminal(answers(withReservedSum));
    const asked = checks.filter((each) => each.service === service && each.sells !== true);
    const judged = await certified(terminal.open, { checks: asked, services: [service] });
    await terminal.stop();
    assert.deepEqual(notHeld(judged), [], service);
  });
  await Promise.all(found);
});

/** Changes an answer's JSON. */
const changed = (change: (json: JsonObject, route: string) => unknown): Deviation =>
  answers((reply, { route }) => withText(reply, JSON.stringify(change(jsonOf(reply), route))));

const jsonOf = ({ payload }: Reply): JsonObject => {
  const json: unknown = JSON.parse(Buffer.concat(payload).toString());
  assert.ok(isObject(json));
  return json;
};

const withText = (reply: Reply, text: string): Reply => ({ ...reply, payload: [Buffer.from(text)] });

/** Answers a route by itself when the request fits. */
const instead = (route: string, fits: (body: string) => boolean, text: string): Deviation =>
  answers((reply, call) => (call.route === route && fits(bodyOf(call.body)) ? withText(reply, text) : reply));

/** The JSON of a request. */
function bodyOf(body: readonly Buffer[]): string {
  const text = Buffer.concat(body).toString();
  const data = /^data=([^&]*)/.exec(text)?.[1];
  return data === undefined ? text : Buffer.from(data, "base64").toString();
}

/** Carries out another request than it was sent. */
const asked = (change: (text: string, route: string) => string): Deviation => ({
  answers: (call, answer) => {
    const text = bodyOf(call.body);
    const other = change(text, call.route);
    if (other === text) return answer(call);
    const data = Buffer.from(other).toString("base64");
    const body = call.contract === "fiscal" ? `data=${data}&sign=${signOf(data, merchantId)}` : other;
    return answer({ ...call, body: [Buffer.from(body)] });
  },
});

/** Carries a request out under a key of its own each time. */
const freshKey = (route: string, field: string): Deviation => {
  let count = 0;
  const latest = new Map<string, string>();
  return asked((text, path) => {
    const [, key = ""] = new RegExp(`"${field}":"([^"]*)"`).exec(text) ?? [];
    if (path === route) latest.set(key, `${key}-${++count}`);
    return text.replace(key, latest.get(key) ?? key);
  });
};

/** Makes up a field that a request lacks. */
const lenient = (route: string, field: string): Deviation =>
  asked((text, path) =>
    path === route && !text.includes(field.slice(0, field.indexOf(":"))) ? text.replace("{", `{${field},`) : text,
  );

const isLength = (frame: Buffer) => frame.length > 4 && frame[0] === 0;

const inReading = (frame: Buffer, reading: Crc16): Buffer => Buffer.concat(frameOf("length", [frame.subarray(4, -2)], reading));

/** A length frame with a right checksum, whatever it came with. */
const repaired = (bytes: Buffer): Buffer => (isLength(bytes) ? inReading(bytes, "arc") : bytes);

/** Hears no request after so long a silence; longer ones are those behind a request that was cut short. */
function sleeps(from: number, to: number): Deviation {
  let lastMs = Date.now();
  return {
    hears: (bytes) => {
      const idleMs = Date.now() - lastMs;
      lastMs = Date.now();
      return idleMs > from && idleMs < to ? Buffer.alloc(0) : bytes;
    },
  };
}

const success = '{"status":"success"}';
const closed = '{"status":"success","code":0,"docStatus":1}';
const info = '{"status":"success","code":0,"fiscalData":{}}';
const refusal = (code: number) => `{"status":"error","code":${code},"message":"no"}`;

const textOf = ({ payload }: Reply) => Buffer.concat(payload).toString();

const isCyrillic = (body: string) => body.includes("\u0416");

/** Hears nothing of some bytes. */
const deaf = (is: (bytes: Buffer) => boolean): Deviation => ({ hears: (bytes) => (is(bytes) ? Buffer.alloc(0) : bytes) });

/** Writes something else in each answer. */
const replaced = (from: RegExp, to: string): Deviation => answers((reply) => withText(reply, textOf(reply).replace(from, to)));

/** Approves an operation with the status of an error. */
const denied = (key: string): Deviation =>
  answers((reply, call) => {
    const isEnd = call.route === "/check" && bodyOf(call.body).includes(key) && textOf(reply).includes("APPROVED");
    return isEnd ? withText(reply, textOf(reply).replace('"success"', '"error"')) : reply;
  });

/** A terminal that does so, behind the check that names it. */
const seeded: Readonly<Record<string, Deviation>> = {
  "bank-wrong-checksum: takes any checksum": { hears: repaired },
  "bank-checksum: takes both readings of CRC16": {
    hears: (bytes) => (isLength(bytes) && inReading(bytes, "umts").equals(bytes) ? inReading(bytes, "arc") : bytes),
  },
  "bank-checksum: writes the checksum's low byte first": {
    writes: (frame) => [{ bytes: Buffer.concat([frame.subarray(0, -2), Buffer.from(frame.subarray(-2)).reverse()]) }],
  },
  "qr-frame: writes the length's low byte first": {
    writes: (frame) => {
      const bytes = Buffer.concat([Buffer.from(frame.subarray(0, 4)).reverse(), frame.subarray(4)]);
      bytes.writeUInt16BE(crc16("arc", bytes, 0, bytes.length - 2), bytes.length - 2);
      return [{ bytes }];
    },
  },
  "bank-nothing-around: acknowledges each request by a byte 06": {
    writes: (frame) => [{ bytes: Buffer.concat([Buffer.from([6]), frame]) }],
  },
  "qr-nothing-around: ends its answers by a line break": {
    writes: (frame) => [{ bytes: Buffer.concat([frame, Buffer.from("\r\n")]) }],
  },
  "fiscal-one-answer: answers twice": { writes: (frame) => [{ bytes: frame }, { bytes: frame }] },
  "bank-json: writes Latin-1": answers((reply) => ({
    ...reply,
    payload: [Buffer.from(Buffer.concat(reply.payload).toString(), "latin1")],
  })),
  "bank-idle: falls asleep after three seconds": sleeps(3_200, 5_200),
  "bank-two-at-once: answers the second of two requests first": {
    hears: (bytes) => {
      const first = isLength(bytes) ? bytes.readUInt32BE() + 6 : bytes.length;
      return first < bytes.length ? Buffer.concat([bytes.subarray(first), bytes.subarray(0, first)]) : bytes;
    },
  },
  "bank-fields: lists its operations with a slash": changed((json, route) =>
    route === "/supported_operations" ? { status: "success", data: { operations: ["/sale", "/check"] } } : json,
  ),
  "bank-fields: lists terminals as an object": changed((json, route) =>
    route === "/terminals" ? { status: "success", data: { terminals: {} } } : json,
  ),
  "bank-unknown-route: takes any route": instead("/posline_certify", () => true, '{"status":"success"}'),
  "qr-broken-json: takes JSON that is cut off": instead("/check", (body) => !body.endsWith("}"), '{"status":"success"}'),
  "bank-unknown-key: calls an unknown pay_id in progress": instead(
    "/check",
    (body) => body.includes("none"),
    '{"status":"success"}',
  ),
  "bank-in-progress: says IN_PROGRESS": changed((json, route) =>
    (route === "/check" || route === "/sale") && json["status"] === "success" && json["data"] === undefined
      ? { ...json, data: { status: "IN_PROGRESS" } }
      : json,
  ),
  "bank-same-key: sells twice under one pay_id": freshKey("/sale", "pay_id"),
  "bank-results: ignores no_print_data": {
    answers: (call, answer) => answer({ ...call, body: [Buffer.from(bodyOf(call.body).replace(',"no_print_data":true', ""))] }),
  },
  "bank-tips-and-cashback: takes tips and cashback": instead("/sale", (body) => body.includes("tips"), '{"status":"success"}'),
  "bank-unknown-currency: takes any currency": instead("/sale", (body) => body.includes("POSLINE"), '{"status":"success"}'),
  "bank-abort-after-end: reverses an approved sale on /abort": (() => {
    const aborted = new Set<string>();
    return answers((reply, call) => {
      const [, key = ""] = /"pay_id":"([^"]*)"/.exec(bodyOf(call.body)) ?? [];
      if (call.route === "/abort") aborted.add(key);
      if (call.route !== "/check" || !aborted.has(key)) return reply;
      return withText(reply, '{"status":"error","code":-21,"data":{"status":"REVERSED"}}');
    });
  })(),
  "qr-prefix: is asked without its port": {
    hears: (bytes) => {
      const text = bytes.subarray(4, -2);
      return text.toString() === "/check_connection"
        ? Buffer.concat(frameOf("length", [Buffer.from(`:8887${text}`)], "arc"))
        : bytes;
    },
  },
  "qr-spelled: forgets a payment once it was told of": (() => {
    let ends = 0;
    return changed((json, route) => {
      const rrn = isObject(json["data"]) ? json["data"]["rrn"] : undefined;
      return route === "/check" && rrn !== undefined && ++ends > 1 ? { status: "error", code: 1 } : json;
    });
  })(),
  "fiscal-wrong-sign: takes any sign": instead(
    "/check_shift",
    () => true,
    '{"status":"success","code":0,"isShiftOpen":"true"}',
  ),
  "fiscal-codes: leaves code out of a success": changed(({ code, ...json }) =>
    json["status"] === "success" ? json : { code, ...json },
  ),
  "fiscal-nothing: refuses a missing field with code 5": changed((json) => (json["code"] === 3 ? { ...json, code: 5 } : json)),
  "fiscal-form: knows no replaced byte of a checksum": {
    hears: (bytes) => {
      const sum = Buffer.alloc(4);
      sum.writeUInt32BE(crc32(bytes, 1, bytes.length - 5));
      return bytes[0] === 2 && sum.includes(3) ? Buffer.alloc(0) : bytes;
    },
  },
  "fiscal-same-key: prints twice under one documentExtID": freshKey("/sale", "documentExtID"),
  "fiscal-deposit-twice: counts a deposit twice": freshKey("/deposit", "documentExtID"),
  "fiscal-withdraw-twice: counts a withdrawal twice": freshKey("/withdraw", "documentExtID"),
  "bank-letters: wants keys in ASCII": instead("/check", isCyrillic, refusal(-29)),
  "qr-letters: finds something under any foreign key": instead("/check", isCyrillic, success),
  "bank-long: takes a long request for noise": deaf((bytes) => bytes.length > 2_048),
  "fiscal-long: has room for short documents": deaf((bytes) => bytes.length > 4_096),
  "bank-cut-early: waits for the rest of a request for ever": (() => {
    let kept: Buffer = Buffer.alloc(0);
    return {
      hears: (bytes) => {
        const all = Buffer.concat([kept, bytes]);
        kept = bytes.length === 2 ? bytes : Buffer.alloc(0);
        return bytes.length === 2 ? Buffer.alloc(0) : all;
      },
    };
  })(),
  "bank-nothing: aborts whatever runs": instead("/abort", (body) => body === "{}", success),
  "bank-operations: has an operation that it doesn't list": changed((json) =>
    JSON.parse(JSON.stringify(json).replace('"preauth",', "")),
  ),
  "bank-pairs: lists a pair twice": changed((json, route) => {
    const data = route === "/terminals" && isObject(json["data"]) ? json["data"] : { terminals: undefined };
    const { terminals } = data;
    return Array.isArray(terminals) ? { ...json, data: { terminals: [...terminals, terminals[0]] } } : json;
  }),
  "bank-no-pair: takes any merchant": instead("/sale", (body) => body.includes("2147483647"), success),
  "bank-other-key: answers any key with the last sale": (() => {
    let last: Reply | undefined;
    return answers((reply, call) => {
      if (call.route !== "/check") return reply;
      if (textOf(reply).includes("APPROVED")) last = reply;
      return textOf(reply).includes("-15") ? (last ?? reply) : reply;
    });
  })(),
  "bank-results: shows the card's number": replaced(/"card_num":"[^"]*"/, '"card_num":"4111111111111111"'),
  "bank-in-progress: writes its words small": replaced(/"APPROVED"/, '"approved"'),
  "bank-second-start: declines a second start at once": (() => {
    let starts = 0;
    const declined = '{"status":"error","code":-20,"message":"busy","data":{"status":"ERROR","txn_id":"2","rrn":"2"}}';
    return instead("/sale", (body) => body.includes("-twice") && ++starts === 2, declined);
  })(),
  "bank-results: approves a refund by an error": denied("-refund"),
  "bank-results: approves a preauthorisation by an error": denied("-preauth"),
  "bank-results: closes the day by an error": denied("-close-shift"),
  "bank-cancel: forgets a sale that is cancelled": (() => {
    let isCancelled = false;
    return answers((reply, call) => {
      isCancelled ||= call.route === "/cancel" && bodyOf(call.body) !== "{}";
      const isAsked = call.route === "/check" && bodyOf(call.body).includes("-cancel");
      return isCancelled && isAsked ? withText(reply, refusal(-15)) : reply;
    });
  })(),
  "qr-nothing: cancels nothing": instead("/cancel", (body) => body === "{}", success),
  "qr-nothing: gives nothing back": instead("/refund", (body) => body === "{}", success),
  "qr-refund: gives back without an rrn": instead("/refund", (body) => body !== "{}", success),
  "fiscal-great-id: keeps ids in 32 bits": instead("/check_status", (body) => body.includes("9223372036854775807"), refusal(2)),
  "fiscal-wrong-sign: looks at no sign of /get_info": instead("/get_info", () => true, info),
  "fiscal-not-paid: closes what isn't paid": instead("/sale", (body) => body.includes("-unpaid"), closed),
  "fiscal-change: gives change for a card": instead("/sale", (body) => body.includes("-change"), closed),
  "fiscal-wrong-date: takes any date": instead("/dates_report", () => true, closed),
  "fiscal-of-nothing: withdraws nothing": instead("/withdraw", (body) => body.includes('"amount":0'), closed),
  "fiscal-without-items: returns nothing": instead("/refund", (body) => body.includes("[]"), closed),
  "fiscal-same-facts: mistakes one document for another": answers((reply, call) => {
    const isAsked = call.route === "/check_status" && bodyOf(call.body).includes("-return");
    return isAsked ? withText(reply, textOf(reply).replace(/"documentID":\d+/, '"documentID":1')) : reply;
  }),
  "fiscal-fields: has sums in words": replaced(/"saleSum":\d+/, '"saleSum":"much"'),
  "fiscal-x-report: counts no return": replaced(/"moneyBackCount":\d+/, '"moneyBackCount":0'),
  "bank-no-terminal: sells at a terminal that is named": instead("/sale", (body) => !body.includes('"terminal"'), refusal(-29)),
  "qr-final-confirm: wants what is optional": instead("/final_confirm", (body) => !body.includes("fiscal_url"), refusal(1)),
  "fiscal-close-shift: never has a shift closed": replaced(/"shiftStatus":2/, '"shiftStatus":1'),
  "bank-fields: writes codes as texts": replaced(/"code":(-?\d+)/, '"code":"$1"'),
  "bank-fields: has its rrn as a number": replaced(/"rrn":"0*(\d+)"/, '"rrn":$1'),
  "bank-fields: has a list for no data": replaced(/^\{"status":"success"\}$/, '{"status":"success","data":[]}'),
  "bank-codes: refuses by code 0": replaced(/"code":-\d+/, '"code":0'),
  "bank-results: approves without auth": replaced(/"auth":"[^"]*",?/, ""),
  "bank-results: calls a cancelled sale a success": replaced(
    /"status":"error"(.*"ERROR")|(?<="ERROR".*)"status":"error"/,
    '"status":"success"$1',
  ),
  "bank-same-key: refunds twice under one pay_id": freshKey("/refund", "pay_id"),
  "bank-other-key: keeps 32 characters of a key": asked((text) => text.replace(/("pay_id":"[^"]{32})[^"]*/, "$1")),
  "bank-spelled: reads no escapes": asked((text) => text.replaceAll("\\u", "u")),
  "bank-fraction: rounds an amount": asked((text) => text.replace(/"amount":(?:1\.5|"1\.00")/, '"amount":1')),
  "bank-lacking: preauthorises nothing": lenient("/preauth", '"amount":1'),
  "bank-no-pair: keeps a terminal in 32 bits": asked((text) =>
    text.replace(/4294967\d+/, (id) => String(Number(id) - 2 ** 32)),
  ),
  "bank-no-original: refunds any rrn": instead("/refund", (body) => body.includes('"000000000000"'), success),
  "bank-xreport: refuses what is optional": instead("/xreport", (body) => body.includes("txn_config"), refusal(-29)),
  "bank-close-shift: knows nothing of a closed day": instead("/check", (body) => body.includes("-close-shift"), refusal(-15)),
  "qr-fields: has its trans as a number": replaced(/"trans":"[^"]*"/, '"trans":12345'),
  "qr-cancel: cancels without an rrn": instead("/cancel", (body) => body !== "{}", success),
  "qr-lacking: shows without a currency's name": lenient("/showqrcode", '"currency_name":"EUR"'),
  "qr-trans: shows another payment under its pay_id": freshKey("/showqrcode", "pay_id"),
  "qr-spelled: wants JSON without white space": instead("/check", (body) => body.includes("\n"), refusal(1)),
  "fiscal-fields: has isShiftOpen as a boolean": replaced(/"isShiftOpen":"(\w+)"/, '"isShiftOpen":$1'),
  "fiscal-fields: writes times otherwise": replaced(/("docTime":"[\d-]+) /, "$1T"),
  "fiscal-fields: has a shift of another state": replaced(/"isShiftOpen":"\w+"/, '"isShiftOpen":"false"'),
  "fiscal-own-key: writes no key as it came": replaced(/"documentExtID":"[^"]*"/, '"documentExtID":"K"'),
  "fiscal-x-report: counts nothing": replaced(/"saleCount":\d+/, '"saleCount":0'),
  "fiscal-x-report: wants no employee": instead("/x_report", (body) => body.includes("employeeName"), refusal(2)),
  "fiscal-same-key: returns twice": freshKey("/refund", "documentExtID"),
  "fiscal-other-key: aborts any document": instead("/abort", (body) => body !== "{}", '{"status":"success","code":0}'),
  "fiscal-deposit-twice: knows no deposit": instead("/check_status", (body) => body.includes("-deposit"), refusal(9)),
  "fiscal-check-copy: writes question marks": replaced(/\u0416/, "?"),
  "fiscal-form: wants its command first": deaf((bytes) => bytes[0] === 2 && !bytes.toString("latin1", 1).startsWith("command")),
  "fiscal-of-nothing: deposits less than nothing": asked((text) => text.replace('"amount":-', '"amount":')),
  "fiscal-lacking: deposits without an amount": lenient("/deposit", '"amount":1'),
  "fiscal-operations: has an operation that it doesn't list": replaced(/"check_shift",/, ""),
};

test("certify() names each of the seeded nonconformities by its check", async () => {
  const named = await Promise.all(
    Object.entries(seeded).map(async ([name, deviation]) => {
      const terminal = emulatedTerminal(deviation);
      const [check = ""] = name.split(":");
      // Those that mostly wait are for what they are about.
      const made = checks.filter(
        (each) => each.name === check || !/-(?:cut-short|cut-early|idle|reopened|remembered)$/.test(each.name),
      );
      const services = contractNames.filter((service) => check.startsWith(`${service}-`));
      try {
        const judged = await certified(terminal.open, { services, sale, checks: made });
        const broken = judged.filter(({ verdict }) => verdict === "failed").map((each) => each.name);
        return { name, broken, isNamed: broken.includes(check) };
      } finally {
        await terminal.stop();
      }
    }),
  );
  assert.deepEqual(
    named.filter(({ isNamed }) => !isNamed),
    [],
  );
  assert.ok(named.length >= 90);
});
