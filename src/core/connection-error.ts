import { codeOf } from "./error-code.ts";

const closed = "the connection was closed before the answer was complete";
const isSilent = "the host doesn't answer: is it on?";

/** Reasons in plain words, for errors of which the system, Node's HTTP or its fetch have only a code, or words of their own. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "no host has this name",
  EAI_AGAIN: "its name can't be looked up: is the network up?",
  EHOSTUNREACH: isSilent,
  ETIMEDOUT: isSilent,
  UND_ERR_CONNECT_TIMEOUT: isSilent,
  ENETUNREACH: "no network leads there: is the network up?",
  ECONNRESET: closed,
  EPIPE: closed,
  UND_ERR_SOCKET: closed,
  UND_ERR_HEADERS_TIMEOUT: "no answer came in time",
  UND_ERR_BODY_TIMEOUT: "the rest of the answer didn't come in time",
  HPE_HEADER_OVERFLOW: "the headers of the answer are too large",
  UND_ERR_HEADERS_OVERFLOW: "the headers of the answer are too large",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS: should the address begin with http:?",
};

/** Why a connection failed, for people; undefined if its error's own message says it best. */
export function connectionFailure(error: unknown): string | undefined {
  // The error of Node 24's fetch has no code there.
  const code = error instanceof Error && error.name === "HTTPParserError" ? "HPE_" : codeOf(error);
  if (code === undefined) return undefined;
  return reasons[code] ?? (code.startsWith("HPE_") ? "what answers there does not speak HTTP" : undefined);
}
