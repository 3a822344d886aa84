/**
 * The target in a request's first line. Clients write a path; those that take posline for a proxy, and a few HTTP libraries, write the
 * whole URL, which every server must accept (RFC 9112, 3.2.2).
 */
export interface RequestTarget {
  /** The host and port of a whole URL, not checked yet; undefined if there is only a path. */
  readonly authority: string | undefined;
  /** The path without its query. */
  readonly path: string;
  /** The query without its question mark. */
  readonly query: string;
}

export function requestTarget(url = "/"): RequestTarget {
  const [, authority, local = url] = url.startsWith("/") ? [] : (/^https?:\/\/([^/?]*)(.*)$/is.exec(url) ?? []);
  const at = local.indexOf("?");
  const path = at === -1 ? local : local.slice(0, at);
  return { authority, path: path === "" ? "/" : path, query: at === -1 ? "" : local.slice(at + 1) };
}
