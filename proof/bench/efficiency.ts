import { askBy, askLine, type CallerFigures } from "./callers.ts";
import { type Pace, type Peer, peersHere, type Started, startPeer, startResponder } from "./peer.ts";
import { figureOf, inWorkshop, type Running } from "./processes.ts";
import { atLeast, atMost, type Bench } from "./report.ts";
import { inTurns, type Rounds } from "./turns.ts";

/**
 * How full a bridge keeps a line of a real line's speed while calls are waiting, and what an exchange costs in processor time.
 *
 * The line's other end is the clock (responder.py): it counts the line as busy from a request's first byte to its reply's
 * last, and idle until the next request's first byte. A client right on the line, with no bridge between, gives the floor of
 * the harness itself.
 */

const section = "line";

export interface Speed extends Pace {
  /** In a round of about 1.5 s: short ones, so that some fall where the machine is quiet. A multiple of the clients. */
  readonly exchanges: number;
  readonly rounds: number;
}

export type Burst = { readonly fullPercent: number; readonly gapUs: number; readonly processorUs: number };

/** What the line's clock saw, after its responder found the line idle. */
async function burstOf({ processorUs }: CallerFigures, responder: Running): Promise<Burst> {
  const line = await responder.line(5000);
  return { fullPercent: 100 * figureOf(line, "full"), gapUs: figureOf(line, "gapP50Us"), processorUs };
}

/** By peer. */
export async function fullLines(measured: readonly Peer[], speed: Speed): Promise<Rounds<Burst>> {
  return await inWorkshop(async (workshop) => {
    const { exchanges, warmUpExchanges, rounds } = speed;
    const [link, responder] = await startResponder(workshop, "floor", { ...speed, warmUpExchanges: 0 });
    const started: Started[] = [];
    for (const peer of measured) {
      const one = await startPeer(workshop, peer, speed);
      await askBy(workshop, one, { callers: 4, count: warmUpExchanges, warmup: 0 });
      started.push(one);
    }
    const bursts = started.map((one) => {
      const run = { callers: 4, count: exchanges, warmup: 0 };
      return [one.name, async () => burstOf(await askBy(workshop, one, run), one.responder)] as const;
    });
    const floor = async () => burstOf(await askLine(workshop, link, exchanges, 0), responder);
    // At 9600 baud every core is idle, so all lines run at once; faster ones take turns.
    return await inTurns(rounds, { floor, ...Object.fromEntries(bursts) }, speed.baudRate < 20_000);
  });
}

/** At 30 exchanges a second the compiler would otherwise not be done before the round ends. */
const warmUpExchanges = 3000;

/** With the least share of the time that the line must be busy, in %. */
const speeds = [
  { what: "115200 in 8-byte pieces", baudRate: 115_200, pieceBytes: 8, fullPercent: 99.5, exchanges: 48 },
  { what: "921600 in 64-byte pieces", baudRate: 921_600, pieceBytes: 64, fullPercent: 98, exchanges: 300 },
] as const;

export async function lineEfficiency({ report, short }: Bench): Promise<void> {
  const measured = peersHere((why) => report.skip(section, why), ["posline", "fastify"]);
  for (const { what, fullPercent, ...speed } of speeds) {
    const exchanges = short ? speed.exchanges / 2 : speed.exchanges;
    const bursts = await fullLines(measured, { ...speed, warmUpExchanges, exchanges, rounds: short ? 4 : 16 });
    report.baseline(section, `${what}: line full, harness alone`, bursts.quiet("floor", "fullPercent"), "%");
    report.baseline(section, `${what}: gap between exchanges, harness alone`, bursts.quiet("floor", "gapUs"), "µs");
    const both = (figure: keyof Burst, unit: string) => ({
      ...{ ours: bursts.quiet("posline", figure), theirs: bursts.quiet("fastify", figure), unit },
      floor: bursts.parts("floor", "gapUs"),
    });
    const full = both("fullPercent", "%");
    const judged = { value: full.ours, unit: "%" } as const;
    report.add({ section, what: `${what}: line full`, ...full, judged, bound: atLeast(fullPercent) });
    report.compare(section, `${what}: gap between exchanges`, both("gapUs", "µs"), undefined);
    const most = speed.pieceBytes === 8 ? atMost(0.5) : undefined;
    report.compare(section, `${what}: processor time an exchange`, both("processorUs", "µs"), most);
  }
}
