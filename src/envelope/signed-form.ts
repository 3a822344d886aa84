/** The fiscal form as a client writes it: with Web Crypto, so in a page too. The bridge checks it by `sign.ts`. */

/** What is wrong with a merchant's id; one that only looks right would make each sign wrong. */
export function merchantIdProblem(id: unknown): string | undefined {
  if (typeof id !== "string") return "is not text: write it in quotes";
  if (id === "") return "is empty";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as in the bridge's configuration.
  return /[\u0000-\u001f\u007f]/.test(id) ? "has a line break or another control character: leave it out" : undefined;
}

const utf8 = new TextEncoder();

/**
 * Writes the form of a business payload. The sign is Base64 of the lowercase hexadecimal SHA-1 of `data` followed by the
 * merchant's id (fiscal.md, Authentication); it covers `data` before its escaping, as a reader of forms sees it.
 */
export async function signedForm(json: string, merchantId: string): Promise<string> {
  // Browsers keep it from pages that came without TLS, and the types don't know that
  if (crypto.subtle === undefined) throw new Error("this page is not secure: serve it over https");
  const data = base64(utf8.encode(json));
  const digest = await crypto.subtle.digest("SHA-1", utf8.encode(data + merchantId));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(base64(utf8.encode(hex)))}`;
}

/** In slices: a function takes no hundred thousand arguments. */
function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let from = 0; from < bytes.length; from += 8192) binary += String.fromCharCode(...bytes.subarray(from, from + 8192));
  return btoa(binary);
}
