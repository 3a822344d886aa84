/** Crockford's base32: no I, L, O, U, so that a key can be read out over a telephone. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Characters of milliseconds since 1970 (48 bits), and of chance (80 bits), as a ULID has them. */
const timeCharacters = 10;
const randomCharacters = 16;

/**
 * A new key for an operation: pay_id or documentExtID. 26 characters of `0-9A-Z`, which every terminal's field takes, in order of
 * time. The chance in it keeps two tills, or one whose clock jumped back, from making the same key; made once for each operation
 * and never for a retry.
 */
export function newKey(): string {
  let time = Date.now();
  let key = "";
  for (let i = 0; i < timeCharacters; i++) {
    key = `${digits[time % 32]}${key}`;
    time = Math.floor(time / 32);
  }
  for (const byte of crypto.getRandomValues(new Uint8Array(randomCharacters))) key += digits[byte % 32];
  return key;
}
