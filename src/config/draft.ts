import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { isObject } from "../core/json-object.ts";
import type { FileShape, LineShape, ServiceShape } from "./schema.ts";

/**
 * The settings while the layers are laid over each other: what was set so far, and where it was set. What isn't set is absent, and gets
 * its default only at the end.
 */

export type LineDraft = Partial<LineShape>;

export type ServiceDraft = ServiceShape;

export interface Draft {
  readonly lines: Record<string, LineDraft>;
  readonly services: Record<ServiceName, ServiceDraft>;
  admin: NonNullable<FileShape["admin"]> | undefined;
  journal: FileShape["journal"];
  log: NonNullable<FileShape["log"]>;
  /** By path, `lines.till.baudRate`, for everything that was set. */
  readonly origins: Map<string, string>;
}

/** The contract that a service speaks: the one that it names, or its own name. */
export function draftContract(name: ServiceName, { contract }: ServiceDraft): ContractName {
  // A name of its own without a contract is among the problems, and the draft goes no further.
  return contract ?? contractNames.find((each) => each === name) ?? "bank";
}

/** The services in the order in which they are shown: those of the contracts' names, then the file's own. */
export function draftServices({ services }: Draft): readonly (readonly [ServiceName, ServiceDraft])[] {
  const all = Object.entries(services);
  const ofContracts = contractNames.flatMap((contract) => all.filter(([name]) => name === contract));
  return [...ofContracts, ...all.filter((each) => !ofContracts.includes(each))];
}

/** The draft of a file, checked or left out where it was wrong. @param originOf Where the setting of this path was set. */
export function draftOf(file: Partial<FileShape>, originOf: (path: string) => string): Draft {
  const draft: Draft = {
    lines: { ...file.lines },
    services: { ...file.services },
    admin: file.admin,
    journal: file.journal,
    log: { ...file.log },
    origins: new Map(),
  };
  const { lines, services, admin = {}, journal, log } = draft;
  if (journal === false) draft.origins.set("journal", originOf("journal"));
  note(draft.origins, "", { lines, services, admin, journal: journal || {}, log }, originOf);
  return draft;
}

/** A line with the three services on it: what `--line` and `--emulated` mean without a file. */
export function draftOfOneLine(name: string): Draft {
  return {
    lines: { [name]: {} },
    services: { fiscal: { line: name }, bank: { line: name }, qr: { line: name } },
    admin: undefined,
    journal: undefined,
    log: {},
    origins: new Map(),
  };
}

/** Notes where each setting was set: what is no object, at any depth. */
function note(origins: Draft["origins"], path: string, settings: object, originOf: (path: string) => string): void {
  for (const [key, value] of Object.entries(settings)) {
    const full = path === "" ? key : `${path}.${key}`;
    if (isObject(value)) note(origins, full, value, originOf);
    else origins.set(full, originOf(full));
  }
}

/** Keeps no journal, whatever lower layers said. */
export function leaveJournal(draft: Draft, origin: string): void {
  for (const path of [...draft.origins.keys()]) if (path.startsWith("journal.")) draft.origins.delete(path);
  draft.journal = false;
  draft.origins.set("journal", origin);
}

/** Keeps the journal in this folder, in place of another or none. */
export function keepJournal(draft: Draft, folder: string, origin: string): void {
  draft.journal = { ...(draft.journal || undefined), folder };
  draft.origins.set("journal.folder", origin);
}

/** Sets one key of a line, over what lower layers said. */
export function putLine<K extends keyof LineDraft>(
  draft: Draft,
  name: string,
  key: K,
  value: LineDraft[K],
  origin: string,
): void {
  draft.lines[name] = { ...draft.lines[name], [key]: value };
  draft.origins.set(`lines.${name}.${key}`, origin);
}

/** What a secret's two keys exclude: the value of a higher layer takes the place of a lower layer's file, and the reverse. */
const rivals: Partial<Record<keyof ServiceDraft, keyof ServiceDraft>> = {
  merchantId: "merchantIdFile",
  merchantIdFile: "merchantId",
  apiKey: "apiKeyFile",
  apiKeyFile: "apiKey",
};

/** Sets one key of a service, over what lower layers said. */
export function putService<K extends keyof ServiceDraft>(
  draft: Draft,
  name: ServiceName,
  key: K,
  value: ServiceDraft[K],
  origin: string,
): void {
  const service: ServiceDraft = { ...draft.services[name], [key]: value };
  const rival = rivals[key];
  if (rival !== undefined) {
    delete service[rival];
    draft.origins.delete(`services.${name}.${rival}`);
  }
  draft.services[name] = service;
  draft.origins.set(`services.${name}.${key}`, origin);
}
