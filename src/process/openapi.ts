import type { AdminConfig, Config } from "../config/config.ts";
import { adminDefaults } from "../config/limits.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { AdminAnswer, AdminRoute } from "../http/admin-listener.ts";
import { jsonAnswer } from "../http/json-answer.ts";
import { type Lab, LabMissing } from "./lab.ts";
import { type Listening, type Served, servedBy } from "./served.ts";

/** What a process has documents of. */
export interface Documented {
  /** As configured; undefined where the port has its usual address. */
  readonly admin: AdminConfig | undefined;
  /** Those that are reached over HTTP. */
  readonly services: readonly Served[];
  /** What else the admin port answers, as `GET /status`. */
  readonly others: readonly string[];
  readonly lab: () => Promise<Pick<Lab, "serviceDocument" | "adminDocument">>;
}

/**
 * The OpenAPI documents of a process at its admin port. Each is made at its first request, and so is what makes them loaded: a bridge of
 * which nobody asks for one holds neither schemas nor texts.
 */
export function openApiRoutes({ admin, services, others, lab }: Documented): Readonly<Record<string, AdminRoute>> {
  const routeOf = (name: string) => `GET /openapi/${name}.json`;
  const adminRoute = routeOf("admin");
  const { host, port } = admin ?? adminDefaults;
  const names = [adminRoute, ...services.map(({ service }) => routeOf(service)), ...others];
  return {
    ...Object.fromEntries(
      services.map((served) => [routeOf(served.service), once(async () => (await lab()).serviceDocument(served))]),
    ),
    // A service that is called so has no document: the port's own is needed to find the rest.
    [adminRoute]: once(async () => (await lab()).adminDocument({ host, port, routes: names })),
  };
}

/** The services that listen, each with the port at which it is reached: a configuration may leave that to the system. */
export function listeningServices(config: Config, listening: readonly Listening[]): readonly Served[] {
  return servedBy(config).flatMap((each) => {
    const found = listening.find(({ service }) => service === each.service);
    return found === undefined ? [] : [{ ...each, config: { ...each.config, port: found.port } }];
  });
}

function once(make: () => Promise<JsonObject>): AdminRoute {
  let answer: Promise<AdminAnswer> | undefined;
  return () => {
    answer ??= make().then(
      (document) => ({ status: 200, text: `${JSON.stringify(document, undefined, 2)}\n` }),
      (error) => {
        answer = undefined;
        if (!(error instanceof LabMissing)) throw error;
        return jsonAnswer(501, { error: error.message });
      },
    );
    return answer;
  };
}
