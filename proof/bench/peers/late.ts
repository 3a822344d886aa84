import { setTimeout as sleep } from "node:timers/promises";
import { freePort, pythonArgv } from "../machine.ts";
import { figureOf, inWorkshop } from "../processes.ts";
import { atMost, type Bench } from "../report.ts";
import { writePage } from "./page.ts";
import { type LateWay, type Peer, peers } from "./peer.ts";

/**
 * The late-answer experiment: sales over each bridge, with a terminal that answers one in a hundred after the bridge's deadline. How many
 * calls got another call's answer, and how many sales ran twice, when the caller does what that bridge's users do.
 */

const section = "late";
const seed = 20_261_122;
/** A late reply comes so much after its deadline, in parts of it: from just after to while the next call is being answered. */
const lateness = { from: 1.02, to: 1.4 };
/** Their timeout is short for the sake of the experiment's length; posline's is the shortest that it accepts. */
const timeoutMs = { posline: 3001, other: 500 };

const words: Record<LateWay, string> = {
  retry: "retry after a timeout",
  "flush-retry": "the same, input emptied before each request",
  "http-retry": "retry after a 5xx",
  ask: "/check after an unknown outcome",
  wait: "Prefer: wait, repeated until it says the end",
};

interface LateFigures {
  readonly sales: number;
  readonly wrong: number;
  readonly twice: number;
  readonly unanswered: number;
  readonly carriedOut: number;
  readonly seconds: number;
}

export async function experiment(peer: Peer, way: LateWay, sales: number): Promise<LateFigures> {
  return await inWorkshop(async (workshop) => {
    const port = await freePort();
    const replyTimeoutMs = peer.name === "posline" ? timeoutMs.posline : timeoutMs.other;
    const [link, ledger] = [workshop.path("late.line"), workshop.path("ledger")];
    const [from, to] = [lateness.from, lateness.to].map((part) => Math.round(part * replyTimeoutMs));
    const terminalArgv = pythonArgv("peers/terminal.py", link, ledger, sales, from ?? 0, to ?? 0, seed);
    const terminal = workshop.start("terminal", terminalArgv, { talks: true });
    await terminal.line(10_000);
    const bridge = workshop.start(peer.name, peer.argv({ workshop, link, port, baudRate: 115_200, replyTimeoutMs }));
    const tills = workshop.start("tills", pythonArgv("peers/tills.py", way, port, sales, replyTimeoutMs, ledger), {
      talks: true,
    });
    const dead = bridge.ended.then((how) =>
      Promise.reject(new Error(`Cannot go on with ${peer.title}: it ${how}\n${bridge.log()}`)),
    );
    const line = await Promise.race([tills.line(600_000), dead]);
    // What is still on its way may not be the last thing that the bridge does.
    await sleep(100);
    const figure = (name: keyof LateFigures) => figureOf(line, name);
    return {
      sales: figure("sales"),
      wrong: figure("wrong"),
      twice: figure("twice"),
      unanswered: figure("unanswered"),
      carriedOut: figure("carriedOut"),
      seconds: figure("seconds"),
    };
  });
}

export async function lateSection({ report, short }: Bench): Promise<void> {
  const sales = short ? 200 : 1000;
  const rows: (string | number | undefined)[][] = [];
  const notes: string[] = [];
  for (const peer of peers) {
    const missing = peer.missing();
    if (missing !== undefined) {
      notes.push(`not measured: ${peer.title}: ${missing}`);
      if (peer.name === "posline") report.skip(section, missing, true);
      continue;
    }
    for (const way of peer.lateWays) {
      const { sales: made, wrong, twice, unanswered, carriedOut, seconds } = await experiment(peer, way, sales);
      rows.push([peer.title, words[way], made, wrong, twice, unanswered, carriedOut]);
      console.error(`bench ${section}: ${peer.title}, ${way}: ${wrong} wrong, ${twice} twice, in ${seconds.toFixed(1)} s`);
      const ours = peer.name === "posline" ? atMost(0) : undefined;
      report.figure(section, `${peer.title}, ${way}: calls that got another call's answer`, wrong, "", ours);
      report.figure(section, `${peer.title}, ${way}: sales that ran twice`, twice, "", ours);
      report.figure(section, `${peer.title}, ${way}: sales without an end for their till`, unanswered, "", ours);
    }
  }
  const columns = [
    ...["", "what the caller does", "sales", "got another call's answer", "sales that ran twice", "no end"],
    "carried out",
  ];
  notes.push(
    `one reply in a hundred comes ${lateness.from} to ${lateness.to} times the deadline after its request (seed ${seed})`,
    `the deadline is ${timeoutMs.posline} ms for posline, the shortest that it accepts, and ${timeoutMs.other} ms for the others`,
    "the terminal carries out each sale request that reaches it, and answers in order",
    "sales follow each other without a pause: over HTTP four tills sell at one time, 32 with Prefer: wait; a relay has one connection, " +
      "and one sale at a time",
  );
  writePage({
    name: section,
    tables: [{ caption: `${sales} sales, 1 % of replies after the deadline`, columns, rows }],
    notes,
  });
}
