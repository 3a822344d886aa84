import fc from "fast-check";
import { type ContractName, contractNames, type ServiceName } from "../../src/core/call.ts";
import { between, type Drawn, often, one } from "./draw.ts";
import { merchantId } from "./request-body.ts";
import { servicesOf } from "./settled-terminal.ts";

/** The box's configuration as people change it while it serves: what a reload brings, drawn by a seed. */

export const lines = [1, 2] as const;

type LineNumber = (typeof lines)[number];

/** More slots than a campaign has records: nothing is overwritten. */
const journalBytes = 8 * 1024 * 1024;

/** The least that a reply may be given: an answer that is lost costs the line so long. */
const replyTimeoutMsMin = 3_001;

const allServices = lines.flatMap((home) =>
  Object.entries(servicesOf(home)).map(([name, contract]) => ({ name, contract, home })),
);

interface ServiceSettings {
  readonly replyTimeoutMs: number;
  /** The pages that may call it. */
  readonly allowOrigins: readonly string[];
}

type LineSettings = { readonly queueCallsMax: number; readonly queueWaitMs: number };

/** What a configuration says. */
export interface Setup {
  /** Contracts whose services have exchanged their terminals. */
  readonly moved: readonly ContractName[];
  /** The lines have exchanged their names: each service has its terminal, by another line. */
  readonly isRenamed: boolean;
  /** A service that was taken away; one at a time, as a line without any is refused. */
  readonly gone: ServiceName | undefined;
  /** Services that listen on their other port. */
  readonly elsewhere: readonly ServiceName[];
  readonly services: Readonly<Record<ServiceName, ServiceSettings>>;
  /** By the terminals at their end. */
  readonly lines: Readonly<Record<LineNumber, LineSettings>>;
  readonly logLevel: string;
}

const usualLine: LineSettings = { queueCallsMax: 64, queueWaitMs: 15_000 };

export const usualSetup: Setup = {
  moved: [],
  isRenamed: false,
  gone: undefined,
  elsewhere: [],
  services: Object.fromEntries(allServices.map(({ name }) => [name, { replyTimeoutMs: replyTimeoutMsMin, allowOrigins: [] }])),
  lines: { 1: usualLine, 2: usualLine },
  logLevel: "info",
};

const service = one(...allServices.map(({ name }) => name));

/** A change by its name, with what is changed. */
const changeOf = <const What extends string, Fields extends object>(
  what: What,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
) => fc.record({ what: fc.constant<What>(what), ...fields }) as unknown as fc.Arbitrary<{ readonly what: What } & Fields>;

const mistakes = ["no json", "half of it", "unknown key", "unknown line", "same port", "journal", "admin"] as const;

type Mistake = (typeof mistakes)[number];

/** What somebody changes. What comes or goes, or moves, does the other way the next time. */
const change = often(
  [
    3,
    changeOf("service", {
      service,
      settings: fc.record<ServiceSettings>({
        replyTimeoutMs: between(replyTimeoutMsMin, 6_000),
        allowOrigins: fc.subarray(["https://till.example", "http://localhost:3000"]),
      }),
    }),
  ],
  // Mostly so many and so long that calls are sent.
  [
    2,
    changeOf("line", {
      line: one(...lines),
      settings: fc.record<LineSettings>({ queueCallsMax: one(2, 8, 64), queueWaitMs: one(3_000, 15_000) }),
    }),
  ],
  [1, changeOf("log", { level: one("info", "debug") })],
  [3, changeOf("port", { service })],
  [3, changeOf("presence", { service })],
  [3, changeOf("terminal", { contract: one(...contractNames) })],
  [2, fc.constant({ what: "names" as const })],
  // A file that can't be used, or that needs a restart.
  [3, changeOf("mistake", { mistake: one(...mistakes) })],
);

/** `all`: as it was in the beginning. */
export type Change = Drawn<typeof change> | { readonly what: "all" };

/** What is done at one time: each change is a file of its own with a SIGHUP behind it, without a pause. */
const reload = fc.record({
  gapMs: between(100, 10_000),
  changes: often([4, fc.tuple(change)], [1, fc.array(change, { minLength: 2, maxLength: 2 })]),
});

/** The reloads of a world. */
export const reloadsOf = (seed: number) => fc.sample(reload, { seed, numRuns: 2_000 });

const toggled = <T>(all: readonly T[], one: T): readonly T[] =>
  all.includes(one) ? all.filter((each) => each !== one) : [...all, one];

export function changed(setup: Setup, change: Exclude<Change, { what: "mistake" }>): Setup {
  switch (change.what) {
    case "service":
      return { ...setup, services: { ...setup.services, [change.service]: change.settings } };
    case "line":
      return { ...setup, lines: { ...setup.lines, [change.line]: change.settings } };
    case "log":
      return { ...setup, logLevel: change.level };
    case "port":
      return { ...setup, elsewhere: toggled(setup.elsewhere, change.service) };
    case "presence":
      return { ...setup, gone: setup.gone === undefined ? change.service : undefined };
    case "terminal":
      return { ...setup, moved: toggled(setup.moved, change.contract) };
    case "names":
      return { ...setup, isRenamed: !setup.isRenamed };
    case "all":
      return usualSetup;
  }
}

export interface Places {
  /** Of the line to a terminal. */
  readonly path: (line: LineNumber) => string;
  /** Two for each service. */
  readonly ports: readonly number[];
}

export interface ConfigFile {
  readonly lines: Readonly<Record<string, LineSettings & { readonly path: string }>>;
  readonly services: Readonly<Record<ServiceName, { readonly port: number; readonly line: string }>>;
}

/** The file that says it. */
export function configOf(setup: Setup, { path, ports }: Places): ConfigFile {
  const other = (line: LineNumber): LineNumber => (line === 1 ? 2 : 1);
  const nameOf = (line: LineNumber) => `line-${setup.isRenamed ? other(line) : line}`;
  const services = allServices.flatMap(({ name, contract, home }, index) => {
    if (name === setup.gone) return [];
    const line = nameOf(setup.moved.includes(contract) ? other(home) : home);
    const port = ports[2 * index + (setup.elsewhere.includes(name) ? 1 : 0)] ?? 0;
    const own = name === contract ? {} : { contract };
    const signed = contract === "fiscal" ? { merchantId } : {};
    return [[name, { ...setup.services[name], ...own, ...signed, line, port }] as const];
  });
  return {
    lines: Object.fromEntries(
      lines.map((line) => [nameOf(line), { path: path(line), baudRate: 115_200, ...setup.lines[line] }]),
    ),
    services: Object.fromEntries(services),
    ...{ journal: { bytes: journalBytes }, admin: { host: "127.0.0.1" }, log: { level: setup.logLevel } },
  };
}

/** A file with a mistake. */
export function mistaken(config: ConfigFile, mistake: Mistake): string {
  const text = JSON.stringify(config);
  const [service = "bank", settings] = Object.entries(config.services)[0] ?? [];
  const others = Object.values(config.services).slice(1);
  const withSettings = (change: object) => ({
    ...config,
    services: { ...config.services, [service]: { ...settings, ...change } },
  });
  const files: Readonly<Record<Mistake, () => unknown>> = {
    "no json": () => undefined,
    "half of it": () => undefined,
    "unknown key": () => withSettings({ replyTimeout: 5_000 }),
    "unknown line": () => withSettings({ line: "tell" }),
    "same port": () => withSettings({ port: others[0]?.port ?? 0 }),
    journal: () => ({ ...config, journal: { bytes: 2 * journalBytes } }),
    admin: () => ({ ...config, admin: { host: "127.0.0.1", allowOrigins: ["https://till.example"] } }),
  };
  if (mistake === "no json") return "services: {}";
  return mistake === "half of it" ? text.slice(0, text.length / 2) : JSON.stringify(files[mistake]());
}
