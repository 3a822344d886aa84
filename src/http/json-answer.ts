import { printableJson } from "../core/shell-text.ts";
import type { AdminAnswer } from "./admin-listener.ts";

/** An answer of the admin port in JSON, a line that a terminal can show as it is. */
export const jsonAnswer = (status: number, body: object): AdminAnswer => ({
  status,
  text: `${printableJson(JSON.stringify(body))}\n`,
});
