import packageJson from "../../package.json" with { type: "json" };

/** posline's version. */
export const version: string = packageJson.version;
