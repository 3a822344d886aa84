// The man page posline.json(5), from the configuration's own schema: each key with what it does and what it may be.
import { roff, title } from "./man.mjs";

const example = `{
  "lines": {
    "till": { "path": "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A9KJ3X7Q-if00-port0", "baudRate": 115200 }
  },
  "services": {
    "fiscal": { "line": "till" },
    "bank": { "line": "till", "allowOrigins": ["https://till.example"] },
    "qr": { "line": "till" }
  },
  "admin": { "port": 8880 }
}`;

/** What a value may be, in words. */
function kind(node) {
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum !== undefined) return node.enum.map((value) => JSON.stringify(value)).join(", ");
  if (node.anyOf !== undefined) return node.anyOf.map(kind).join(", or ");
  if (node.type === "integer") return `a whole number from ${node.minimum} to ${node.maximum}`;
  if (node.type === "array") return "a list of strings";
  if (node.type === "boolean") return "true or false";
  return node.type === "object" ? "an object" : "a string";
}

function fallbackOf(node) {
  if (node.default === undefined || typeof node.default === "object") return "";
  return `; default ${JSON.stringify(node.default)}`;
}

/** One key: what it may be, what it does, and the reason that the schema gives. */
function entry(path, node, required) {
  const examples = (node.examples ?? []).map((each) => JSON.stringify(each));
  return [
    ".TP",
    `.B ${roff(path)}`,
    roff(`${kind(node)}${fallbackOf(node)}${required ? "; required" : ""}.`),
    ...(node.description === undefined ? [] : [".br", roff(node.description)]),
    ...(node.type === "integer" && node.$comment !== undefined ? [".br", roff(`Because ${node.$comment}.`)] : []),
    ...(examples.length === 0 ? [] : [".br", roff(`Such as ${examples.join(" or ")}`)]),
  ];
}

/** The keys of an object and of the objects in it. */
function entries(node, path) {
  if (node.properties !== undefined) {
    return Object.entries(node.properties).flatMap(([key, value]) => {
      const full = path === "" ? key : `${path}.${key}`;
      return [...entry(full, value, node.required?.includes(key) ?? false), ...entries(value, full)];
    });
  }
  if (node.anyOf !== undefined) return node.anyOf.flatMap((each) => entries(each, path));
  return typeof node.additionalProperties === "object" ? entries(node.additionalProperties, `${path}.NAME`) : [];
}

/** posline.json(5), from the schema that `posline config --schema` prints. */
export function configPage(schema, about) {
  return [
    title("POSLINE.JSON", "5", about),
    ".ad l",
    ".SH NAME",
    "posline.json \\- configuration of posline",
    ".SH SYNOPSIS",
    ".B /etc/posline/posline.json",
    ".br",
    ".B /etc/posline/posline.d/*.json",
    ".SH DESCRIPTION",
    roff(
      `${schema.description} An unknown key is an error that names its path. A relative path starts at the folder of ` +
        "posline.json. posline setup writes posline.d/terminal.json, and never posline.json.",
    ),
    ".PP",
    roff(
      "posline config shows every value in force and where it came from; systemctl reload posline applies a changed " + "file.",
    ),
    ".SH KEYS",
    ...entries(schema, ""),
    ".SH SECRETS",
    roff(
      "It is best to keep the merchant's id and the bank's key out of this file: put into /etc/posline/credentials/merchant-id " +
        "and /etc/posline/credentials/api-key, readable only by root, they are read at the next systemctl restart posline. " +
        "The package gives this file to root and to group posline to read (0640); posline warns at its start of a file with " +
        "secrets that every user of the box can read.",
    ),
    ".SH PORTS",
    roff(
      "The service's sockets are opened by posline.socket. Set another port both here and there: systemctl edit posline.socket," +
        " then systemctl restart posline.socket posline.",
    ),
    ".SH EXAMPLE",
    ".nf",
    roff(example),
    ".fi",
    ".SH SEE ALSO",
    ".BR posline (1)",
    "",
  ].join("\n");
}
