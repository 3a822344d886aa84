import { createHash } from "node:crypto";
import {
  accessSync,
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
import { draftOf } from "../config/draft.ts";
import { type Environment, type Loaded, loadConfig } from "../config/load.ts";
import { resolveDraft } from "../config/resolve.ts";
import { serviceEnvironment } from "../config/service-environment.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { editJson, type JsonEdit, withoutTextsOf } from "../core/json-edit.ts";
import { type FileReaders, replaceFile } from "../core/replace-file.ts";
import { quoted } from "../core/shell-text.ts";
import type { Host } from "../doctor/host.ts";
import { textDiff } from "./text-diff.ts";

/** The configuration's file as a setup reads and writes it, with the merchant's id that stands beside it; one setup has it at a time. */

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
  /** For a person to read; secrets are masked. */
  readonly diff: string;
  readonly write: () => void;
}

export class SetupFile {
  readonly path: string;
  /** True of the file that the installed service reads. */
  readonly isInstalled: boolean;
  readonly config: Config;
  readonly merchantId: KnownMerchantId | undefined;
  readonly #host: Host;
  /** What stands there; undefined if there is no file yet. */
  readonly #text: string | undefined;
  readonly #lock: Server;

  private constructor(
    { path, isInstalled, host }: { readonly path: string; readonly isInstalled: boolean; readonly host: Host },
    text: string | undefined,
    loaded: Loaded | undefined,
    lock: Server,
  ) {
    this.path = path;
    this.isInstalled = isInstalled;
    this.config = loaded?.config ?? emptyConfig();
    this.merchantId = loaded === undefined ? undefined : merchantIdIn(loaded);
    this.#host = host;
    this.#text = text;
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
      accessSync(dirname(real), constants.W_OK | constants.X_OK);
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
      const text = textAt(path);
      const loaded = text === undefined ? undefined : await loadText(path, text, host, isInstalled);
      return new SetupFile({ path, isInstalled, host }, text, loaded, lock);
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
    return loadText(this.path, readFileSync(this.path, "utf8"), this.#host, this.isInstalled);
  }

  /** @returns what changes; undefined if nothing does. @throws ConfigError if the file couldn't be used then. */
  async change(edits: readonly JsonEdit[], merchantId: string | undefined): Promise<SetupChange | undefined> {
    const before = this.#text ?? "{}\n";
    const edited = editJson(before, this.#text === undefined ? [...edits, ...this.#firstEdits] : edits);
    const { config } = await loadText(this.path, edited, this.#host, this.isInstalled);
    const secret = merchantId === undefined ? undefined : this.#secretFile(config);
    const text = secret?.edit === undefined ? edited : editJson(edited, [secret.edit]);
    if (text === this.#text && secret === undefined) return undefined;
    const diff = textDiff(withoutTextsOf(secretKeys, this.#text ?? ""), withoutTextsOf(secretKeys, text));
    return {
      diff: secret === undefined ? diff : `${diff}+ ${secret.path} (the merchant's id)\n`,
      write: () => {
        // Who agreed has seen the change of that text, and of no other.
        if (textAt(this.path) !== this.#text) {
          throw new SetupError(`${this.path} was changed by somebody else meanwhile: nothing was written: set it up again`);
        }
        if (text !== this.#text) this.#replace(this.path, text, this.#readers);
        if (secret !== undefined) this.#writeSecret(secret.path, `${merchantId}\n`);
      },
    };
  }

  /** What a file has beside its terminal, where there was none. */
  get #firstEdits(): readonly JsonEdit[] {
    const journal: JsonEdit = { path: ["journal"], value: { folder: this.#host.state, onFailure: "refuse" } };
    return [...(this.isInstalled ? [journal] : []), { path: ["admin"], value: {} }];
  }

  /** Where the merchant's id goes, and how the file names that; not at all where systemd passes it on. */
  #secretFile({ services }: Config): { readonly path: string; readonly edit: JsonEdit | undefined } {
    const own = this.merchantId?.origin;
    if (own === this.path) throw new SetupError(`correct the merchantId in ${this.path} by hand: fiscal refuses its sign`);
    if (own !== undefined) return { path: own, edit: undefined };
    const [name = "fiscal"] = Object.entries(services).find(([, { contract }]) => contract === "fiscal") ?? [];
    const path = join(dirname(this.path), "credentials", "merchant-id");
    if (this.isInstalled && name === "fiscal") return { path, edit: undefined };
    return { path, edit: { path: ["services", name, "merchantIdFile"], value: "credentials/merchant-id" } };
  }

  #replace(path: string, text: string, readers: FileReaders): void {
    try {
      replaceFile(path, text, readers);
    } catch (error) {
      throw new SetupError(`${path} can't be written: ${messageOf(error)}`);
    }
  }

  #writeSecret(path: string, text: string): void {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      replaceFile(path, text, statsAt(path) ?? ownReaders(0o640));
    } catch (error) {
      throw new SetupError(`${path} can't be written, and ${this.path} is: ${messageOf(error)}`);
    }
  }

  /** Whoever may read the file now may read it then; a new one belongs to the service's group. */
  get #readers(): FileReaders {
    const there = statsAt(this.path);
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

/** Loads what the file will be, as the process reads it that has the file. */
function loadText(path: string, text: string, host: Host, isInstalled: boolean): Promise<Loaded> {
  const env: Environment = isInstalled ? serviceEnvironment(host.env, host) : host.env;
  return loadConfig({ text, env, flags: { config: path }, groups: join(host.etc, "group") });
}

const emptyConfig = (): Config => resolveDraft(draftOf({}, ""), { file: undefined, marginMs: 0, stateFolders: undefined }, []);

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
