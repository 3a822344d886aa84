import { zeroPadded } from "../answer.ts";
import type { RequestReader } from "../request-reader.ts";
import { fiscalCodes } from "./request.ts";

/** Times as the contract writes them (What the service does, rule 7). Both forms sort as texts. */

/** yyyy-MM-dd HH:mm:ss, local time. */
export function timestamp(time: Date): string {
  const date = [zeroPadded(time.getFullYear(), 4), zeroPadded(time.getMonth() + 1, 2), zeroPadded(time.getDate(), 2)];
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => zeroPadded(part, 2));
  return `${date.join("-")} ${clock.join(":")}`;
}

/** True of a moment of the calendar, written as `timestamp` does. */
function isTimestamp(text: string): boolean {
  const [, date = "", hour = ""] = /^(\d{4}-\d{2}-\d{2}) (\d{2}):[0-5]\d:[0-5]\d$/.exec(text) ?? [];
  return isDate(date) && Number(hour) < 24;
}

/** True of a day of the calendar, written yyyy-MM-dd. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = new Date(`${text}T00:00:00Z`);
  // A day that the month doesn't have would run over into the next, and so read back as another.
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text);
}

export function dateOf(timestampText: string): string {
  return timestampText.slice(0, 10);
}

/** The time of the request's document. */
export function optionalDocTime(fields: RequestReader): string | undefined {
  return optionalTime(fields, "docTime", isTimestamp, "yyyy-MM-dd HH:mm:ss");
}

/** A day of the request. */
export function optionalDay(fields: RequestReader, name: string): string | undefined {
  return optionalTime(fields, name, isDate, "yyyy-MM-dd");
}

function optionalTime(
  fields: RequestReader,
  name: string,
  isRight: (text: string) => boolean,
  form: string,
): string | undefined {
  const value = fields.value(name);
  if (value === undefined || (typeof value === "string" && isRight(value))) return value;
  return fields.refuse(`${fields.named(name)} is not a date of the form ${form}`, "correct it", fiscalCodes.invalidDateFormat);
}
