import type { JsonObject } from "../../core/json-object.ts";
import type { Served } from "../../process/served.ts";

/** The OpenAPI documents, whose makers are loaded with the first one that is asked for: schemas and texts take memory. */

export async function serviceDocument({ service, config }: Served): Promise<JsonObject> {
  const maker = await import("./service.ts");
  return maker.serviceDocument(maker.describedService(service, config));
}

export async function adminDocument(admin: { host: string; port: number; routes: readonly string[] }): Promise<JsonObject> {
  return (await import("./admin.ts")).adminDocument(admin);
}
