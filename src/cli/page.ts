import { readFileSync } from "node:fs";
import { UnavailableError } from "../capture/tap-source.ts";
import { adminTarget } from "../config/admin-target.ts";
import { defineCommand } from "../core/command.ts";
import { connectionFailure } from "../core/connection-error.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import { parseObject } from "../envelope/json.ts";
import { PageKey } from "../http/page-key.ts";
import { sourceFlags } from "./config.ts";

/** `posline page`: the address of the status page, with the code that lets it sell for a test and set up. */

/** Milliseconds for an answer of the admin port, which is on this box. */
const answerMs = 5_000;

/**
 * Reads the key of a running posline. Nothing of the file is sent anywhere, no matter who names it.
 * @param keyFile Where the admin port says that it is (`PortFacts`).
 * @param action What can't be done without it, as in "settle".
 * @returns undefined if a change needs none.
 * @throws UnavailableError if it can't be read.
 */
export function pageKeyIn(keyFile: unknown, action: string): PageKey | undefined {
  if (keyFile === undefined) return undefined;
  if (typeof keyFile !== "string") {
    throw new UnavailableError(`Cannot ${action}: posline could not write its key, its log says why: set admin.tokenFile`);
  }
  try {
    return new PageKey(readFileSync(keyFile, "utf8"));
  } catch (error) {
    const isDenied = codeOf(error) === "EACCES";
    const cure = isDenied ? "use sudo, or be in the group posline" : "run this command on the box, where posline runs";
    throw new UnavailableError(`Cannot ${action}: ${keyFile} can't be read (${codeOf(error) ?? messageOf(error)}): ${cure}`);
  }
}

async function addressOf(href: string): Promise<string> {
  const action = "print the page's address";
  const response = await fetch(`${href}page/paths.json`, { signal: AbortSignal.timeout(answerMs) }).catch((error: unknown) => {
    const why = (error instanceof Error ? connectionFailure(error.cause) : undefined) ?? messageOf(error);
    const cure = 'is posline running, with "admin": {} in its configuration?';
    throw new UnavailableError(`Cannot ${action}: no posline answers at ${href} (${why}): ${cure}`);
  });
  const facts = parseObject(await response.text());
  if (facts?.["paths"] === undefined) throw new UnavailableError(`Cannot ${action}: what answers at ${href} is not posline`);
  const key = pageKeyIn(facts["keyFile"], action);
  return key === undefined ? href : `${href}#code=${key.code()}`;
}

export const pageCommand = defineCommand({
  name: "page",
  describe: "Print the address of the status page with a code, by which it may sell for a test and set up",
  flags: {
    config: sourceFlags.config,
    url: { type: "string", example: "http://localhost:8880", describe: "The admin port (default: the configuration's)" },
  },
  epilogue:
    "The code is good once, for 10 minutes, and the page it opens for an hour, until posline restarts. Root may make one, and members of " +
    "the group posline. Exit codes: 0, 64 wrong usage, 69 posline or its key can't be reached.",
  run: async (args) => {
    process.stdout.write(`${await addressOf((await adminTarget(args, "print the page's address")).url)}\n`);
    return exitCodes.ok;
  },
});
