import type { XStatic } from "typebox/schema";
import { contracts } from "../contract/contracts.ts";
import type { ContractName } from "../core/call.ts";
import { adminDefaults, bounds, gatewayMarginMs, journalDefaults, logDefaults, serviceDefaults } from "./limits.ts";
import { line } from "./schema-line.ts";
import { bounded, host, hostPattern } from "./schema-terms.ts";

/**
 * The shape of the file, as JSON Schema (draft 2020-12): what `posline config --schema` prints for editors, what `check` walks,
 * and what the file's type is inferred from. It is plain data, so that a start loads no schema library; the tests hold it and
 * `check` against TypeBox's own validator. `$comment` says why, and is quoted in messages. `writeOnly` marks the secrets.
 */

/** `http://` or `https://`, a host name or address, perhaps a port and a path. */
const upstreamPattern =
  "^https?://(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\\[[0-9a-f:.]+\\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]*)*$";

/** What every service has; the time-outs are declared per service, since routes and defaults are its contract's. */
const common = {
  line: {
    type: "string",
    examples: ["till"],
    description: "The name of the line that leads to the terminal.",
    $comment: "name the line that leads to the terminal",
  },
  host,
  upstream: {
    type: "string",
    pattern: upstreamPattern,
    maxLength: 2_048,
    examples: ["http://127.0.0.1:8888", "https://terminal.lan/services"],
    description:
      "Where posline gateway reaches the service: its base URL. posline serve ignores it, and posline gateway ignores port, " +
      "host, allowOrigins and allowHosts, so both can use one file.",
    $comment:
      "it must be a URL in lower case up to its path, http or https, without user, password, ? and #, such as http://127.0.0.1:8888",
  },
  bodyBytesMax: bounded(bounds.bodyBytesMax, serviceDefaults.bodyBytesMax, "The largest request body taken."),
  replyBytesMax: bounded(
    bounds.replyBytesMax,
    serviceDefaults.replyBytesMax,
    "The largest reply taken; the outcome of a request whose reply is larger is unknown.",
  ),
  check: {
    enum: ["envelope", "contract", "none"],
    default: serviceDefaults.check,
    description: "What is checked of a request before it is sent: its envelope, its whole schema, or nothing.",
  },
  faultStatus: {
    enum: [200],
    description:
      "Answers posline's own faults with HTTP 200 where a body can describe them, for tills that discard other statuses.",
  },
  allowOrigins: {
    type: "array",
    maxItems: 64,
    items: {
      type: "string",
      pattern: "^[a-z][a-z0-9+.-]*://[a-z0-9._~%:\\[\\]-]+$",
      $comment:
        "it must be one origin in lower case without a path, such as https://till.shop; * and null are refused, " +
        "because any page in the browser could then take payments",
    },
    examples: [["https://till.shop"]],
    description: "The web pages, by origin, whose scripts may call. None unless listed.",
  },
  allowHosts: {
    type: "array",
    maxItems: 64,
    items: {
      type: "string",
      pattern: hostPattern,
      $comment: "it must be one host name in lower case without scheme, port or *, such as till-7.lan",
    },
    examples: [["till-7.lan"]],
    description: "Names by which callers reach this service, beside localhost and its address (guards against DNS rebinding).",
  },
} as const;

function port<const D extends number>(fallback: D) {
  return bounded(bounds.port, fallback, "The TCP port to listen on.");
}

function replyTimeoutMs(service: ContractName) {
  const routes = contracts[service].routes;
  return {
    anyOf: [
      bounded(bounds.replyTimeoutMs, undefined, "For every route."),
      {
        type: "object",
        description: "By route; routes that aren't listed keep their default.",
        additionalProperties: false,
        propertyNames: { enum: routes.map((route) => route.path) },
        patternProperties: { "^/": bounded(bounds.replyTimeoutMs, undefined, "For this route.") },
      },
    ],
    default: Object.fromEntries(routes.map((route) => [route.path, route.replyTimeoutMs])),
    description:
      "How long the first byte of a reply may take: one number for every route, or numbers by route. In ms. For posline gateway, " +
      `how long its upstream's whole answer may take, by default ${gatewayMarginMs} less: it must be back before the till gives up.`,
  } as const;
}

function secret<const P extends string>(pattern: P, description: string, comment: string) {
  return { type: "string", pattern, maxLength: 256, writeOnly: true, description, $comment: comment } as const;
}

const secretFile = {
  type: "string",
  pattern: "^[^\\u0000]+$",
  maxLength: 4_096,
  examples: ["/etc/posline/secret"],
  description: "A file that holds the value, instead of the value; a relative path starts at this file's folder.",
  $comment: "it must be the path of a file",
} as const;

/** What each contract's services have beside the common settings. */
const own = {
  fiscal: {
    ...common,
    replyTimeoutMs: replyTimeoutMs("fiscal"),
    merchantId: secret(
      "^[^\\u0000-\\u001f\\u007f]+$",
      "Signs posline's own requests, and lets it verify the signatures of the tills'.",
      "it must be 1 to 256 characters without line breaks",
    ),
    merchantIdFile: secretFile,
  },
  bank: {
    ...common,
    replyTimeoutMs: replyTimeoutMs("bank"),
    apiKey: secret(
      "^[\\u0021-\\u007e]+$",
      "What tills must send as X-API-Key (unset: no key is required), and what posline gateway sends to its upstream.",
      "it must be 1 to 256 characters of ASCII without spaces, as an HTTP header carries them",
    ),
    apiKeyFile: secretFile,
  },
  qr: {
    ...common,
    replyTimeoutMs: replyTimeoutMs("qr"),
    linePort: bounded(
      bounds.port,
      contracts.qr.port,
      "The port in front of the route on the line, by which the terminal knows the service.",
    ),
  },
} as const;

const contractDescription = "The contract that the service speaks; its name says it where that is fiscal, bank or qr.";

const contractIs = <const N extends ContractName>(name: N) => ({ enum: [name], description: contractDescription }) as const;

/** An object that has these members alone. */
const closed = <const R extends readonly string[], const P>(description: string, required: R, properties: P) =>
  ({ type: "object", description, additionalProperties: false, required, properties }) as const;

/** What a service of a name of its own must say. */
const ofOwnName = ["contract", "line", "port"] as const;

/** A port that has no default: only the contracts' own names have one. */
const anyPort = bounded(bounds.port, undefined, "The TCP port to listen on.");

const services = {
  type: "object",
  description:
    "The services to serve, each on a port of its own. Several may share a line. Those of a name of their own say which contract " +
    "they speak: so a box serves several terminals of one kind, each on its own line.",
  propertyNames: {
    pattern: "^[a-z][a-z0-9-]{0,31}$",
    $comment: "a service's name is a small letter and up to 31 small letters, digits or -, since it goes into logs and metrics",
  },
  minProperties: 1,
  $comment: "name at least one of fiscal, bank and qr",
  properties: {
    fiscal: closed("Receipts, shifts and reports.", ["line"], {
      contract: contractIs("fiscal"),
      port: port(contracts.fiscal.port),
      ...own.fiscal,
    }),
    bank: closed("Card operations.", ["line"], { contract: contractIs("bank"), port: port(contracts.bank.port), ...own.bank }),
    qr: closed("QR and palm payments.", ["line"], { contract: contractIs("qr"), port: port(contracts.qr.port), ...own.qr }),
  },
  additionalProperties: {
    description: "Another service of one of the contracts.",
    anyOf: [
      closed("Another one for receipts, shifts and reports.", ofOwnName, {
        contract: contractIs("fiscal"),
        port: anyPort,
        ...own.fiscal,
      }),
      closed("Another one for card operations.", ofOwnName, { contract: contractIs("bank"), port: anyPort, ...own.bank }),
      closed("Another one for QR and palm payments.", ofOwnName, { contract: contractIs("qr"), port: anyPort, ...own.qr }),
    ],
  },
} as const;

/** The value that `admin.tokenFile` holds: too long to be guessed. */
export const adminToken = secret(
  "^[\\u0021-\\u007e]{16,}$",
  "What each request to the admin port must carry.",
  "it must be 16 to 256 characters of ASCII without spaces: openssl rand -hex 24 makes one",
);

const admin = {
  type: "object",
  description:
    "The port of health, status, events and the emulator's control. Off unless configured, emulated, or opened by systemd.",
  additionalProperties: false,
  properties: {
    host: {
      ...host,
      description: "The address to listen on; localhost is both 127.0.0.1 and ::1. Anything but loopback needs tokenFile.",
    },
    port: port(adminDefaults.port),
    tokenFile: {
      ...secretFile,
      examples: ["/etc/posline/admin-token"],
      description:
        "A file with the token that each request must carry, as bearer token or as password. Unset: none is asked for; required where " +
        "host isn't loopback. A relative path starts at this file's folder.",
    },
    allowOrigins: {
      ...common.allowOrigins,
      items: {
        ...common.allowOrigins.items,
        $comment:
          "it must be one origin in lower case without a path, such as https://till.shop; * and null are refused, because any page in " +
          "the browser could then read the status",
      },
      description: "The web pages, by origin, whose scripts may read. None unless listed, beside the port's own page.",
    },
    allowHosts: {
      ...common.allowHosts,
      description: "Names by which the port is reached, beside localhost and its address (guards against DNS rebinding).",
    },
  },
} as const;

const journal = {
  anyOf: [
    {
      type: "boolean",
      enum: [false],
      description: "Keeps no journal.",
      $comment: "false turns the journal off, and an object configures it",
    },
    {
      type: "object",
      description: "Where the journal is kept.",
      additionalProperties: false,
      properties: {
        folder: {
          type: "string",
          pattern: "^/[^\\u0000]*$",
          maxLength: 4_096,
          examples: ["/var/lib/posline"],
          description:
            "Its folder. Unless set, the service's state folder (systemd's STATE_DIRECTORY); without either there is no journal.",
          $comment: "it must be the whole path of a folder on this box, such as /var/lib/posline",
        },
        bytes: bounded(
          bounds.journalBytes,
          journalDefaults.bytes,
          "The size of its file, which is overwritten round and round.",
        ),
        onFailure: {
          enum: ["relay", "refuse"],
          default: journalDefaults.onFailure,
          description:
            "What happens to requests that move money, print or change state while the journal can't be written: relay sends " +
            "them without a record, refuse refuses them.",
        },
        resolve: {
          enum: ["ask", "observe", false],
          default: journalDefaults.resolve,
          description:
            "How operations with an unknown outcome are settled: ask lets posline ask the terminal about them by itself while its " +
            "line is free, observe learns from the answers to the tills' own questions alone, false does neither.",
        },
      },
    },
  ],
  description: "The record of what moved money, printed or changed state, which survives a power cut.",
} as const;

/** The JSON Schema of the configuration file. */
export const fileSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "posline configuration",
  description:
    "Which serial lines there are and which services are served over them. Each posline.d/*.json beside the file, in order " +
    "of name, is laid over it: objects merge, null takes a setting away, anything else replaces it.",
  type: "object",
  additionalProperties: false,
  required: ["lines", "services"],
  properties: {
    $schema: { type: "string", description: "Where an editor finds this schema; posline ignores it." },
    lines: {
      type: "object",
      description: "The serial lines by name.",
      minProperties: 1,
      propertyNames: {
        pattern: "^[A-Za-z][A-Za-z0-9_-]{0,31}$",
        $comment: "a line's name is a letter and up to 31 letters, digits, - or _, since it goes into logs and metrics",
      },
      additionalProperties: line,
      $comment: "name at least one line with its path",
    },
    services,
    admin,
    journal,
    log: {
      type: "object",
      description: "The log on standard output.",
      additionalProperties: false,
      properties: {
        level: {
          enum: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
          default: logDefaults.level,
          description: "The minimum level that is logged.",
        },
      },
    },
  },
  examples: [
    {
      lines: { till: { path: "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0", baudRate: 115_200 } },
      services: {
        fiscal: { line: "till", port: 8008, merchantIdFile: "merchant-id" },
        bank: { line: "till", port: 8888 },
        qr: { line: "till", port: 8887 },
      },
      admin: { port: 8880 },
    },
  ],
} as const;

/** The file, as it may be written. */
export type FileShape = XStatic<typeof fileSchema>;
export type LineShape = FileShape["lines"][string];
/** Any service's settings: the schema has seen to it that what is one contract's own is only at its services. */
export type ServiceShape = Partial<
  Omit<
    XStatic<typeof services.properties.fiscal> &
      XStatic<typeof services.properties.bank> &
      XStatic<typeof services.properties.qr>,
    "contract"
  >
> & { readonly contract?: ContractName };
