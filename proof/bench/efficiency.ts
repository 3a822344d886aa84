import { ask, askLine, type Bridge, type Pace, productMissing, startBridge, startResponder } from "./bridges.ts";
import { processorMs } from "./machine.ts";
import { figureOf, inWorkshop, type Running, type Workshop } from "./processes.ts";
import { atLeast, atMost, type Bench, inParts, lowerQuartile, type Report } from "./report.ts";

/**
 * How full a bridge keeps a line of a real line's speed while calls are waiting, and what an exchange costs in processor time.
 *
 * The line's other end is the clock (responder.py): it counts the line as busy from a request's first byte to its reply's
 * last, and idle until the next request's first byte. A client right on the line, with no bridge between, gives the floor of
 * the harness itself. Bridges take turns in short rounds, of which the quieter quarter is compared.
 */

const section = "line";

interface Speed extends Pace {
  readonly what: string;
  /** The least share of the time that the line must be busy, in %. */
  readonly fullPercent: number;
  /** In a round of about 1.5 s: short ones, so that some fall where the machine is quiet. A multiple of the clients. */
  readonly exchanges: number;
}

/** At 30 exchanges a second the compiler would otherwise not be done before the round ends. */
const warmUpExchanges = 3000;

const speeds: readonly Speed[] = [
  { what: "115200 in 8-byte pieces", baudRate: 115_200, pieceBytes: 8, warmUpExchanges, fullPercent: 99.5, exchanges: 48 },
  { what: "921600 in 64-byte pieces", baudRate: 921_600, pieceBytes: 64, warmUpExchanges, fullPercent: 98, exchanges: 300 },
];

type Burst = { readonly fullPercent: number; readonly gapUs: number; readonly processorUs: number };

/** Reads what the line's clock saw, after its responder found the line idle. */
async function burstOf(responder: Running, processorUs: number): Promise<Burst> {
  const line = await responder.line(5000);
  return { fullPercent: 100 * figureOf(line, "full"), gapUs: figureOf(line, "gapP50Us"), processorUs };
}

async function bridgeBurst(workshop: Workshop, bridge: Bridge, count: number): Promise<Burst> {
  const beforeMs = processorMs(bridge.process.pid);
  await ask(workshop, bridge, { clients: 4, count, warmup: 0 });
  // One exchange more: the client asked once to see that the bridge is there.
  const processorUs = (1000 * (processorMs(bridge.process.pid) - beforeMs)) / (count + 1);
  return await burstOf(bridge.responder, processorUs);
}

async function floorBurst(workshop: Workshop, link: string, responder: Running, count: number): Promise<Burst> {
  await askLine(workshop, link, count, 0);
  return await burstOf(responder, 0);
}

/** What the quieter quarter of the rounds came to. */
function quiet(bursts: readonly Burst[], name: keyof Burst): number {
  const values = bursts.map((burst) => burst[name]);
  return name === "fullPercent" ? 100 - lowerQuartile(values.map((full) => 100 - full)) : lowerQuartile(values);
}

function add(report: Report, speed: Speed, bursts: { floor: Burst[]; fastify: Burst[]; posline: Burst[] }): void {
  const { floor, fastify, posline } = bursts;
  const { what, fullPercent } = speed;
  const gapsAlone = inParts(
    floor.map(({ gapUs }) => gapUs),
    lowerQuartile,
  );
  report.baseline(section, `${what}: line full, harness alone`, quiet(floor, "fullPercent"), "%");
  report.baseline(section, `${what}: gap between exchanges, harness alone`, quiet(floor, "gapUs"), "µs");
  if (posline.length === 0) {
    report.baseline(section, `${what}: line full`, quiet(fastify, "fullPercent"), "%");
    report.baseline(section, `${what}: gap between exchanges`, quiet(fastify, "gapUs"), "µs");
    report.baseline(section, `${what}: processor time an exchange`, quiet(fastify, "processorUs"), "µs");
    return;
  }
  const ours = quiet(posline, "fullPercent");
  report.add({
    section,
    what: `${what}: line full`,
    ours,
    theirs: quiet(fastify, "fullPercent"),
    unit: "%",
    judged: { value: ours, unit: "%" },
    bound: atLeast(fullPercent),
    floor: gapsAlone,
  });
  const gaps = { ours: quiet(posline, "gapUs"), theirs: quiet(fastify, "gapUs"), unit: "µs" };
  report.compare(section, `${what}: gap between exchanges`, gaps, undefined);
  const times = { ours: quiet(posline, "processorUs"), theirs: quiet(fastify, "processorUs"), unit: "µs", floor: gapsAlone };
  report.compare(section, `${what}: processor time an exchange`, times, speed.pieceBytes === 8 ? atMost(0.5) : undefined);
}

export async function lineEfficiency({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) report.skip(section, missing, true);
  for (const speed of speeds) {
    await inWorkshop(async (workshop) => {
      const count = short ? speed.exchanges / 2 : speed.exchanges;
      const [link, responder] = await startResponder(workshop, "floor", { ...speed, warmUpExchanges: 0 });
      const fastify = await startBridge(workshop, "fastify", { pace: speed });
      const posline = missing === undefined ? await startBridge(workshop, "posline", { pace: speed }) : undefined;
      for (const bridge of posline === undefined ? [fastify] : [fastify, posline]) {
        await ask(workshop, bridge, { clients: 4, count: warmUpExchanges, warmup: 0 });
      }
      const bursts = { floor: [] as Burst[], fastify: [] as Burst[], posline: [] as Burst[] };
      // The first round warms up and isn't counted.
      for (let round = 0; round < (short ? 5 : 17); round++) {
        const floor = await floorBurst(workshop, link, responder, count);
        const theirs = await bridgeBurst(workshop, fastify, count);
        const ours = posline === undefined ? undefined : await bridgeBurst(workshop, posline, count);
        if (round === 0) continue;
        bursts.floor.push(floor);
        bursts.fastify.push(theirs);
        if (ours !== undefined) bursts.posline.push(ours);
      }
      add(report, speed, bursts);
    });
  }
}
