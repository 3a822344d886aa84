import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config, LineConfig } from "../../src/config/config.ts";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { diagnoseLine } from "../../src/doctor/diagnosis.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { hostOf } from "../../src/doctor/host.ts";
import type { LineService } from "../../src/recovery/standing.ts";
import { Liveness } from "../../src/trouble/liveness.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { bothReplies, probeReplies, probeReply } from "../support/terminal.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { sampledAt } from "../support/wrong-speed.ts";
import { FakeLine } from "./fake-line.ts";

const merchantId = "MERCHANT-1";

function servicesOf(names: readonly ContractName[], signed = true): Config["services"] {
  // In the order in which a configuration has them.
  const entries = contractNames
    .filter((name) => names.includes(name))
    .map((name) => [
      name,
      serviceConfigOf({
        contract: name,
        port: contracts[name].port,
        ...(name === "fiscal" && signed ? { merchantId } : {}),
      }),
    ]);
  return Object.fromEntries(entries);
}

interface Asked {
  readonly findings: readonly Finding[];
  readonly progress: readonly string[];
  readonly tookMs: number;
}

/** Asks a line in virtual time. */
async function ask(
  line: FakeLine,
  names: readonly ContractName[],
  {
    config = {},
    signed = true,
    other = {},
  }: {
    readonly config?: Partial<LineConfig>;
    readonly signed?: boolean;
    /** Services of another line. */
    readonly other?: Config["services"];
  } = {},
): Promise<Asked> {
  const time = new VirtualTime();
  const began = time.nowMs;
  try {
    const progress: string[] = [];
    const host = hostOf({ open: async () => line.open });
    const whole = { path: "/dev/ttyUSB0", ...lineDefaults, ...config };
    let findings: readonly Finding[] | undefined;
    const asking = diagnoseLine(
      { name: "till", config: whole, services: { ...servicesOf(names, signed), ...other } },
      host,
      (text) => progress.push(text),
    ).then((found) => {
      findings = found;
    });
    assert.ok(await time.until(() => findings !== undefined));
    await asking;
    assert.equal(line.isOpen, false, "the line is given back");
    return { findings: findings ?? [], progress, tookMs: time.nowMs - began };
  } finally {
    time.restore();
  }
}

/** A terminal that answers probes, of these services only. */
function terminal(line: FakeLine, answers: (text: string) => string | undefined = () => undefined): FakeLine {
  line.onAsked = (text, framing) => {
    const answer = answers(text) ?? probeReply({ framing, text, number: 0 });
    if (answer !== undefined) line.reply(framing, answer);
  };
  return line;
}

const brief = (findings: readonly Finding[]) =>
  findings.map(({ check, level, service }) => [check, level, service ?? "-"].join(" "));
const of = (findings: readonly Finding[], service: ContractName): Finding => {
  const found = findings.find((each) => each.service === service);
  assert.ok(found !== undefined);
  return found;
};

test("diagnoseLine() probes each service once, on one connection, and says how it answered", async () => {
  const line = terminal(new FakeLine());
  const { findings, tookMs } = await ask(line, ["bank", "qr", "fiscal"]);
  assert.deepEqual(brief(findings), ["answer ok fiscal", "answer ok bank", "answer ok qr"]);
  assert.equal(of(findings, "bank").what, "bank answered /supported_operations in 5 ms at 115200 baud: 3 operations");
  assert.equal(of(findings, "qr").what, "qr answered /check_connection in 5 ms at 115200 baud: payment systems PALM");
  assert.equal(line.openings, 1);
  assert.equal(line.written.length, 3);
  assert.ok(tookMs < 1_000, `nothing stays out, so nothing is waited for: ${tookMs}`);
});

test("diagnoseLine() sends nothing but probes", async () => {
  const line = terminal(new FakeLine());
  await ask(line, ["bank", "qr", "fiscal"]);
  assert.deepEqual(line.asked.slice(1), ["/supported_operations", ":8887/check_connection"]);
  assert.match(line.asked[0] ?? "", /^command=\/supported_operations&data=e30=&sign=[\w+/=]+$/);
});

test("diagnoseLine() shows the frames with what they say", async () => {
  const line = terminal(new FakeLine());
  const [sent, received, ...more] = of((await ask(line, ["bank"])).findings, "bank").frames ?? [];
  const frame = line.written[0] ?? Buffer.alloc(0);
  assert.deepEqual(sent, {
    direction: "sent",
    atMs: 0,
    bytes: frame.length,
    hex: frame.toString("hex").replace(/..(?=.)/g, "$& "),
    text: "/supported_operations",
  });
  assert.equal(received?.direction, "received");
  assert.equal(received?.text, bothReplies.bankSupported);
  assert.equal(received?.atMs, 5);
  assert.equal(more.length, 0);
});

test("diagnoseLine() shows neither the fiscal sign nor the checksum that confirms it", async () => {
  const line = terminal(new FakeLine());
  const { findings } = await ask(line, ["fiscal"]);
  const [sent] = of(findings, "fiscal").frames ?? [];
  const sign = /sign=(.*)$/.exec(line.asked[0] ?? "")?.[1] ?? "none";
  assert.equal(sent?.text, "command=/supported_operations&data=e30=&sign=****");
  assert.ok(!JSON.stringify(findings).includes(sign));
  assert.ok((sent?.hex ?? "").endsWith(`${"** ".repeat(sign.length + 4)}03`), sent?.hex);
  assert.ok(!(sent?.hex ?? "").replaceAll(" ", "").includes(Buffer.from(sign).toString("hex").slice(0, 8)));
});

test("diagnoseLine() finds a terminal that reads CRC16 the other way, and names the setting", async () => {
  const line = terminal(new FakeLine("umts"));
  const { findings } = await ask(line, ["bank", "qr", "fiscal"]);
  assert.deepEqual(brief(findings), ["checksum bad -", "answer ok fiscal", "answer note bank", "answer note qr"]);
  const [checksum] = findings;
  assert.equal(checksum?.what, "the terminal uses the CRC-16/UMTS checksum");
  assert.equal(checksum?.cure, 'set "crc16": "umts" for line till in the configuration, then sudo systemctl reload posline');
  // The second service is asked by the proven reading at once.
  assert.equal(line.written.length, 4);
});

test("diagnoseLine() names the setting also where the terminal answers by the other reading without checking ours", async () => {
  const line = new FakeLine("umts");
  line.onWrite = () => line.reply("length", probeReplies.bankSupported);
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["checksum bad -", "answer note bank"]);
  assert.equal(line.written.length, 1);
});

test("diagnoseLine() tells silence once for the line with its causes in order, and waits out late answers", async () => {
  const line = new FakeLine();
  const { findings, progress, tookMs } = await ask(line, ["bank", "fiscal"]);
  assert.deepEqual(brief(findings), ["silence bad -", "answer note fiscal", "answer note bank"]);
  const [silence] = findings;
  assert.equal(silence?.what, "the terminal does not answer, and not one byte comes back");
  assert.match(silence?.cure ?? "", /^1\. switch the terminal on .*cable.*115200 baud.*till \(ECR\) protocol/);
  assert.match(
    silence?.cure ?? "",
    /; 3\. sudo posline doctor --line till --scan tries the usual speeds beside 115200 baud, and both CRC16; 4\. /,
  );
  assert.equal(of(findings, "bank").what, "bank did not answer /supported_operations, with either CRC16");
  assert.equal(of(findings, "fiscal").what, "fiscal did not answer /supported_operations");
  assert.ok(progress.some((text) => /late answers/.test(text)));
  assert.ok(tookMs >= lineDefaults.lateReplyMs, `${tookMs}`);
});

test("diagnoseLine() tells a service that the terminal doesn't serve from a dead line", async () => {
  const line = new FakeLine();
  line.onAsked = (text, framing) => {
    if (text === "/supported_operations") line.reply(framing, probeReplies.bankSupported);
  };
  const { findings } = await ask(line, ["bank", "qr"]);
  assert.deepEqual(brief(findings), ["answer ok bank", "answer bad qr"]);
  assert.equal(of(findings, "qr").what, "qr does not answer, though another service on this line does");
});

test("diagnoseLine() gives a late answer to the service that it belongs to, and leaves the line clean", async () => {
  const line = new FakeLine();
  line.onAsked = (text, framing) => {
    if (text === "/supported_operations") line.reply(framing, probeReplies.bankSupported, 4_000);
    else line.reply(framing, probeReplies.connection, 20_000);
  };
  const { findings } = await ask(line, ["bank", "qr"], { config: { crc16: "arc" } });
  assert.deepEqual(brief(findings), ["answer warn bank", "answer warn qr"]);
  assert.match(of(findings, "qr").what, /^qr answered \/check_connection in \d+\.\d s/);
});

test("diagnoseLine() tells a wrong merchantId from the code that the sign is answered with", async () => {
  const line = terminal(new FakeLine(), () => '{"status":"error","code":1,"message":"bad sign"}');
  const { findings } = await ask(line, ["fiscal"]);
  assert.deepEqual(brief(findings), ["answer bad fiscal"]);
  assert.match(of(findings, "fiscal").what, /error, with code 1 \(signature\/auth error\) "bad sign"$/);
  assert.match(of(findings, "fiscal").cure ?? "", /^compare services\.fiscal\.merchantId with the terminal's/);
});

test("diagnoseLine() asks qr with the port in front that its service has on the line", async () => {
  const line = terminal(new FakeLine(), (text) => (text === ":9001/check_connection" ? probeReplies.connection : undefined));
  const qr = serviceConfigOf({ contract: "qr", port: 8887, linePort: 9001 });
  const { findings } = await ask(line, [], { other: { qr } });
  assert.deepEqual(brief(findings), ["answer ok qr"]);
  assert.deepEqual(line.asked, [":9001/check_connection"]);
});

test("diagnoseLine() warns of a service that refuses its probe", async () => {
  const line = terminal(new FakeLine(), () => '{"status":"error","code":-80}');
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["answer warn bank"]);
  assert.match(of(findings, "bank").what, /code -80 \(operation not supported\)/);
});

test("diagnoseLine() warns of a service that answers its probe with something else, and neither calls it silent nor another device", async () => {
  for (const odd of ['{"status":"success"}', '{"status":"success","data":{"operations":null}}', "BUSY"]) {
    const line = terminal(new FakeLine(), (text) => (text.startsWith(":8887") ? odd : undefined));
    const { findings } = await ask(line, ["bank", "qr"], { config: { lateReplyMs: 10_000 } });
    assert.deepEqual(brief(findings), ["answer ok bank", "answer warn qr"], odd);
    const { what, cause, cure } = of(findings, "qr");
    assert.equal(what, "qr answered /check_connection with something that its contract doesn't have");
    assert.equal(cause, "qr answers posline's own question with something that its contract doesn't have");
    assert.match(cure ?? "", /^run this command again, .*; if it says the same, ask the terminal's vendor/);
  }
});

test("diagnoseLine() skips fiscal without merchantId, and a line that is proven by silence", async () => {
  const line = terminal(new FakeLine());
  const unsigned = await ask(line, ["fiscal"], { signed: false });
  assert.deepEqual(brief(unsigned.findings), ["answer skipped fiscal"]);
  const quiet = await ask(line, ["bank"], { config: { recovery: "quiet" } });
  assert.deepEqual(brief(quiet.findings), ["answer skipped bank"]);
  assert.equal(line.openings, 0);
});

test("diagnoseLine() names what comes in place of an answer", async () => {
  const sampled = Buffer.from("e0f8fe80c0fcf0ff00e0f8f0c0fef8", "hex");
  const looks: [string, Buffer | "echo", RegExp][] = [
    ["an echo", "echo", /what was sent comes back/],
    ["AT commands", Buffer.from("AT+CGMI\rAT\r"), /AT commands/],
    ["a login prompt", Buffer.from("\r\nDebian GNU/Linux 12 till ttyS0\r\n\r\ntill login: "), /login prompt/],
    ["text", Buffer.from("+0001.250 kg\r\n"), /text comes/],
    ["another speed", sampled, /another speed/],
    ["a damaged answer", Buffer.from('{"status":"success","da"operations":["sale"]}}'), /answers come damaged/],
    ["zeros", Buffer.alloc(20), /only zeros/],
  ];
  for (const [name, bytes, what] of looks) {
    const line = new FakeLine();
    line.onWrite = (sent) => line.send(bytes === "echo" ? sent : bytes);
    const { findings } = await ask(line, ["bank"]);
    assert.deepEqual(brief(findings), ["bytes bad -", "answer note bank"], name);
    assert.match(findings[0]?.what ?? "", what, name);
    assert.ok((findings[0]?.cure ?? "") !== "", name);
  }
});

test("diagnoseLine() doesn't take an answer of an earlier operation for its own, and shows only its beginning", async () => {
  const line = terminal(new FakeLine());
  line.onOpen = () => {};
  line.onWrite = () => line.reply("length", '{"status":"success","data":{"status":"APPROVED","rrn":"123456789012"}}', 1);
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["answer ok bank"]);
  assert.ok(!JSON.stringify(findings).includes("APPROVED"));
});

test("diagnoseLine() ignores what is older than the connection, and names it", async () => {
  const line = terminal(new FakeLine());
  line.onOpen = () => line.send(Buffer.from("AT\r"), 10);
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["bytes warn -", "answer ok bank"]);
});

test("diagnoseLine() tells a broken frame from a wrong reading of CRC16", async () => {
  const line = new FakeLine();
  line.onWrite = () => line.send(Buffer.from("000000027b7d0000", "hex"));
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["checksum bad -", "answer note bank"]);
  assert.match(findings[0]?.what ?? "", /^answers come damaged, or with a wrong checksum/);
  assert.equal(of(findings, "bank").what, "bank: 16 bytes came after /supported_operations, and no answer among them");
  assert.equal(line.written.length, 2);
});

test("diagnoseLine() tells a line that takes no bytes, one that is lost, and one that can't be opened", async () => {
  const stopped = new FakeLine();
  stopped.takes = false;
  assert.match(of((await ask(stopped, ["bank"])).findings, "bank").what, /takes no bytes/);

  const lost = new FakeLine();
  lost.onWrite = () => lost.lose("the device was unplugged or hung up", 10);
  const { findings } = await ask(lost, ["bank", "qr"]);
  assert.ok(findings.some(({ check, what }) => check === "line" && /was unplugged or hung up$/.test(what)));
  assert.equal(lost.written.length, 1, "nothing is sent once it is lost");

  const locked = new FakeLine();
  locked.refuses = { cause: "/dev/ttyUSB0 is in use by process 812 (minicom)", cure: "stop it: sudo kill 812" };
  const [refused] = (await ask(locked, ["bank"])).findings;
  assert.equal(refused?.what, "/dev/ttyUSB0 is in use by process 812 (minicom)");
  assert.equal(refused?.cure, "stop it: sudo kill 812");
});

test("diagnoseLine() shows of an error what it says, and nothing of what else is in it", async () => {
  const line = terminal(
    new FakeLine(),
    () => '{"status":"error","code":-20,"message":"no 4111111111111111","data":{"name":"SMITH"}}',
  );
  const { findings } = await ask(line, ["bank"]);
  assert.match(of(findings, "bank").what, /code -20 \(declined\) "no 411111/);
  assert.doesNotMatch(JSON.stringify(findings), /SMITH|4111111111111111/);
});

test("diagnoseLine() calls a damaged answer neither text of another device nor CRC16's fault where fiscal has a CRC-32", async () => {
  const line = new FakeLine();
  line.onWrite = () => {
    const frame = Buffer.concat(frameOf("stx", [Buffer.from(probeReplies.supported)], "arc"));
    frame.writeUInt8(frame.readUInt8(20) ^ 1, 20);
    line.send(frame);
  };
  const { findings } = await ask(line, ["fiscal"]);
  assert.deepEqual(brief(findings), ["checksum bad -", "answer note fiscal"]);
  assert.match(
    findings[0]?.what ?? "",
    /^answers come damaged, or with a wrong checksum: bytes are lost or changed on the way$/,
  );
  assert.doesNotMatch(JSON.stringify(findings), /CRC-?16|another device|did not answer/);
});

test("diagnoseLine() counts the bytes that came in place of an answer, and doesn't say that none came", async () => {
  const line = new FakeLine();
  line.onWrite = () => line.reply("length", '{"status":"success","data":{"status":"APPROVED"}}', 1);
  const { findings } = await ask(line, ["bank"], { config: { lateReplyMs: 10_000 } });
  const bank = of(findings, "bank");
  assert.ok(bank.frames?.some(({ direction }) => direction === "received"));
  assert.doesNotMatch(JSON.stringify(findings), /did not answer|not one byte/);
});

test("diagnoseLine() takes a login prompt that stands there before the first probe for the cause", async () => {
  const line = new FakeLine();
  line.onOpen = () => line.send(Buffer.from("\r\nDebian GNU/Linux 12 till ttyS0\r\n\r\ntill login: "), 10);
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["bytes bad -", "answer note bank"]);
  assert.match(findings[0]?.what ?? "", /^a login prompt comes: /);
});

test("diagnoseLine() knows another speed though zeros of it look like an empty frame", async () => {
  const line = new FakeLine();
  const answer = Buffer.concat(frameOf("length", [Buffer.from(probeReplies.bankSupported)], "arc"));
  line.onWrite = () => line.send(sampledAt(answer, 9_600, 115_200));
  const { findings } = await ask(line, ["bank"]);
  assert.deepEqual(brief(findings), ["bytes bad -", "answer note bank"]);
  assert.match(findings[0]?.what ?? "", /^bytes come that were sent at another speed than 115200 baud: /);
  assert.match(findings[0]?.cure ?? "", /^sudo posline doctor --line till --scan finds the speed/);
});

test("diagnoseLine() says how many bytes came, also of more than it keeps, and shows no giant name", async () => {
  const babbling = new FakeLine();
  babbling.onWrite = () => babbling.send(Buffer.alloc(6_000, 0x99));
  const { findings } = await ask(babbling, ["bank"]);
  const frames = findings.flatMap((found) => found.frames ?? []).filter(({ direction }) => direction === "received");
  assert.deepEqual([...new Set(frames.map(({ bytes }) => bytes))], [6_000]);
  const name = "PALM".repeat(10_000);
  const answer = JSON.stringify({ status: "success", data: { systems: [{ name, operations: ["check"] }] } });
  const wordy = terminal(new FakeLine(), () => answer);
  const { what } = (await ask(wordy, ["qr"])).findings[0] ?? { what: "" };
  assert.match(what, /payment systems PALMPALM/);
  assert.ok(what.length < 200, what.slice(0, 300));
});

test("diagnoseLine() of a silent line has another line's terminal for a cause where there is another line", async () => {
  const alone = (await ask(new FakeLine(), ["bank"])).findings[0];
  assert.doesNotMatch(alone?.cure ?? "", /the terminal of line/);
  const other = { fiscal: serviceConfigOf({ contract: "fiscal", port: 8008, line: "printer" }) };
  const swapped = (await ask(new FakeLine(), ["bank"], { other })).findings[0];
  assert.equal(swapped?.check, "silence");
  const cure =
    /; 3\. see whether the terminal of line printer is at this cable: follow the cable to its terminal, and swap the cables, /;
  assert.match(swapped?.cure ?? "", cure);
});

test("diagnoseLine() and a running line's Liveness have one text for the same trouble", async () => {
  const config = { path: "/dev/ttyUSB0", ...lineDefaults };
  const bank: LineService = {
    service: "bank",
    framing: "length",
    replyBytesMax: 1_000,
    probe: [],
    second: [],
    questionOf: () => undefined,
  };
  const noise = { kind: "discard", reason: "noise", wireBytes: 20, head: "a5" } as const;
  const login = Buffer.from("\r\nbox login: ");
  const broken = Buffer.from("000000027b7d0000", "hex");
  const troubles: [string, (line: FakeLine, sent: Buffer) => void, (liveness: Liveness) => void][] = [
    ["silence", () => {}, () => {}],
    ["bytes", (line, sent) => line.send(sent), (liveness) => liveness.echoed(1)],
    ["bytes", (line) => line.send(login), (liveness) => liveness.discarded({ ...noise, head: login.toString("hex") }, 1)],
    ["checksum", (line) => line.send(broken), (liveness) => liveness.discarded({ ...noise, reason: "checksum" }, 1)],
    [
      "checksum",
      (line) => line.reply("length", probeReplies.bankSupported),
      (liveness) => liveness.discarded({ ...noise, checksum: { got: "01", arc: "02", umts: "01" } }, 1),
    ],
    ["bytes", (line) => line.send(Buffer.from("a5", "hex")), (liveness) => liveness.discarded(noise, 1)],
  ];
  for (const [check, comes, isSeen] of troubles) {
    const fake = new FakeLine("umts");
    fake.onWrite = (sent) => comes(fake, sent);
    const found = (await ask(fake, ["bank"])).findings.find((each) => each.check === check);
    const liveness = new Liveness({ name: "till", config }, [bank], { unheard() {}, heardAgain() {}, echoes() {} });
    liveness.unanswered("bank", 0);
    isSeen(liveness);
    const [seen] = liveness.view();
    assert.equal(found?.what.slice(0, seen?.cause?.cause.length), seen?.cause?.cause);
    assert.equal(found?.cure, seen?.cause?.cure);
  }
});
