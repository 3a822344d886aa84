import type { AdminAnswer, AdminRequest, AdminRoute } from "./admin-listener.ts";

/** A part of the admin port: something that goes on in the process, which can be looked at and changed. */
export interface AdminPart {
  view(): AdminAnswer;
  change(body: string, request: AdminRequest): AdminAnswer | Promise<AdminAnswer>;
  stop(): void;
}

/** The two routes of a part that is loaded when somebody changes it for the first time: most processes never hold it. */
export class LazyPart {
  readonly #load: () => Promise<AdminPart>;
  #part: Promise<AdminPart> | undefined;
  readonly routes: Readonly<Record<string, AdminRoute>>;

  /** @param unchanged What a look at it shows until then. */
  constructor(path: string, unchanged: string, load: () => Promise<AdminPart>) {
    this.#load = load;
    this.routes = {
      [`GET ${path}`]: async () => (await this.#part)?.view() ?? { status: 200, text: `${unchanged}\n` },
      [`POST ${path}`]: async (body, request) => {
        this.#part ??= this.#load();
        return (await this.#part).change(body, request);
      },
    };
  }

  async stop(): Promise<void> {
    (await this.#part)?.stop();
  }
}
