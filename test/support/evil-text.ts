/** Words of others that would command a terminal, forge a line or hide in one. */

/** Escape, C1 control sequence introducer, DEL, direction marks, separators, zero-width and tag characters, and one that is fine. */
export const evil = "A\u001b[2J\u009b31m\u0085\u007f\u200e\u202egnp\u2066\u061c\u2028\u200b\ufeff\u{e0041}é";

/** Any character that must not reach a terminal, but for the line end. */
export const obeyed = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u;
