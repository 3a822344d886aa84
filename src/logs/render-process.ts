import { joined, restOf, subject } from "./columns.ts";
import type { ProcessEvent } from "./event.ts";
import { type Paint, plain } from "./paint.ts";

/** What is said of the process. */
export function renderProcess({ level, message, service, key, rest }: ProcessEvent, paint: Paint): string {
  const fields = new Map(rest);
  const take = (name: string) => {
    const value = fields.get(name);
    fields.delete(name);
    return value;
  };
  const [dropped, error, host] = [take("dropped"), take("error"), take("host")];
  const said = `${dropped === undefined ? "" : `${dropped} `}${message}${error === undefined ? "" : `: ${error}`}`;
  const where = host === undefined ? "" : `${host.includes(":") ? `[${host}]` : host}:${take("port") ?? ""}`;
  return joined([
    subject(service ?? "posline"),
    headingOf(level, paint),
    plain(said),
    plain(where),
    key === undefined ? "" : paint("strong", plain(key)),
    paint("faint", restOf([...fields])),
  ]);
}

function headingOf(level: string, paint: Paint): string {
  if (level === "error" || level === "fatal") return paint("bad", "ERROR");
  return level === "warn" ? paint("odd", "WARNING") : "";
}
