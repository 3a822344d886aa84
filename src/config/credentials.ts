import { join } from "node:path";
import type { ContractName } from "../core/call.ts";
import { codeOf } from "../core/error-code.ts";
import { type Draft, putService } from "./draft.ts";
import { secretBytesMax } from "./limits.ts";
import { readAtMost } from "./secrets.ts";

/** systemd's names of the secrets (`LoadCredential=merchant-id:...`), each with the setting that it stands for. */
const credentials = [
  { name: "merchant-id", service: "fiscal", key: "merchantId" },
  { name: "api-key", service: "bank", key: "apiKey" },
] as const satisfies readonly { readonly name: string; readonly service: ContractName; readonly key: string }[];

/**
 * Takes the secrets that systemd passes, where nothing else was set: root's own files, which the service's user can't read. An
 * empty file counts as absent: the unit provides one for boxes that keep no such secret.
 */
export function applyCredentials(draft: Draft, env: NodeJS.ProcessEnv): void {
  const folder = env["CREDENTIALS_DIRECTORY"];
  if (folder === undefined || folder === "") return;
  for (const { name, service, key } of credentials) {
    const settings = draft.services[service];
    if (settings === undefined || settings[key] !== undefined || settings[`${key}File`] !== undefined) continue;
    const file = join(folder, name);
    if (isThere(file)) putService(draft, service, `${key}File`, file, `credential ${name}`);
  }
}

/** Whether the file holds anything. An unreadable one is reported later, at the real read. */
function isThere(file: string): boolean {
  try {
    return readAtMost(file, secretBytesMax).toString("utf8").trim() !== "";
  } catch (error) {
    const code = codeOf(error);
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}
