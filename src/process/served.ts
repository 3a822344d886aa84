import type { Config, LineConfig, ServiceConfig } from "../config/config.ts";
import type { ServiceName } from "../core/call.ts";
import type { ListeningAt } from "../http/server.ts";

/** A service with its settings. */
export interface Served {
  readonly service: ServiceName;
  readonly config: ServiceConfig;
}

/** A service that listens. */
export interface Listening extends ListeningAt {
  readonly service: ServiceName;
  /** The name of its line, where it has one. */
  readonly line?: string;
}

/** A line with its settings and the services that share it. */
export interface SharedLine {
  readonly name: string;
  readonly config: LineConfig;
  readonly served: readonly Served[];
}

/** The services of a configuration, in their own order. */
export function servedBy({ services }: Pick<Config, "services">): readonly Served[] {
  return Object.entries(services).map(([service, config]) => ({ service, config }));
}

/** The merchant's id by which the first fiscal service signs. */
export function merchantIdOf({ services }: Config): string | undefined {
  return Object.values(services).find(({ contract }) => contract === "fiscal")?.merchantId;
}

/** The lines of a configuration, in its order. */
export function sharedLines(config: Config): readonly SharedLine[] {
  const served = servedBy(config);
  return Object.entries(config.lines).map(([name, line]) => ({
    name,
    config: line,
    served: served.filter((each) => each.config.line === name),
  }));
}
