import { reachableAddress } from "../core/address.ts";
import { UsageError } from "../core/exit.ts";
import { inQuotes } from "../core/shell-text.ts";
import { urlHost } from "../core/url-host.ts";
import { type AdminConfig, type Config, ConfigError } from "./config.ts";
import { adminDefaults } from "./limits.ts";
import { loadConfig } from "./load.ts";
import { adminToken } from "./schema.ts";
import { readSecret } from "./secrets.ts";

/** Where to look for a running posline, and with which token. */
export interface AdminFlags {
  readonly url?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly config?: string | undefined;
}

/** How to ask a running posline. */
export interface AdminTarget {
  /** A path is that of a reverse proxy; it ends with a slash. */
  readonly url: string;
  /** What each request must carry: nothing if no token is known. */
  readonly headers: { readonly Authorization?: string };
}

/** An admin port of this box. */
export function adminOfBox({ host, port, token }: AdminConfig): AdminTarget {
  return { url: `http://${urlHost(reachableAddress(host))}:${port}/`, headers: headersOf(token) };
}

const headersOf = (token: string | undefined) => (token === undefined ? {} : { Authorization: `Bearer ${token}` });

/**
 * Finds the admin port: where the URL says, or the configuration, or at the usual address.
 * @param action What can't be done where the URL is wrong, as in "show the log".
 * @throws UsageError, or ConfigError for a token's file or a named configuration that can't be read.
 */
export async function adminTarget({ url, tokenFile, config: file }: AdminFlags, action: string): Promise<AdminTarget> {
  const given = tokenFile === undefined ? undefined : tokenIn(tokenFile);
  if (url !== undefined) return { url: baseOf(url, action), headers: headersOf(given) };
  const admin: AdminConfig = (await adminOf(file)) ?? adminDefaults;
  return adminOfBox(given === undefined ? admin : { ...admin, token: given });
}

function tokenIn(file: string): string {
  const problems: string[] = [];
  const token = readSecret(adminToken, file, "tokenFile", problems);
  if (token === undefined) throw new ConfigError(problems);
  return token;
}

function baseOf(text: string, action: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "") {
    throw new UsageError(
      `Cannot ${action}: --url ${inQuotes(text)} is not the URL of an admin port: write it as http://localhost:8880, without user, ` +
        "password and ?",
    );
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url.href;
}

/** The configuration's admin port. The package's file can be read by few, and the usual address may do without it. */
async function adminOf(file: string | undefined): Promise<Config["admin"]> {
  try {
    return (await loadConfig({ env: process.env, flags: file === undefined ? {} : { config: file } })).config.admin;
  } catch (error) {
    if (file === undefined && error instanceof ConfigError) return undefined;
    throw error;
  }
}
