import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
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
export function contractOf(name: ServiceName, { contract }: ServiceDraft): ContractName {
  // A name of its own without a contract is among the problems, and the draft goes no further.
  return contract ?? contractNames.find((each) => each === name) ?? "bank";
}

/** The services in the order in which they are shown: those of the contracts' names, then the file's own. */
export function servicesOf({ services }: Draft): readonly (readonly [ServiceName, ServiceDraft])[] {
  const all = Object.entries(services);
  const ofContracts = contractNames.flatMap((contract) => all.filter(([name]) => name === contract));
  return [...ofContracts, ...all.filter((each) => !ofContracts.includes(each))];
}

/** The draft of a file, checked or left out where it was wrong. */
export function draftOf(file: Partial<FileShape>, origin: string): Draft {
  const draft: Draft = {
    lines: { ...file.lines },
    services: { ...file.services },
    admin: file.admin,
    journal: file.journal,
    log: { ...file.log },
    origins: new Map(),
  };
  for (const [name, line] of Object.entries(draft.lines)) note(draft, `lines.${name}`, line, origin);
  for (const [name, service] of Object.entries(draft.services)) note(draft, `services.${name}`, service, origin);
  if (draft.admin !== undefined) note(draft, "admin", draft.admin, origin);
  if (draft.journal === false) draft.origins.set("journal", origin);
  else if (draft.journal !== undefined) note(draft, "journal", draft.journal, origin);
  note(draft, "log", draft.log, origin);
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

function note(draft: Draft, path: string, settings: object, origin: string): void {
  for (const key of Object.keys(settings)) draft.origins.set(`${path}.${key}`, origin);
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
