import { accessSync, constants, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Where the installed service's user, secrets and state are; the tests have files of their own. */
export interface ServicePlaces {
  readonly etc?: string;
  readonly state?: string;
}

/**
 * The environment of the installed service: systemd tells it by variables where its secrets and its state folder are, and a shell
 * doesn't know them. For commands that look at the file that the service itself reads: what it has must not be told as missing.
 * @returns `env` as it is where the service isn't installed, or where it names another file: what the service has isn't that one's.
 */
export function serviceEnvironment(
  env: NodeJS.ProcessEnv,
  { etc = "/etc", state = "/var/lib/posline" }: ServicePlaces = {},
): NodeJS.ProcessEnv {
  const named = env["POSLINE_CONFIG"];
  if (named !== undefined && resolve(named) !== join(etc, "posline", "posline.json")) return env;
  if (!listsService(join(etc, "passwd"))) return env;
  const credentials = join(etc, "posline", "credentials");
  return { STATE_DIRECTORY: state, ...(mayRead(credentials) ? { CREDENTIALS_DIRECTORY: credentials } : {}), ...env };
}

/** Whether the installed service's user or group is among the box's, in `/etc/passwd` or `/etc/group`; not where the file can't be read. */
export function listsService(file: string): boolean {
  try {
    return /^posline:/m.test(readFileSync(file, "utf8"));
  } catch {
    return false;
  }
}

function mayRead(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
