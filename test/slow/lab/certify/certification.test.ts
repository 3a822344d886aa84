import assert from "node:assert/strict";
import { test } from "node:test";
import { type ContractName, contractNames, type Reply } from "../../../../src/core/call.ts";
import { isObject, type JsonObject } from "../../../../src/core/json-object.ts";
import { checks } from "../../../../src/lab/certify/certification.ts";
import { type Crc16, crc16 } from "../../../../src/wire/crc16.ts";
import { crc32 } from "../../../../src/wire/crc32.ts";
import { frameOf } from "../../../../src/wire/framing.ts";
import { certified, type Deviation, emulatedTerminal, notHeld } from "../../../lab/certify/emulated-terminal.ts";

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

/** Changes an answer's JSON. */
const changed = (change: (json: JsonObject, route: string) => unknown): Deviation => ({
  answers: async (call, answer) => {
    const reply = await answer(call);
    return withText(reply, JSON.stringify(change(jsonOf(reply), call.route)));
  },
});

const jsonOf = ({ payload }: Reply): JsonObject => {
  const json: unknown = JSON.parse(Buffer.concat(payload).toString());
  assert.ok(isObject(json));
  return json;
};

const withText = (reply: Reply, text: string): Reply => ({ ...reply, payload: [Buffer.from(text)] });

/** Answers a route by itself when the request fits. */
const instead = (route: string, fits: (body: string) => boolean, text: string): Deviation => ({
  answers: async (call, answer) => {
    const reply = await answer(call);
    return call.route === route && fits(bodyOf(call.body)) ? withText(reply, text) : reply;
  },
});

/** The JSON of a request. */
function bodyOf(body: readonly Buffer[]): string {
  const text = Buffer.concat(body).toString();
  const data = /^data=([^&]*)/.exec(text)?.[1];
  return data === undefined ? text : Buffer.from(data, "base64").toString();
}

/** Carries a request out under a key of its own each time. */
const freshKey = (route: string, field: string): Deviation => {
  let count = 0;
  const latest = new Map<string, string>();
  return {
    answers: async (call, answer) => {
      const text = bodyOf(call.body);
      const [, key] = new RegExp(`"${field}":"([^"]*)"`).exec(text) ?? [];
      if (key === undefined) return answer(call);
      if (call.route === route) latest.set(key, `${key}-${++count}`);
      const renamed = text.replace(key, latest.get(key) ?? key);
      if (call.contract !== "fiscal") return answer({ ...call, body: [Buffer.from(renamed)] });
      const { signOf } = await import("../../../../src/envelope/sign.ts");
      const data = Buffer.from(renamed).toString("base64");
      return answer({ ...call, body: [Buffer.from(`data=${data}&sign=${signOf(data, "MERCHANT-1")}`)] });
    },
  };
};

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

const bank = (deviation: Deviation) => ({ service: "bank", deviation }) as const;
const qr = (deviation: Deviation) => ({ service: "qr", deviation }) as const;
const fiscal = (deviation: Deviation) => ({ service: "fiscal", deviation }) as const;

const success = '{"status":"success"}';
const closed = '{"status":"success","code":0,"docStatus":1}';
const info = '{"status":"success","code":0,"fiscalData":{}}';
const error = (code: number) => `{"status":"error","code":${code},"message":"no"}`;

const textOf = ({ payload }: Reply) => Buffer.concat(payload).toString();

const isCyrillic = (body: string) => body.includes("\u0416");

/** Hears nothing of some bytes. */
const deaf = (is: (bytes: Buffer) => boolean): Deviation => ({ hears: (bytes) => (is(bytes) ? Buffer.alloc(0) : bytes) });

/** Writes something else in each answer. */
const replaced = (from: RegExp, to: string): Deviation => ({
  answers: async (call, answer) => {
    const reply = await answer(call);
    return withText(reply, textOf(reply).replace(from, to));
  },
});

/** Approves an operation with the status of an error. */
const denied = (key: string): Deviation => ({
  answers: async (call, answer) => {
    const reply = await answer(call);
    const isEnd = call.route === "/check" && bodyOf(call.body).includes(key) && textOf(reply).includes("APPROVED");
    return isEnd ? withText(reply, textOf(reply).replace('"success"', '"error"')) : reply;
  },
});

interface Seeded {
  readonly what: string;
  readonly service: ContractName;
  readonly deviation: Deviation;
  /** The check that names it. */
  readonly check: string;
  /** Others that it breaks, too. */
  readonly also?: readonly string[];
}

const seeded: readonly Seeded[] = [
  {
    what: "takes any checksum",
    service: "bank",
    deviation: { hears: repaired },
    check: "bank-wrong-checksum",
    also: ["bank-checksum"],
  },
  {
    what: "takes both readings of CRC16",
    service: "bank",
    deviation: {
      hears: (bytes) => (isLength(bytes) && inReading(bytes, "umts").equals(bytes) ? inReading(bytes, "arc") : bytes),
    },
    check: "bank-checksum",
  },
  {
    what: "writes the checksum's low byte first",
    service: "bank",
    deviation: {
      writes: (frame) => [{ bytes: Buffer.concat([frame.subarray(0, -2), Buffer.from(frame.subarray(-2)).reverse()]) }],
    },
    check: "bank-checksum",
  },
  {
    what: "writes the length's low byte first",
    service: "qr",
    deviation: {
      writes: (frame) => {
        const bytes = Buffer.concat([Buffer.from(frame.subarray(0, 4)).reverse(), frame.subarray(4)]);
        bytes.writeUInt16BE(crc16("arc", bytes, 0, bytes.length - 2), bytes.length - 2);
        return [{ bytes }];
      },
    },
    check: "qr-frame",
  },
  {
    what: "acknowledges each request by a byte 06",
    service: "bank",
    deviation: { writes: (frame) => [{ bytes: Buffer.concat([Buffer.from([6]), frame]) }] },
    check: "bank-nothing-around",
  },
  {
    what: "ends its answers by a line break",
    service: "qr",
    deviation: { writes: (frame) => [{ bytes: Buffer.concat([frame, Buffer.from("\r\n")]) }] },
    check: "qr-nothing-around",
  },
  {
    what: "answers twice",
    service: "fiscal",
    deviation: { writes: (frame) => [{ bytes: frame }, { bytes: frame }] },
    check: "fiscal-one-answer",
  },
  {
    what: "writes Latin-1",
    service: "bank",
    deviation: {
      answers: async (call, answer) => {
        const reply = await answer(call);
        return { ...reply, payload: [Buffer.from(Buffer.concat(reply.payload).toString(), "latin1")] };
      },
    },
    check: "bank-json",
    also: ["bank-terminals"],
  },
  {
    what: "falls asleep after three seconds",
    service: "bank",
    deviation: sleeps(3_200, 5_200),
    check: "bank-idle",
  },
  {
    what: "answers the second of two requests first",
    service: "bank",
    deviation: {
      hears: (bytes) => {
        const first = isLength(bytes) ? bytes.readUInt32BE() + 6 : bytes.length;
        return first < bytes.length ? Buffer.concat([bytes.subarray(first), bytes.subarray(0, first)]) : bytes;
      },
    },
    check: "bank-two-at-once",
  },
  {
    what: "lists its operations with a slash",
    service: "bank",
    deviation: changed((json, route) =>
      route === "/supported_operations" ? { status: "success", data: { operations: ["/sale", "/check"] } } : json,
    ),
    check: "bank-supported-operations",
    also: ["bank-operations"],
  },
  {
    what: "lists terminals as an object",
    service: "bank",
    deviation: changed((json, route) => (route === "/terminals" ? { status: "success", data: { terminals: {} } } : json)),
    check: "bank-terminals",
  },
  {
    what: "takes any route",
    service: "bank",
    deviation: instead("/posline_certify", () => true, '{"status":"success"}'),
    check: "bank-unknown-route",
  },
  {
    what: "takes JSON that is cut off",
    service: "qr",
    deviation: instead("/check", (body) => body.endsWith(":"), '{"status":"success"}'),
    check: "qr-broken-json",
  },
  {
    what: "calls an unknown pay_id in progress",
    service: "bank",
    deviation: instead("/check", (body) => body.includes("-none"), '{"status":"success"}'),
    check: "bank-unknown-key",
  },
  {
    what: "says IN_PROGRESS",
    service: "bank",
    deviation: changed((json, route) =>
      (route === "/check" || route === "/sale") && json["status"] === "success" && json["data"] === undefined
        ? { ...json, data: { status: "IN_PROGRESS" } }
        : json,
    ),
    check: "bank-in-progress",
  },
  { what: "sells twice under one pay_id", service: "bank", deviation: freshKey("/sale", "pay_id"), check: "bank-same-key" },
  {
    what: "ignores no_print_data",
    service: "bank",
    deviation: {
      answers: (call, answer) =>
        answer({ ...call, body: [Buffer.from(bodyOf(call.body).replace(',"no_print_data":true', ""))] }),
    },
    check: "bank-no-print-data",
  },
  {
    what: "takes tips and cashback",
    service: "bank",
    deviation: instead("/sale", (body) => body.includes("tips"), '{"status":"success"}'),
    check: "bank-tips-and-cashback",
  },
  {
    what: "takes any currency",
    service: "bank",
    deviation: instead("/sale", (body) => body.includes("POSLINE"), '{"status":"success"}'),
    check: "bank-unknown-currency",
  },
  {
    what: "reverses an approved sale on /abort",
    service: "bank",
    deviation: (() => {
      const aborted = new Set<string>();
      return {
        answers: async (call, answer) => {
          const reply = await answer(call);
          const [, key = ""] = /"pay_id":"([^"]*)"/.exec(bodyOf(call.body)) ?? [];
          if (call.route === "/abort") aborted.add(key);
          if (call.route !== "/check" || !aborted.has(key)) return reply;
          return withText(reply, '{"status":"error","code":-21,"data":{"status":"REVERSED"}}');
        },
      };
    })(),
    check: "bank-abort-after-end",
  },
  {
    what: "is asked without its port",
    service: "qr",
    deviation: {
      hears: (bytes) => {
        const text = bytes.subarray(4, -2);
        return text.toString() === "/check_connection"
          ? Buffer.concat(frameOf("length", [Buffer.from(`:8887${text}`)], "arc"))
          : bytes;
      },
    },
    check: "qr-prefix",
  },
  {
    what: "knows no trans of its own",
    service: "qr",
    deviation: (() => {
      let ends = 0;
      return changed((json, route) => {
        const rrn = isObject(json["data"]) ? json["data"]["rrn"] : undefined;
        return route === "/check" && rrn !== undefined && ++ends > 1 ? { status: "error", code: 1 } : json;
      });
    })(),
    check: "qr-trans",
  },
  {
    what: "takes any sign",
    service: "fiscal",
    deviation: instead("/check_shift", () => true, '{"status":"success","code":0,"isShiftOpen":"true"}'),
    check: "fiscal-wrong-sign",
    also: ["fiscal-no-sign"],
  },
  {
    what: "leaves code out of a success",
    service: "fiscal",
    deviation: changed(({ code, ...json }) => (json["status"] === "success" ? json : { code, ...json })),
    check: "fiscal-json",
  },
  {
    what: "refuses a missing field with code 5",
    service: "fiscal",
    deviation: changed((json) => (json["code"] === 3 ? { ...json, code: 5 } : json)),
    check: "fiscal-missing-field",
    also: ["fiscal-copy-of-nothing", "fiscal-abort-nothing"],
  },
  {
    what: "knows no replaced byte of a checksum",
    service: "fiscal",
    deviation: {
      hears: (bytes) => {
        const sum = Buffer.alloc(4);
        sum.writeUInt32BE(crc32(bytes, 1, bytes.length - 5));
        return bytes[0] === 2 && sum.includes(3) ? Buffer.alloc(0) : bytes;
      },
    },
    check: "fiscal-reserved-checksum",
    // One of the signs that are tried gives such a checksum.
    also: ["fiscal-wrong-sign"],
  },
  {
    what: "prints twice under one documentExtID",
    service: "fiscal",
    deviation: freshKey("/sale", "documentExtID"),
    check: "fiscal-same-key",
  },
  {
    what: "counts a deposit twice",
    service: "fiscal",
    deviation: freshKey("/deposit", "documentExtID"),
    check: "fiscal-deposit-twice",
  },
  { what: "counts a withdrawal twice", ...fiscal(freshKey("/withdraw", "documentExtID")), check: "fiscal-withdraw-twice" },
  { what: "wants keys in ASCII", ...bank(instead("/check", isCyrillic, error(-29))), check: "bank-letters" },
  { what: "finds something under any foreign key", ...qr(instead("/check", isCyrillic, success)), check: "qr-letters" },
  { what: "takes a long request for noise", ...bank(deaf((bytes) => bytes.length > 2_048)), check: "bank-long" },
  { what: "has room for short documents", ...fiscal(deaf((bytes) => bytes.length > 4_096)), check: "fiscal-long" },
  {
    what: "waits for the rest of a request for ever",
    ...bank(
      (() => {
        let kept: Buffer = Buffer.alloc(0);
        return {
          hears: (bytes) => {
            const all = Buffer.concat([kept, bytes]);
            kept = bytes.length === 2 ? bytes : Buffer.alloc(0);
            return bytes.length === 2 ? Buffer.alloc(0) : all;
          },
        };
      })(),
    ),
    check: "bank-cut-early",
  },
  {
    what: "aborts whatever runs",
    ...bank(instead("/abort", (body) => body === "{}", success)),
    check: "bank-abort-nothing",
    also: ["bank-operations"],
  },
  {
    what: "has an operation that it doesn't list",
    ...bank(changed((json) => JSON.parse(JSON.stringify(json).replace('"preauth",', "")))),
    check: "bank-operations",
  },
  {
    what: "lists a pair twice",
    ...bank(
      changed((json, route) => {
        const data = route === "/terminals" && isObject(json["data"]) ? json["data"] : { terminals: undefined };
        const { terminals } = data;
        return Array.isArray(terminals) ? { ...json, data: { terminals: [...terminals, terminals[0]] } } : json;
      }),
    ),
    check: "bank-pairs",
  },
  {
    what: "takes any merchant",
    ...bank(instead("/sale", (body) => body.includes("2147483647"), success)),
    check: "bank-no-pair",
  },
  {
    what: "answers any key with the last sale",
    ...bank(
      (() => {
        let last: Reply | undefined;
        return {
          answers: async (call, answer) => {
            const reply = await answer(call);
            if (call.route !== "/check") return reply;
            if (textOf(reply).includes("APPROVED")) last = reply;
            return textOf(reply).includes("-15") ? (last ?? reply) : reply;
          },
        };
      })(),
    ),
    check: "bank-other-key",
  },
  {
    what: "shows the card's number",
    ...bank(replaced(/"card_num":"[^"]*"/, '"card_num":"4111111111111111"')),
    check: "bank-card-number",
  },
  { what: "writes its words small", ...bank(replaced(/"APPROVED"/, '"approved"')), check: "bank-in-progress" },
  {
    what: "declines a second start at once",
    ...bank(
      (() => {
        let starts = 0;
        const declined = '{"status":"error","code":-20,"message":"busy","data":{"status":"ERROR","txn_id":"2","rrn":"2"}}';
        return instead("/sale", (body) => body.includes("-twice") && ++starts === 2, declined);
      })(),
    ),
    check: "bank-second-start",
  },
  { what: "approves a refund by an error", ...bank(denied("-refund")), check: "bank-refund" },
  { what: "approves a preauthorisation by an error", ...bank(denied("-preauth")), check: "bank-preauth" },
  { what: "closes the day by an error", ...bank(denied("-close-shift")), check: "bank-close-shift" },
  {
    what: "forgets a sale that is cancelled",
    ...bank(
      (() => {
        let isCancelled = false;
        return {
          answers: async (call, answer) => {
            const reply = await answer(call);
            isCancelled ||= call.route === "/cancel" && bodyOf(call.body) !== "{}";
            const isAsked = call.route === "/check" && bodyOf(call.body).includes("-cancel");
            return isCancelled && isAsked ? withText(reply, error(-15)) : reply;
          },
        };
      })(),
    ),
    check: "bank-cancel",
  },
  { what: "cancels nothing", ...qr(instead("/cancel", (body) => body === "{}", success)), check: "qr-cancel-nothing" },
  { what: "gives nothing back", ...qr(instead("/refund", (body) => body === "{}", success)), check: "qr-refund-nothing" },
  { what: "gives back without an rrn", ...qr(instead("/refund", (body) => body !== "{}", success)), check: "qr-refund" },
  {
    what: "keeps ids in 32 bits",
    ...fiscal(instead("/check_status", (body) => body.includes("9223372036854775807"), error(2))),
    check: "fiscal-great-id",
  },
  { what: "looks at no sign of /get_info", ...fiscal(instead("/get_info", () => true, info)), check: "fiscal-wrong-sign" },
  {
    what: "closes what isn't paid",
    ...fiscal(instead("/sale", (body) => body.includes("-unpaid"), closed)),
    check: "fiscal-not-paid",
  },
  {
    what: "gives change for a card",
    ...fiscal(instead("/sale", (body) => body.includes("-change"), closed)),
    check: "fiscal-change",
  },
  { what: "takes any date", ...fiscal(instead("/dates_report", () => true, closed)), check: "fiscal-wrong-date" },
  {
    what: "withdraws nothing",
    ...fiscal(instead("/withdraw", (body) => body.includes('"amount":0'), closed)),
    check: "fiscal-withdraw-of-nothing",
  },
  {
    what: "returns nothing",
    ...fiscal(instead("/refund", (body) => body.includes("[]"), closed)),
    check: "fiscal-return-of-nothing",
  },
  {
    what: "mistakes one document for another",
    ...fiscal({
      answers: async (call, answer) => {
        const reply = await answer(call);
        const isAsked = call.route === "/check_status" && bodyOf(call.body).includes("-return");
        return isAsked ? withText(reply, textOf(reply).replace(/"documentID":\d+/, '"documentID":1')) : reply;
      },
    }),
    check: "fiscal-return",
  },
  {
    what: "has sums in words",
    ...fiscal(replaced(/"saleSum":\d+/, '"saleSum":"much"')),
    check: "fiscal-x-report",
    also: ["fiscal-close-shift"],
  },
  { what: "never has a shift closed", ...fiscal(replaced(/"shiftStatus":2/, '"shiftStatus":1')), check: "fiscal-close-shift" },
];

test("certify() names each of the seeded nonconformities by its check, and breaks no other", async () => {
  const named = await Promise.all(
    seeded.map(async ({ what, service, deviation, check }) => {
      const terminal = emulatedTerminal(deviation);
      // Those that mostly wait are for what they are about.
      const made = checks.filter(({ name }) => name === check || !/-(?:cut-short|cut-early|idle|reopened)$/.test(name));
      try {
        const judged = await certified(terminal.open, { services: [service], sale, checks: made });
        return {
          what,
          broken: judged
            .filter(({ verdict }) => verdict === "failed")
            .map(({ name }) => name)
            .sort(),
        };
      } finally {
        await terminal.stop();
      }
    }),
  );
  const wanted = seeded.map(({ what, check, also = [] }) => ({ what, broken: [check, ...also].sort() }));
  const others = named.filter(({ broken }, index) => String(broken) !== String(wanted[index]?.broken));
  assert.deepEqual(
    others,
    wanted.filter(({ what }) => others.some((each) => each.what === what)),
  );
  assert.ok(named.length >= 50);
});
