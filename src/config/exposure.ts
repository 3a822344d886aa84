import { realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { isLoopback } from "../core/address.ts";
import { quoted } from "../core/shell-text.ts";
import { type Config, type ServiceConfig, secretKeys } from "./config.ts";
import { listsService } from "./service-environment.ts";

/**
 * What the configuration exposes to others: files with secrets that every user of the box can read, and services that can be
 * reached from the network. All of it works, so it is a warning, with the command that fixes it.
 */

/** The group of the service's user, which reads the files that root owns. */
const serviceGroup = "posline";

/** Files with secrets that every user can read: the configuration's own, and those that hold one secret each. */
export function readableSecrets(
  { services, admin }: Config,
  origins: ReadonlyMap<string, string>,
  groups = "/etc/group",
): string[] {
  const settingsOf = new Map<string, string[]>();
  const all = Object.entries(services).map(([name, service]) => [`services.${name}`, service] as const);
  for (const [path, settings] of [...all, ["admin", admin ?? {}] as const]) {
    for (const [key, value] of Object.entries(settings)) {
      if (!secretKeys.has(key) || typeof value !== "string") continue;
      const setting = `${path}.${key}`;
      const origin = origins.get(setting) ?? "";
      const from = origin.startsWith("file ") ? origin.slice("file ".length) : undefined;
      if (from === undefined) continue;
      const named = `${key}File` in settings ? `${setting}File` : setting;
      settingsOf.set(from, [...(settingsOf.get(from) ?? []), named]);
    }
  }
  return [...settingsOf].flatMap(([path, settings]) => {
    const facts = openToAll(path);
    if (facts === undefined) return [];
    return [`${settings.join(", ")}: every user of this box can read ${path}: ${closing(path, facts, groups)}`];
  });
}

/** The facts of a file that every user can read; undefined for any other. */
function openToAll(file: string): Stats | undefined {
  try {
    const path = realpathSync(file);
    const facts = statSync(path);
    if (!facts.isFile() || (facts.mode & 0o004) === 0) return undefined;
    // A folder that others may not pass keeps all that is in it.
    for (let folder = dirname(path); ; folder = dirname(folder)) {
      if ((statSync(folder).mode & 0o001) === 0) return undefined;
      if (folder === dirname(folder)) return facts;
    }
  } catch {
    // A pipe of the shell's, or gone since it was read.
    return undefined;
  }
}

/** The command that closes a file to others, and leaves it to the user that runs posline. */
function closing(file: string, { uid }: Stats, groups: string): string {
  const path = quoted(file);
  if (listsService(groups)) return `sudo chgrp ${serviceGroup} ${path} && sudo chmod 640 ${path}`;
  if (uid === process.geteuid?.()) return `chmod 600 ${path}`;
  return `sudo chgrp ${process.getegid?.()} ${path} && sudo chmod 640 ${path}`;
}

/** Why this user can't read the configuration's file, which the package gives to root and the service's group alone. */
export function deniedFile(file: string): string {
  const path = quoted(file);
  return (
    "permission denied: run this command with sudo; if the service itself reports this, run " +
    `sudo chgrp ${serviceGroup} ${path} && sudo chmod 640 ${path}`
  );
}

/** A service's port that the network reaches. */
export function exposedServices({ services }: Config): string[] {
  return Object.entries(services).flatMap(([name, { contract, host, port, apiKey }]) => {
    if (isLoopback(host)) return [];
    if (apiKey !== undefined) {
      const fix = `set it to 127.0.0.1, behind a proxy with TLS or ${tunnel(port)}`;
      return [
        `services.${name}.host: callers send the API key to ${host} unencrypted, so anyone on the network can read it: ${fix}`,
      ];
    }
    const fix = contract === "bank" ? "set apiKey" : "set it to 127.0.0.1, or use a firewall";
    return [`services.${name}.host: anyone on the network who can reach ${host} can use the terminal: ${fix}`];
  });
}

/** Warns of a socket of systemd's, which is open to the network whatever the service's own address is. */
export function exposedSocket(
  service: string,
  { host, port }: { readonly host: string; readonly port: number },
  { contract, apiKey }: Pick<ServiceConfig, "contract" | "apiKey">,
): string {
  const there = `services.${service}: posline.socket opens its port on ${host}`;
  const close = `listen on 127.0.0.1:${port} there (sudo systemctl edit posline.socket)`;
  if (apiKey !== undefined) {
    return `${there}, where callers send the API key unencrypted, so anyone on the network can read it: ${close}, behind a proxy with TLS`;
  }
  const key = contract === "bank" ? ", or set apiKey" : ", or use a firewall";
  return `${there}, so anyone on the network who can reach it can use the terminal: ${close}${key}`;
}

/** An admin port that the network reaches. */
export function exposedAdmin({ admin }: Config): string[] {
  if (admin === undefined || isLoopback(admin.host)) return [];
  const { host, port } = admin;
  return [
    `admin.host: the token is sent to ${host} unencrypted, so anyone on the network can read it: ` +
      `set it to 127.0.0.1, behind a proxy with TLS or ${tunnel(port)}`,
  ];
}

/** What an admin port that the network reaches needs, and how to have it. */
export const needsToken =
  "needs a token, since anyone who can reach it could read the status: put one into a file " +
  "(openssl rand -hex 24), and set admin.tokenFile to the file";

/** What brings a port of this box to another one, encrypted. */
const tunnel = (port: number) => `ssh -N -L ${port}:127.0.0.1:${port} USER@BOX`;
