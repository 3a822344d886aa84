import { readFileSync } from "node:fs";
import { arch, cpus, release, totalmem, uptime } from "node:os";
import { adminOfBox } from "../config/admin-target.ts";
import type { AdminConfig, Config } from "../config/config.ts";
import { secretsIn } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { messageOf } from "../core/error-code.ts";
import { version } from "../core/version.ts";
import { listDevices } from "../device/devices.ts";
import type { DoctorReport } from "./doctor.ts";
import type { ArchivedFile } from "./support-archive.ts";

/**
 * What `posline support` packs: everything that the people who are asked for help need to see, and nothing that they must not. Each part
 * is there or is named as missing, with the reason; what the running posline says is asked of its admin port.
 */

/** Milliseconds that the running posline may take for an answer. */
const answerMs = 5_000;

/** Bytes of one answer: a recording of four lines has two MiB. */
const answerBytesMax = 16 * 1024 * 1024;

export const recordingFile = "recording.jsonl";

export interface SupportSources {
  /** undefined when it can't be used. */
  readonly config: Config | undefined;
  /** The configuration without its secrets, or what is wrong with it. */
  readonly shownConfig: () => Promise<string>;
  readonly examine: () => Promise<DoctorReport>;
  /** The last lines of the log. */
  readonly logLines: () => Promise<string>;
}

/** A part that is to be there, and how it is had. */
interface Part {
  readonly name: string;
  readonly what: string;
  readonly get: () => Promise<string>;
}

export interface Support {
  readonly files: readonly ArchivedFile[];
  readonly manifest: Manifest;
}

export interface Manifest {
  readonly posline: string;
  readonly time: string;
  readonly files: readonly { readonly name: string; readonly what: string; readonly bytes: number }[];
  /** Parts that could not be had. */
  readonly missing: readonly { readonly name: string; readonly what: string; readonly why: string }[];
  /** What is never in it. */
  readonly leftOut: readonly string[];
}

const leftOut = [
  "requests' bodies, and the bytes of requests on the line",
  "card numbers, signs, amounts and texts in the terminal's replies: masked, with their lengths kept",
  "merchantId, apiKey and the admin token: **** in the configuration",
  "the journal of money (the status names operations with an unknown outcome, by key and amount; the log has keys)",
] as const;

/** Gathers all parts. A part that can't be had is missing, and nothing fails for it. */
export async function gatherSupport(sources: SupportSources): Promise<Support> {
  const hide = hiding(sources.config);
  const files: (ArchivedFile & { readonly what: string })[] = [];
  const missing: { name: string; what: string; why: string }[] = [];
  for (const { name, what, get } of partsOf(sources)) {
    try {
      const text = await get();
      // The recording is masked already, and a secret that is a number would stand among its times.
      files.push({ name, what, text: name === recordingFile ? text : hide(text) });
    } catch (error) {
      missing.push({ name, what, why: hide(messageOf(error)) });
    }
  }
  const manifest: Manifest = {
    posline: version,
    time: new Date().toISOString(),
    files: files.map(({ name, what, text }) => ({ name, what, bytes: Buffer.byteLength(text) })),
    missing,
    leftOut,
  };
  return { files: [{ name: "manifest.json", text: json(manifest) }, ...files], manifest };
}

function partsOf({ config, shownConfig, examine, logLines }: SupportSources): readonly Part[] {
  const asked = (name: string, path: string, what: string): Part => ({
    ...{ name, what: `${what} (${path} of the running posline)` },
    get: () => askRunning(config?.admin, path),
  });
  return [
    asked(recordingFile, "/recording", "what the lines' engines were given last, for posline replay"),
    asked("status.json", "/status", "lines, services, counters"),
    asked("readyz.json", "/readyz", "whether it is ready, and why not"),
    asked("metrics.txt", "/metrics", "counters and times for Prometheus"),
    { name: "configuration.json", what: "every setting and where it was set, without secrets", get: shownConfig },
    { name: "doctor.json", what: "the findings of posline doctor", get: async () => json(withoutFrames(await examine())) },
    { name: "versions.json", what: "posline, Node, kernel, system, serial adapters", get: async () => json(await versions()) },
    { name: "log.txt", what: "the last lines of the log", get: logLines },
  ];
}

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

/** No secret of the configuration, and no card number, wherever it may have come from. */
function hiding(config: Config | undefined): (text: string) => string {
  const secrets = secretsIn(config);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, "****"), maskCardNumbers(text));
}

/** Asks the running posline. A status of 503 is an answer, too. */
async function askRunning(admin: AdminConfig | undefined, path: string): Promise<string> {
  const { url: base, headers } = adminOfBox(admin ?? adminDefaults);
  const url = `${base}${path.slice(1)}`;
  let response: Response;
  try {
    response = await fetch(url, { headers, signal: AbortSignal.timeout(answerMs), redirect: "error" });
  } catch {
    throw new Error(`nothing answers at ${url}: does posline run, with an admin port?`);
  }
  if (response.status === 404) throw new Error(`the posline at ${url} has no ${path}`);
  if (response.status === 401) throw new Error(`the posline at ${url} wants another token than admin.tokenFile has`);
  return boundedText(response);
}

async function boundedText({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > answerBytesMax) throw new Error(`the answer is larger than ${answerBytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** The bytes of the doctor's own probes are masked, and say nothing that the finding doesn't. */
function withoutFrames(report: DoctorReport): object {
  return { ...report, findings: report.findings.map(({ frames, ...finding }) => finding) };
}

async function versions(): Promise<object> {
  return {
    posline: version,
    node: process.version,
    kernel: release(),
    architecture: arch(),
    system: systemName(),
    processors: cpus().length,
    memoryMiB: Math.round(totalmem() / 1024 / 1024),
    upS: Math.round(uptime()),
    devices: (await listDevices()).map(({ path, driver, usb, byId }) => ({ path, driver, usb, byId })),
  };
}

/** The distribution's name for itself. */
function systemName(): string | undefined {
  try {
    return /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
