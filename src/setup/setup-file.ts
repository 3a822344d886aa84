import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { basename, dirname, join, resolve } from "node:path";
import { type Config, secretKeys } from "../config/config.ts";
import { dropInFolder, isConfigured } from "../config/drop-ins.ts";
import type { TerminalSettings } from "../config/found-terminal.ts";
import { logDefaults } from "../config/limits.ts";
import { type Loaded, loadConfig, type Sources } from "../config/load.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import type { ServiceName } from "../core/call.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { parseJson } from "../core/json-syntax.ts";
import { type FileReaders, replaceFile } from "../core/replace-file.ts";
import { quoted } from "../core/shell-text.ts";
import type { Host } from "../doctor/host.ts";

/**
 * The configuration as a setup reads it, and the drop-in that is the setup's own: a person's file stays as it is. The merchant's id stands in
 * a file of its own. One setup has a configuration at a time.
 */

/** Why a setup can't go on. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  readonly exitCode: 64 | 69;

  constructor(state: string, kind: "usage" | "unavailable" = "unavailable") {
    super(`Cannot set up: ${state}`);
    this.exitCode = kind === "usage" ? 64 : 69;
  }
}

/** The merchant's id that the configuration has, and the file where it stands. */
interface KnownMerchantId {
  readonly value: string;
  readonly origin: string;
}

/** What is to be written. */
export interface SetupChange {
  /** The drop-in, and what of other files no longer counts, for a person to read; secrets are masked. */
  readonly words: string;
  readonly write: () => void;
}

export class SetupFile {
  readonly path: string;
  /** The drop-in to write. */
  readonly dropIn: string;
  /** True of the file that the installed service reads. */
  readonly isInstalled: boolean;
  readonly config: Config;
  readonly merchantId: KnownMerchantId | undefined;
  readonly #host: Host;
  readonly #loaded: Loaded | undefined;
  readonly #lock: Server;

  private constructor(
    { path, isInstalled, host }: { readonly path: string; readonly isInstalled: boolean; readonly host: Host },
    loaded: Loaded | undefined,
    lock: Server,
  ) {
    this.path = path;
    this.dropIn = dropInAt(path);
    this.isInstalled = isInstalled;
    this.config = loaded?.config ?? emptyConfig;
    this.merchantId = loaded === undefined ? undefined : merchantIdIn(loaded);
    this.#host = host;
    this.#loaded = loaded;
    this.#lock = lock;
  }

  /** @throws SetupError, or ConfigError for a file that can't be used. */
  static async open(named: string | undefined, host: Host): Promise<SetupFile> {
    const own = join(host.etc, "posline", "posline.json");
    const asked = resolve(named ?? host.env["POSLINE_CONFIG"] ?? own);
    const real = realPath(asked);
    const isInstalled = real === realPath(own);
    const path = isInstalled ? own : asked;
    try {
      const folder = dropInFolder(path);
      accessSync(existsSync(folder) ? folder : dirname(real), constants.W_OK | constants.X_OK);
    } catch (error) {
      const why =
        codeOf(error) === "ENOENT" ? "there is no such folder: make it" : "this user may not write there: sudo posline setup";
      throw new SetupError(`${path}: ${why}`);
    }
    if (!existsSync(path) && lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
      const state = `it is a link to ${readlinkSync(path)}, where no file is: put one there, or remove the link`;
      throw new SetupError(`${path}: ${state}`);
    }
    const lock = await oneSetupOf(real);
    try {
      const loaded = isConfigured(path) ? await load(path, host, isInstalled) : undefined;
      return new SetupFile({ path, isInstalled, host }, loaded, lock);
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  release(): Promise<void> {
    return new Promise((done) => this.#lock.close(() => done()));
  }

  /** The flag by which a command reads this file, with a space before it; empty of the file that each reads by itself. */
  get flag(): string {
    return this.isInstalled ? "" : ` --config ${quoted(this.path)}`;
  }

  /** The configuration as it stands there now. */
  reloaded(): Promise<Loaded> {
    return load(this.path, this.#host, this.isInstalled);
  }

  /** @returns what changes; undefined if nothing does. @throws ConfigError if the configuration couldn't be used then. */
  async change(found: TerminalSettings, merchantId: string | undefined): Promise<SetupChange | undefined> {
    const isSame = Object.keys({ ...found.lines, ...found.services }).length === 0;
    if (isSame && merchantId === undefined) return undefined;
    const before = textAt(this.dropIn);
    // What stands there was loaded with the rest, and is what a setup wrote.
    const own = (before === undefined ? {} : parseJson(before)) as Partial<TerminalSettings>;
    const lines = { ...own.lines };
    for (const [name, line] of Object.entries(found.lines)) lines[name] = { ...lines[name], ...line };
    const services = { ...own.services, ...found.services };
    const settings = { ...this.#firstSettings, ...own, lines, services };
    // Loaded without the merchant's id, whose file isn't there yet.
    const loaded = await this.#loadedWith(settings);
    const secret = merchantId === undefined ? undefined : this.#secretFile(loaded.config);
    if (secret?.service !== undefined) {
      services[secret.service] = { ...services[secret.service], merchantIdFile: "credentials/merchant-id" };
    }
    const changes = !isSame || secret?.service !== undefined;
    const words = changes ? `${this.dropIn}:\n${shown(settings)}${this.#overridden(found, loaded)}` : "";
    return {
      words: secret === undefined ? words : `${words}${secret.path}: the merchant's id\n`,
      write: () => {
        if (changes) this.#writeDropIn(textOf(settings));
        if (secret !== undefined) this.#writeSecret(secret.path, `${merchantId}\n`);
      },
    };
  }

  /** Settings of other files that the drop-in takes the place of. @throws SetupError if another drop-in comes after it, and says otherwise. */
  #overridden({ lines }: TerminalSettings, after: Loaded): string {
    const own = `file ${this.dropIn}`;
    const written = Object.entries(lines).flatMap(([name, line]) => Object.keys(line).map((key) => `lines.${name}.${key}`));
    const lost = written.find((setting) => after.origins.get(setting) !== own);
    if (lost !== undefined) {
      const where = `${after.origins.get(lost)} comes after ${this.dropIn}`;
      throw new SetupError(`${where}, and sets ${lost}: correct it by hand`);
    }
    const rows: string[] = [];
    for (const [setting, origin] of this.#loaded?.origins ?? []) {
      if (origin.startsWith("file ") && origin !== own && after.origins.get(setting) === own) {
        rows.push(`${setting} of ${origin.slice("file ".length)} no longer counts\n`);
      }
    }
    for (const name of Object.keys(this.config.services)) {
      if (after.config.services[name] === undefined) rows.push(`services.${name} is left out\n`);
    }
    return rows.join("");
  }

  /** What a box has beside its terminal, where nobody has said anything yet. */
  get #firstSettings(): Partial<TerminalSettings> {
    if (this.#loaded !== undefined) return {};
    return { ...(this.isInstalled && { journal: { folder: this.#host.state, onFailure: "refuse" } }), admin: {} };
  }

  #loadedWith(settings: TerminalSettings): Promise<Loaded> {
    return load(this.path, this.#host, this.isInstalled, { path: this.dropIn, text: textOf(settings) });
  }

  /** Where the merchant's id goes, and how the file names that; not at all where systemd passes it on. */
  #secretFile({ services }: Config): { readonly path: string; readonly service?: ServiceName } {
    const [name = "fiscal", fiscal] = Object.entries(services).find(([, { contract }]) => contract === "fiscal") ?? [];
    const own = this.merchantId?.origin;
    if (own !== undefined && fiscal?.merchantIdFile === undefined) {
      throw new SetupError(`correct the merchantId in ${own} by hand: fiscal refuses its sign`);
    }
    if (own !== undefined) return { path: own };
    const path = join(dirname(this.path), "credentials", "merchant-id");
    return this.isInstalled && name === "fiscal" ? { path } : { path, service: name };
  }

  #writeDropIn(text: string): void {
    const folder = dirname(this.dropIn);
    try {
      // The service's user lists it, whatever root's umask is.
      if (mkdirSync(folder, { recursive: true }) !== undefined) chmodSync(folder, 0o755);
      replaceFile(this.dropIn, text, this.#readers);
    } catch (error) {
      throw new SetupError(`${this.dropIn} can't be written: ${messageOf(error)}`);
    }
  }

  #writeSecret(path: string, text: string): void {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      replaceFile(path, text, statsAt(path) ?? ownReaders(0o640));
    } catch (error) {
      throw new SetupError(`${path} can't be written, and ${this.dropIn} is: ${messageOf(error)}`);
    }
  }

  /** Whoever may read the drop-in now, or else the file, may read it then; with neither it belongs to the service's group. */
  get #readers(): FileReaders {
    const there = statsAt(this.dropIn) ?? statsAt(this.path);
    if (there !== undefined) return there;
    const [, gid] = /^posline:[^:]*:(\d+):/m.exec(groupsAt(this.#host)) ?? [];
    const own = ownReaders(0o640);
    return this.isInstalled && gid !== undefined ? { ...own, gid: Number(gid) } : own;
  }
}

const groupsAt = ({ etc }: Host) => textAt(join(etc, "group")) ?? "";

const ownReaders = (mode: number): FileReaders => ({ uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0, mode });

function statsAt(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new SetupError(`${path} can't be read: ${messageOf(error)}`);
  }
}

/** Loads the configuration as the process reads it that has it. @param dropIn As it will be. */
function load(path: string, host: Host, isInstalled: boolean, dropIn?: Sources["dropIn"]): Promise<Loaded> {
  const env: NodeJS.ProcessEnv = isInstalled ? serviceEnvironment(host.env, host) : host.env;
  return loadConfig({ env, flags: { config: path }, dropIn, groups: join(host.etc, "group") });
}

const dropInAt = (path: string) => join(dropInFolder(path), "terminal.json");

const textOf = (settings: TerminalSettings) => `${JSON.stringify(settings, undefined, 2)}\n`;

/** The drop-in's text without a secret that a person has put there. */
const shown = (settings: TerminalSettings) =>
  `${JSON.stringify(settings, (key, value: unknown) => (secretKeys.has(key) && typeof value === "string" ? "****" : value), 2)}\n`;

const emptyConfig: Config = { lines: {}, services: {}, journal: false, log: logDefaults };

function merchantIdIn({ config, origins }: Loaded): KnownMerchantId | undefined {
  const [name, fiscal] = Object.entries(config.services).find(([, { contract }]) => contract === "fiscal") ?? [];
  if (fiscal?.merchantId === undefined) return undefined;
  const origin = origins.get(`services.${name}.merchantId`) ?? "";
  return { value: fiscal.merchantId, origin: origin.replace(/^file /, "") };
}

/** The one name of a file that has several by links, also of one that isn't there yet. */
function realPath(path: string): string {
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

/**
 * Holds the file for one setup: the kernel gives a name in the abstract namespace to one process alone, and takes it back with it.
 * @throws SetupError while another has it.
 */
function oneSetupOf(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  const name = createHash("sha256").update(path).digest("hex").slice(0, 32);
  return new Promise((done, fail) => {
    server.on("error", (error) => {
      const isTaken = codeOf(error) === "EADDRINUSE";
      const taken = `another posline setup is at work on ${path}: let it end, or stop it`;
      fail(new SetupError(isTaken ? taken : `${path} can't be held for this setup: ${messageOf(error)}`));
    });
    server.listen(`\0posline-setup-${name}`, () => done(server));
    server.unref();
  });
}
