import { STATUS_CODES } from "node:http";
import type { ServiceConfig } from "../../config/config.ts";
import type { Contract, Route } from "../../contract/contract.ts";
import { contracts } from "../../contract/contracts.ts";
import { schemasOf } from "../../contract/schema.ts";
import { type SettlingRules, settlingRulesOf } from "../../contract/settling.ts";
import type { TSchema } from "../../contract/typebox.ts";
import type { ServiceName } from "../../core/call.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { urlHost } from "../../core/url-host.ts";
import { version } from "../../core/version.ts";
import { signOf } from "../../envelope/sign.ts";
import { type Example, exampleMerchantId, examplesOf } from "./examples.ts";
import { answerHeaders, type FaultAnswer, faultAnswers, followedHeaders } from "./fault-answers.ts";
import { Components, camelCase, pascalCase, reachableHost, serverOf } from "./parts.ts";
import described from "./service.json" with { type: "json" };
import { introduction, routeDescription } from "./service-words.ts";

/**
 * A service as an OpenAPI 3.1 document, for those who write a till: made of the contract's table, its schemas and the code that writes
 * faults, so that it can't differ. No route is known by heart here; of its own are only the words (`service.json`) and the examples, which
 * an emulated terminal answered.
 */

/** A service to describe, if not as its contract's own on this box. */
export interface DescribedService {
  readonly contract: Contract;
  /** The service's name in the configuration. */
  readonly service: ServiceName;
  readonly host: string;
  readonly port: number;
  /** Whether requests need the API key; undefined if that isn't known. */
  readonly hasApiKey: boolean | undefined;
  readonly faultStatus: 200 | undefined;
}

/** A service with the settings that its document depends on. */
export function describedService(
  service: ServiceName,
  { contract, host, port, apiKey, faultStatus }: ServiceConfig,
): DescribedService {
  return { contract: contracts[contract], service, host, port, hasApiKey: apiKey !== undefined, faultStatus };
}

/** A service of whose configuration nothing is known. */
export function usualService(contract: Contract): DescribedService {
  const { service, port } = contract;
  return { contract, service, host: "localhost", port, hasApiKey: undefined, faultStatus: undefined };
}

export function serviceDocument({ contract, service, host, port, hasApiKey, faultStatus }: DescribedService): JsonObject {
  const components = new Components();
  const faults = new Map(contract.routes.map((route) => [route, faultAnswers(contract, route, faultStatus, components)]));
  const shared: Shared = { contract, components, names: schemaNames(contract), faults };
  const paths = Object.fromEntries(contract.routes.map((route) => [route.path, new RouteWriter(route, shared).pathItem()]));
  const keyed = contract.service === "bank" && hasApiKey !== false;
  const tags = Object.entries(described.tags).flatMap(([effect, tag]) =>
    contract.routes.some((route) => route.effect === effect) ? [tag] : [],
  );
  return {
    openapi: described.openapi,
    info: {
      ...described.info,
      title: `posline: ${described.contracts[contract.service].title}${service === contract.service ? "" : ` (${service})`}`,
      version,
      description: introduction(contract, faultStatus),
    },
    servers: [serverOf(urlHost(reachableHost(host)), port, `The service ${service}`)],
    tags,
    // The key is optional by an empty requirement beside it: it is asked for if `apiKey` is configured.
    ...(keyed ? { security: hasApiKey === true ? [{ apiKey: [] }] : [{}, { apiKey: [] }] } : {}),
    paths,
    components: {
      ...components.json(),
      ...(keyed ? { securitySchemes: described.components.securitySchemes } : {}),
    },
  };
}

/** Without its charset: tools look for the bare type, and JSON is UTF-8 anyway. */
const mediaType = ({ replyContentType }: Contract) => replyContentType.split(";")[0] ?? replyContentType;

/** The name of each schema: that of the first route that has it. */
function schemaNames(contract: Contract): ReadonlyMap<TSchema, string> {
  const names = new Map<TSchema, string>();
  for (const { path } of contract.routes) {
    const { request, reply } = schemasOf(contract.service, path) ?? {};
    if (request !== undefined && !names.has(request)) names.set(request, `${pascalCase(path)}Request`);
    if (reply !== undefined && !names.has(reply)) names.set(reply, `${pascalCase(path)}Reply`);
  }
  return names;
}

/** The parts that the routes of a document share. */
interface Shared {
  readonly contract: Contract;
  readonly components: Components;
  /** The name of each schema. */
  readonly names: ReadonlyMap<TSchema, string>;
  readonly faults: ReadonlyMap<Route, readonly FaultAnswer[]>;
}

/** Writes one route. */
class RouteWriter {
  readonly #route: Route;
  readonly #shared: Shared;
  readonly #components: Components;
  readonly #contract: Contract;

  constructor(route: Route, shared: Shared) {
    this.#route = route;
    this.#shared = shared;
    this.#components = shared.components;
    this.#contract = shared.contract;
  }

  pathItem(): JsonObject {
    return {
      parameters: [
        this.#components.parameter("RequestId"),
        this.#components.parameter("Traceparent"),
        ...(this.#isFollowed ? [this.#components.parameter("Prefer")] : []),
      ],
      ...Object.fromEntries(this.#route.methods.map((method) => [method.toLowerCase(), this.#operation(method)])),
    };
  }

  /** True if the route can be followed to its end. */
  get #isFollowed(): boolean {
    return this.#rulesOf(this.#route) !== undefined;
  }

  #rulesOf({ path }: Route): SettlingRules | undefined {
    return settlingRulesOf(this.#contract.service, path);
  }

  /** The headers of a followed call's answer, of whichever of these routes; none if none of them can be followed. */
  #followedHeaders(routes: readonly Route[]): JsonObject {
    const rules = routes.flatMap((route) => this.#rulesOf(route) ?? []);
    if (rules.length === 0) return {};
    return followedHeaders(
      this.#components,
      rules.some(({ learns }) => learns !== undefined),
    );
  }

  #operation(method: "GET" | "POST"): JsonObject {
    const contract = this.#contract;
    const { path, methods, effect } = this.#route;
    const isSecond = method !== methods[0];
    const summaries: Readonly<Record<string, string>> = described.contracts[contract.service].summaries;
    return {
      operationId: `${camelCase(path)}${isSecond ? `By${pascalCase(`/${method.toLowerCase()}`)}` : ""}`,
      summary: summaries[path],
      description: routeDescription(contract, this.#route),
      tags: [described.tags[effect].name],
      ...(method === "POST" && this.#route.body === "required" ? { requestBody: this.#requestBody(method) } : {}),
      responses: this.#responses(method),
    };
  }

  #examples(method: string): readonly Example[] {
    return examplesOf(this.#contract.service).filter((each) => each.route === this.#route.path && each.method === method);
  }

  #requestBody(method: string): JsonObject {
    const contract = this.#contract;
    const schema = this.#schemaRef(schemasOf(contract.service, this.#route.path)?.request);
    const isForm = contract.envelope === "form";
    const examples = this.#examples(method).flatMap(({ name, summary, request }) =>
      request === undefined ? [] : [[name, { summary, value: isForm ? signedForm(request) : request }] as const],
    );
    const media = { schema: isForm ? formSchema(schema) : schema, examples: Object.fromEntries(examples) };
    return {
      required: true,
      content: { [isForm ? "application/x-www-form-urlencoded" : "application/json"]: media },
    };
  }

  #responses(method: string): JsonObject {
    const faults = this.#shared.faults.get(this.#route) ?? [];
    const inOk = faults.find(({ httpStatus }) => httpStatus === 200);
    return Object.fromEntries([
      ["200", this.#answered(method, inOk)],
      ...faults.filter((fault) => fault !== inOk).map((fault) => [String(fault.httpStatus), this.#faultResponse(fault)]),
    ]);
  }

  #answered(method: string, faults: FaultAnswer | undefined): JsonObject {
    const contract = this.#contract;
    const reply = this.#schemaRef(schemasOf(contract.service, this.#route.path)?.reply);
    const outcomes = ["answered" as const, ...(faults?.outcomes ?? [])];
    const isAsked = this.#route.polling !== undefined || settlingRulesOf(contract.service, this.#route.path) === undefined;
    const reasons = [...(faults?.reasons ?? []), ...(isAsked ? [] : (["no-question"] as const))];
    const examples = this.#examples(method).filter(({ httpStatus }) => httpStatus === 200);
    return {
      description: `The terminal's answer, byte for byte${faults === undefined ? "" : ", or a fault where `X-Posline-Outcome` says so"}`,
      headers: {
        ...answerHeaders(outcomes, reasons, this.#components),
        ...this.#followedHeaders([this.#route]),
      },
      content: {
        [mediaType(contract)]: {
          schema: faults === undefined ? reply : { anyOf: [reply, ...faults.bodies] },
          examples: Object.fromEntries(examples.map(({ name, summary, answer }) => [name, { summary, value: answer }])),
        },
      },
    };
  }

  /** Routes with the same faults share their description, and so the examples of all of them. */
  #faultResponse({ httpStatus, outcomes, reasons, bodies, name }: FaultAnswer): JsonObject {
    const [only, ...others] = bodies;
    return this.#components.ref("responses", name, () => {
      const sharing = [...this.#shared.faults].filter(([, answers]) => answers.some((each) => each.name === name));
      const examples = examplesOf(this.#contract.service)
        .filter((each) => each.httpStatus === httpStatus && sharing.some(([{ path }]) => path === each.route))
        .map(({ route, name: own, summary, answer }) => [`${camelCase(route)}.${own}`, { summary, value: answer }] as const);
      const media = { schema: others.length === 0 ? only : { anyOf: bodies } };
      return {
        description: `${STATUS_CODES[httpStatus]}: ${outcomes.map((outcome) => faultWords[outcome]).join("; ")}`,
        headers: {
          ...answerHeaders(outcomes, reasons, this.#components),
          // A request that is refused before it is looked up has none of these headers.
          ...(httpStatus >= 500 ? this.#followedHeaders(sharing.map(([route]) => route)) : {}),
        },
        content: {
          [mediaType(this.#contract)]: examples.length === 0 ? media : { ...media, examples: Object.fromEntries(examples) },
        },
      };
    });
  }

  #schemaRef(schema: TSchema | undefined): JsonObject {
    const name = schema === undefined ? undefined : this.#shared.names.get(schema);
    if (name === undefined) throw new Error(`Cannot describe ${this.#route.path}: it has no schema`);
    return this.#components.ref("schemas", name, () => ({ ...schema }));
  }
}

const faultWords = {
  answered: "the terminal answered",
  "not-sent":
    "nothing reached the terminal; it may be sent again once what `message` says is done, unless an earlier try is in doubt",
  unknown: "it was sent, and may have been carried out: ask what became of it before anything else",
} as const;

/** The fiscal form (Authentication; Endpoints, HTTP request envelope). */
function formSchema(payload: JsonObject): JsonObject {
  return {
    type: "object",
    required: ["data", "sign"],
    properties: {
      data: {
        type: "string",
        description: "Base64 of the UTF-8 JSON business payload",
        contentEncoding: "base64",
        contentMediaType: "application/json",
        contentSchema: payload,
      },
      sign: {
        type: "string",
        description:
          "Base64 of the lower-case hexadecimal SHA-1 of the text of `data`, before any percent-encoding, followed by the merchant's id",
        contentEncoding: "base64",
      },
    },
  };
}

function signedForm(request: JsonObject): { readonly data: string; readonly sign: string } {
  const data = Buffer.from(JSON.stringify(request)).toString("base64");
  return { data, sign: signOf(data, exampleMerchantId) };
}
