import { basename } from "node:path";
import { type Config, emulatedPath, type LineConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import {
  type DeviceState,
  type FoundTerminal,
  isForTills,
  placeOf,
  servicesOn,
  type TerminalPlace,
  terminalSettings,
} from "../config/found-terminal.ts";
import { lineDefaults } from "../config/limits.ts";
import { readBox } from "../doctor/accounts.ts";
import { findDevice } from "../doctor/device.ts";
import { checkDevice, type LineDevice, servedFindings } from "../doctor/device-barrier.ts";
import type { LineToProbe } from "../doctor/diagnosis.ts";
import { type Host, type HostPlaces, hostOf, nodeOf, type RunCommand, runCommand } from "../doctor/host.ts";
import { isDevice } from "../doctor/setup.ts";
import {
  type AnsweringService,
  lineToSearch,
  probeAgain,
  type SearchedTerminal,
  searchTerminal,
} from "../doctor/terminal-search.ts";
import { isServing, noUnits, readUnits, type SystemdUnits } from "../doctor/units.ts";
import { SetupError, SetupFile } from "./setup-file.ts";
import { testThroughService } from "./setup-test.ts";
import { type SetupPerson, stableName, waitForDevice } from "./setup-wait.ts";

/**
 * Sets up the terminal of a box: finds it on a device that was named or has just been plugged in, by questions that only read, and writes the
 * drop-in that fits it once a person agrees. To any other device not one byte is written. What can be found out isn't asked.
 */

export interface SetupPlaces extends HostPlaces {
  /** Runs what changes the box: systemctl. */
  readonly act?: RunCommand;
  /** Milliseconds for which a device is waited for. */
  readonly waitMs?: number;
}

export interface SetupOptions {
  /** The file to write; undefined: the service's own. */
  readonly config?: string | undefined;
  /** The device, or the name of a line. */
  readonly line?: string | undefined;
  readonly merchantId?: string | undefined;
  readonly person: SetupPerson;
  readonly places?: SetupPlaces;
}

/** How a setup ended. */
export type SetupEnd = { readonly is: "unchanged" | "declined" } | SetupWritten;

/** The file is written, and a service that runs has it. */
export interface SetupWritten {
  readonly is: "written";
  /** Asks each service that has answered once more, through posline where it runs. @returns true if each did. */
  readonly test: () => Promise<boolean>;
}

/** @throws SetupError, ConfigError: then nothing was written, unless the message says so. */
export async function setUp(options: SetupOptions): Promise<SetupEnd> {
  const { places = {} } = options;
  const host = hostOf(places);
  const file = await SetupFile.open(options.config, host);
  try {
    return await new Setup(options, host, file).run();
  } finally {
    await file.release();
  }
}

/** Milliseconds that systemctl may take: a restart lets the call in flight end. */
const actMs = 90_000;

/** Times that a merchant's id is asked for. */
const merchantIdTries = 3;

/** What a line is called that the file doesn't have; its name in the file may become another one. */
const newLine = "the new line";

/** A device to look at, as the line that it would be. */
interface Candidate extends LineDevice {
  /** The path to write. */
  readonly path: string;
  /** True if the file has this line on this device. */
  readonly isOfFile: boolean;
}

interface Found {
  readonly candidate: Candidate;
  readonly terminal: SearchedTerminal;
  /** The merchant's id that fiscal has answered to, if another one than the file has. */
  readonly merchantId: string | undefined;
}

class Setup {
  readonly #options: SetupOptions;
  readonly #person: SetupPerson;
  readonly #host: Host;
  readonly #file: SetupFile;

  constructor(options: SetupOptions, host: Host, file: SetupFile) {
    this.#options = options;
    this.#person = options.person;
    this.#host = host;
    this.#file = file;
  }

  async run(): Promise<SetupEnd> {
    const file = this.#file;
    const candidates = await this.#candidates();
    for (const [at, candidate] of candidates.entries()) {
      const looked = await this.#look(candidate);
      if (looked === "unchanged") return { is: "unchanged" };
      if (looked !== undefined) return this.#write(looked);
      if (at === candidates.length - 1) break;
    }
    throw new SetupError(
      `no terminal answers on ${candidates.map(({ path }) => path).join(", ")}: nothing was written to ${file.dropIn}`,
    );
  }

  /** The devices that were named, or have just been plugged in. */
  async #candidates(): Promise<readonly Candidate[]> {
    const { line } = this.#options;
    const { config } = this.#file;
    if (line !== undefined && isDevice(line)) {
      const [name, configured] = (await this.#lineOf(line)) ?? [newLine, { ...lineDefaults, path: line }];
      return [await this.#named(name, configured, line)];
    }
    if (line !== undefined) {
      const configured = config.lines[line];
      if (configured === undefined) {
        const names = Object.keys(config.lines);
        const known = names.length === 0 ? "it has none" : `its lines are ${names.join(", ")}`;
        throw new SetupError(`--line: ${this.#file.path} has no line ${line}: ${known}`, "usage");
      }
      return [await this.#named(line, configured, configured.path)];
    }
    const there: Candidate[] = [];
    const lines = Object.entries(config.lines);
    for (const [name, each] of lines) {
      if (await this.#isThere(each.path)) there.push(await this.#named(name, each, each.path));
    }
    // A line whose device is away is what somebody sets up.
    const isWhole = there.length === lines.length;
    if (isWhole && there.length > 1) {
      const names = there.map(({ name }) => name).join(", ");
      throw new SetupError(
        `the lines ${names} of ${this.#file.path} have their devices: name one of them with --line`,
        "usage",
      );
    }
    if (isWhole && there.length === 1) return there;
    const { waitMs } = this.#options.places ?? {};
    const plugged = await waitForDevice(this.#host, this.#person, waitMs);
    return plugged.map((device) => {
      const config = { ...lineDefaults, path: device.path };
      return { name: newLine, config, path: stableName(device) ?? device.path, node: device.path, device, isOfFile: false };
    });
  }

  /** What a line over TCP leads to can't be seen from here, and counts as there. */
  async #isThere(path: string): Promise<boolean> {
    return isTcpPath(path) || (await nodeOf(path, this.#host)) !== undefined;
  }

  /** The line of the file that has a device, by whatever name. */
  async #lineOf(path: string): Promise<readonly [string, LineConfig] | undefined> {
    const { lines } = this.#file.config;
    const node = await nodeOf(path, this.#host);
    for (const [name, each] of Object.entries(lines)) {
      if (each.path === path) return [name, each];
      if (node !== undefined && (await nodeOf(each.path, this.#host)) === node) return [name, each];
    }
    return undefined;
  }

  /** @param path The device as it was named, which the line may have by another name. */
  async #named(name: string, config: LineConfig, path: string): Promise<Candidate> {
    if (path === emulatedPath) throw new SetupError(`line ${name} is emulated: name the device with --line`, "usage");
    const isOfFile = this.#file.config.lines[name] !== undefined;
    if (isTcpPath(path)) return { name, config, path, node: undefined, device: undefined, isOfFile };
    const found = await findDevice(name, path, this.#host);
    if ("findings" in found) {
      this.#person.show(found.findings);
      throw new SetupError(`there is no device ${path}: nothing was written`);
    }
    const { node, device } = found;
    const isKernelsName = basename(path) === basename(device?.path ?? "");
    const lasting = device !== undefined && isKernelsName ? stableName(device) : undefined;
    return { name, config, path: isOfFile ? config.path : (lasting ?? path), node, device, isOfFile };
  }

  /** Searches a device; undefined if no terminal answers there. */
  async #look(candidate: Candidate): Promise<Found | "unchanged" | undefined> {
    const { name, isOfFile } = candidate;
    const { config } = this.#file;
    if (isOfFile && isForTills(config, name)) {
      throw new SetupError(`the services of line ${name} have an upstream, so a till is at its other end: nothing was sent`);
    }
    const facts = await readBox(this.#host);
    const { findings, barrier } = await checkDevice(candidate, facts);
    const isBad = findings.some(({ level }) => level === "bad");
    const served = isOfFile && barrier !== undefined && !isBad ? await servedFindings(candidate, config, facts) : [];
    if (served.length > 0 && served.every(({ level }) => level === "ok")) {
      for (const { what } of served) this.#person.say(`${what}: nothing to change`);
      return "unchanged";
    }
    if (barrier !== undefined || isBad) {
      const all = barrier === undefined ? findings : [...findings, { ...barrier, level: "bad" } as const];
      this.#person.show([...served, ...all.filter(({ level }) => level !== "ok")]);
      throw new SetupError(`${candidate.path} can't be tested: nothing was sent, and nothing written`);
    }
    this.#person.say(`Looking for a terminal on ${candidate.path}, by questions that only read`);
    const line = lineToSearch(candidate, this.#servicesOf(candidate), this.#knownMerchantId);
    const terminal = await searchTerminal(line, this.#host, this.#person.say);
    if (!("services" in terminal)) {
      this.#person.show(terminal);
      return undefined;
    }
    for (const { fact } of terminal.services) this.#person.say(fact);
    for (const service of terminal.silent) this.#person.say(`${service} did not answer`);
    const settings = { ...candidate, config: { ...terminal.config, path: candidate.config.path } };
    return { candidate: settings, terminal, merchantId: await this.#merchantId(settings, terminal) };
  }

  #servicesOf({ isOfFile }: Candidate): Config["services"] {
    return isOfFile ? this.#file.config.services : {};
  }

  get #knownMerchantId(): string | undefined {
    return this.#options.merchantId ?? this.#file.merchantId?.value;
  }

  /** Asks for the merchant's id until fiscal takes the sign that it makes. */
  async #merchantId(candidate: Candidate, { services }: SearchedTerminal): Promise<string | undefined> {
    const fiscal = services.find(({ contract }) => contract === "fiscal");
    if (fiscal === undefined) return undefined;
    const { merchantId: given, person } = this.#options;
    const own = this.#file.merchantId;
    if (this.#knownMerchantId !== undefined && !fiscal.refusesSign) return given === own?.value ? undefined : given;
    if (given !== undefined)
      throw new SetupError("fiscal refuses the sign of the merchant's id in --merchant-id-file: nothing was written");
    let refused = own === undefined ? undefined : `fiscal refuses the sign of the merchant's id in ${own.origin}`;
    for (let tries = 0; tries < merchantIdTries; tries++) {
      const id = await person.merchantId(refused);
      if (id === undefined) {
        person.say("Without the merchant's id each start takes 30 s longer, and there is no Prefer: wait for fiscal");
        return undefined;
      }
      const line = lineToSearch(candidate, this.#servicesOf(candidate), id);
      const [again] = await probeAgain(line, [fiscal.name], this.#host);
      if (again !== undefined && !again.refusesSign) {
        person.say(again.fact);
        return id;
      }
      refused = again === undefined ? "fiscal did not answer with it" : "fiscal refuses the sign that it makes";
    }
    throw new SetupError(`${refused ?? "fiscal takes none of them"}: nothing was written`);
  }

  async #write({ candidate, terminal, merchantId }: Found): Promise<SetupEnd> {
    const found: FoundTerminal = {
      path: candidate.path,
      baudRate: terminal.config.baudRate,
      crc16: terminal.crc16,
      contracts: terminal.services.map(({ contract }) => contract),
    };
    const place = placeOf(this.#file.config, found, await this.#deviceStates(candidate));
    if (typeof place === "string") throw new SetupError(`${place}: nothing was written`);
    this.#sayKept(place, found);
    const change = await this.#file.change(terminalSettings(this.#file.config, found, place), merchantId);
    if (change === undefined) {
      this.#person.say(`${this.#file.path} has all of it already: nothing to change`);
      const { service } = await this.#units();
      if (service !== undefined && !isServing(service)) {
        this.#person.say("posline does not run: sudo systemctl start posline.socket posline");
      }
      return { is: "unchanged" };
    }
    if (!(await this.#person.agrees(change.words))) {
      this.#person.say("Nothing was written");
      return { is: "declined" };
    }
    change.write();
    this.#person.say(`Written: ${this.#file.dropIn}`);
    const { service } = await this.#units();
    if (service === undefined) {
      const line = lineToSearch(candidate, this.#servicesOf(candidate), merchantId ?? this.#knownMerchantId);
      return { is: "written", test: () => this.#testOnLine(line, terminal.services) };
    }
    // Secrets are read at the start alone.
    await this.#give(service, merchantId === undefined ? "reload" : "restart");
    return { is: "written", test: () => this.#testThroughService(place.line) };
  }

  /** A line that keeps its device keeps its services: one that is silent now may only be switched off. */
  #sayKept({ line, state }: TerminalPlace, { contracts }: FoundTerminal): void {
    if (state !== "this") return;
    const silent = servicesOn(this.#file.config, line).filter(([, { contract }]) => !contracts.includes(contract));
    for (const [name] of silent)
      this.#person.say(`${name} stays in the file, though it did not answer: posline doctor says more`);
  }

  async #deviceStates({ path, node }: Candidate): Promise<ReadonlyMap<string, DeviceState>> {
    const states = new Map<string, DeviceState>();
    for (const [name, each] of Object.entries(this.#file.config.lines)) {
      const its = await nodeOf(each.path, this.#host);
      const isThis = each.path === path || (its !== undefined && its === node);
      const isOther = its !== undefined || isTcpPath(each.path);
      states.set(name, isThis ? "this" : isOther ? "other" : "away");
    }
    return states;
  }

  /** Has the service take the file; one that doesn't run begins, and does so at each start of the box from then on. */
  async #give(state: string, verb: "reload" | "restart"): Promise<void> {
    const args = isServing(state) ? [verb, "posline.service"] : ["enable", "--now", "posline.socket", "posline.service"];
    const command = ["systemctl", ...args].join(" ");
    const act: RunCommand = this.#options.places?.act ?? ((program, words) => runCommand(program, words, actMs));
    const result = await act("systemctl", args);
    if (!result.ran || result.code !== 0) {
      throw new SetupError(
        `${this.#file.dropIn} is written, and ${command} failed: sudo journalctl -u posline -n 50 shows why`,
      );
    }
    this.#person.say(`posline has it (${command})`);
  }

  async #testThroughService(line: string): Promise<boolean> {
    const { config } = await this.#file.reloaded();
    return testThroughService(config, line, this.#person.say);
  }

  /** The units that have this file. */
  async #units(): Promise<SystemdUnits> {
    return this.#file.isInstalled ? readUnits(this.#host) : noUnits;
  }

  /** Where no service is installed, the terminal is asked itself. */
  async #testOnLine(line: LineToProbe, services: readonly AnsweringService[]): Promise<boolean> {
    const names = services.map(({ name }) => name);
    const answers = await probeAgain(line, names, this.#host);
    for (const { fact } of answers) this.#person.say(`Test: ${fact}`);
    const silent = names.filter((name) => !answers.some((each) => each.name === name));
    for (const name of silent) this.#person.say(`Test: ${name} did not answer`);
    this.#person.say(`Next: posline serve${this.#file.flag}`);
    return silent.length === 0;
  }
}
