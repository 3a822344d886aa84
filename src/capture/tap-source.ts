import { get, type IncomingMessage } from "node:http";
import { get as getSecurely } from "node:https";
import { connect } from "node:net";
import type { Readable } from "node:stream";
import { type AdminFlags, adminTarget } from "../config/admin-target.ts";
import { connectionFailure } from "../core/connection-error.ts";
import { codeOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";

/** Where `posline tap` has its frames from: the admin port of a running posline, or the socket for unmasked ones. */

/** Where posline-tap.socket listens. */
export const unmaskSocket = "/run/posline/tap.sock";

/** Milliseconds in which posline must answer: it is on this box, or one hop away. */
const connectMsMax = 10_000;

/** Milliseconds of silence after which the system asks whether the other end is still there: a line may be silent for hours. */
const keepAliveAfterMs = 30_000;

/** Posline or its frames can't be reached. */
export class UnavailableError extends Error {
  readonly exitCode: number = exitCodes.unavailable;
}

export interface TapSource {
  /** Where the frames come from, for people. */
  readonly from: string;
  /** Lines of JSON, a frame each. */
  readonly stream: Readable;
}

/**
 * Opens the masked tap of the admin port.
 * @param line The only line that is wanted, if there is one.
 * @throws UnavailableError; UsageError or ConfigError where the port can't be found.
 */
export async function maskedFrames(flags: AdminFlags, line: string | undefined): Promise<TapSource> {
  const target = await adminTarget(flags, "tap");
  const url = new URL("tap", target.url);
  const from = url.href;
  if (line !== undefined) url.searchParams.set("line", line);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // Not fetch, which gives up an answer that is silent for five minutes.
    const request = (url.protocol === "https:" ? getSecurely : get)(url, { headers: { ...target.headers } }, resolve);
    request.setTimeout(connectMsMax, () => request.destroy(new Error(`no answer within ${connectMsMax / 1_000} s`)));
    request.on("error", (error) => {
      const fix = 'is posline running, with "admin": {} in its configuration?';
      const code = codeOf(error);
      const why = connectionFailure(error) ?? error.message;
      reject(new UnavailableError(`Cannot tap ${from}: ${why}${code === undefined ? "" : ` (${code})`}: ${fix}`));
    });
  });
  response.socket.setTimeout(0);
  response.socket.setKeepAlive(true, keepAliveAfterMs);
  const isTap = /^application\/x-ndjson\b/.test(response.headers["content-type"] ?? "");
  if (response.statusCode === 200 && isTap) return { from, stream: response };
  response.destroy();
  const state =
    response.statusCode === 200 ? "what answers there is not posline" : `the answer was HTTP ${response.statusCode}`;
  const fix =
    response.statusCode !== 401
      ? ""
      : target.headers.Authorization === undefined
        ? ": name its token's file with --token-file"
        : ": the token is wrong";
  throw new UnavailableError(`Cannot tap ${from}: ${state}${fix}`);
}

/**
 * Opens the tap that sees everything.
 * @throws UnavailableError where systemd has no such socket, or this user isn't in its group.
 */
export async function unmaskedFrames(socket = unmaskSocket): Promise<TapSource> {
  const stream = connect(socket);
  await new Promise<void>((resolve, reject) => {
    stream.once("connect", resolve);
    stream.once("error", (error) => {
      const code = codeOf(error) ?? error.message;
      const fix =
        code === "EACCES"
          ? "only root and members of the group posline may: use sudo"
          : "systemd opens it: sudo systemctl stop posline && sudo systemctl start posline-tap.socket posline";
      reject(new UnavailableError(`Cannot tap ${socket}: ${code}: ${fix}`));
    });
  });
  return { from: socket, stream };
}
