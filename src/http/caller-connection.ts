import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/**
 * A connection to an upstream, on which nothing was written yet. Made apart from the request, so that whatever fails here is
 * known to have failed before a byte of it went out: by TLS too, where Node would write while the handshake runs.
 */

/** The upstream can't be reached, and nothing was sent. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/**
 * Connects to an upstream.
 * @param timeoutMs For the name, the connection and, with `https:`, the handshake and the check of the certificate.
 * @throws Unreachable
 */
export function connectTo(upstream: URL, timeoutMs: number, stop: AbortSignal): Promise<Socket> {
  const socket = upstream.protocol === "https:" ? startTls(upstream) : connect(addressOf(upstream, 80));
  // Its errors have a listener at every moment: before, they end the waiting; afterwards they are the request's affair.
  socket.on("error", () => {});
  return new Promise((resolve, reject) => {
    const settle = (failure: string | undefined) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
      socket.off("error", failed);
      socket.off("close", closed);
      if (failure === undefined) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new Unreachable(failure));
    };
    const timer = setTimeout(() => settle(`it took longer than ${Math.round(timeoutMs)} ms`), timeoutMs);
    const stopped = () => settle("posline is shutting down");
    const failed = (error: Error) => settle(reasonOf(error));
    const closed = () => settle("it ended the connection");
    socket.once("error", failed);
    socket.once("close", closed);
    socket.once(upstream.protocol === "https:" ? "secureConnect" : "connect", () => settle(undefined));
    stop.addEventListener("abort", stopped);
    if (stop.aborted) stopped();
  });
}

function addressOf({ hostname, port }: URL, usualPort: number): { host: string; port: number; noDelay: true } {
  // An IPv6 address stands in brackets in a URL, and nowhere else.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: port === "" ? usualPort : Number(port), noDelay: true };
}

/** The certificate is checked against the authorities that Node knows. */
function startTls(upstream: URL): Socket {
  const address = addressOf(upstream, 443);
  // An address is no name for a server to choose its certificate by.
  const servername = isIP(address.host) === 0 ? address.host : "";
  return connectTls({ ...address, servername, ALPNProtocols: ["http/1.1"] });
}

/** In words where the system has only a code. */
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is the service running?",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "its name can't be looked up: is the network up?",
  EHOSTUNREACH: "the host doesn't answer: is it on?",
  ENETUNREACH: "there is no network that leads there",
  ECONNRESET: "it ended the connection",
  ETIMEDOUT: "the host doesn't answer: is it on?",
  ERR_SSL_WRONG_VERSION_NUMBER: "it speaks no TLS: is it http: in place of https:?",
};

function reasonOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  const known = reasons[code];
  if (known !== undefined) return known;
  // OpenSSL's own messages are its source lines; its code says as much.
  return code.startsWith("ERR_SSL_") ? code : `${error.message}${code === "" ? "" : `, ${code}`}`;
}
