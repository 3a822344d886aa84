// The man page posline(1): the commands as the program prints them, and around them what a technician asks a manual for.

/** Text as roff takes it: no backslash, hyphen or leading control character of its own. */
export function roff(text) {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("'", "\\(aq").replace(/^\./gm, "\\&.");
}

/** A heading line that no two builds of one version tell apart. */
export function title(name, section, { version, date }) {
  return `.TH ${name} ${section} ${date} "posline ${version}" "posline manual"`;
}

const paragraph = (text) => [".PP", roff(text)];
const item = (head, text) => [".TP", `.B ${roff(head)}`, roff(text)];

const description = `posline takes the calls of tills over HTTP and relays each over a serial line to a payment or fiscal
terminal, one at a time, and brings its answer back byte for byte. An outcome that can't be known is reported as unknown, never as
failed; requests that may move money, print or change state are sent only once.`;

const exits = [
  ["0", "Done, or stopped by a signal."],
  ["1", "call: declined."],
  ["64", "The command line is wrong."],
  ["69", "Something is not available: a port, a device, a service. doctor: it found a problem."],
  ["70", "An internal error in posline."],
  [
    "75",
    "An outcome is unknown: of an exchange in flight at the end, of an operation not followed to its end, of what journal " +
      "--unknown lists.",
  ],
  ["78", "The configuration can't be used; every problem is named."],
];

/** Every variable that the configuration reads; a test holds this to the program's own list. */
const variables = [
  ["POSLINE_CONFIG", "The configuration file."],
  ["POSLINE_HOST", "The address that every service listens on."],
  ["POSLINE_FISCAL_PORT, POSLINE_BANK_PORT, POSLINE_QR_PORT, POSLINE_ADMIN_PORT", "Ports; 0 is any free one."],
];

const files = [
  ["/etc/posline/posline.json", "The configuration, see posline.json(5)."],
  [
    "/etc/posline/credentials/merchant-id, /etc/posline/credentials/api-key",
    "Secrets, readable by root alone; systemd shows them to the service.",
  ],
  ["/etc/posline/gateway.json", "The gateway's configuration, where there is a gateway."],
  ["/var/lib/posline", "The journal of money."],
  ["/var/cache/posline/last-record", "The number of its newest record, by which an older copy of the journal is recognised."],
  ["/usr/lib/udev/rules.d/60-posline.rules", "Gives serial adapters to the service and keeps other programs from them."],
  ["/usr/share/posline/posline.schema.json", "The configuration's JSON Schema, for editors."],
  ["/usr/share/posline/examples/posline-chromium.json", "A policy that lets a kiosk's browser reach the services."],
  ["/usr/share/posline/examples/posline.lua", "Wireshark's plugin for captures of posline tap."],
];

const signals = [
  [
    "SIGHUP",
    "Loads the configuration anew. A valid one takes effect without dropping what is in flight; an invalid one is refused " +
      "with the reason, and the old one stays.",
  ],
  [
    "SIGTERM, SIGINT, SIGQUIT",
    "Accepts no more, answers what waits with 503 not-sent, and lets the exchange in flight end, for 60 seconds at most. A " +
      "second one ends at once.",
  ],
];

const troubles = [
  ["posline doctor", "Says what is wrong on this box, each with the command that fixes it."],
  ["posline ports", "Lists the serial devices and the name to configure."],
  ["journalctl -u posline -e", "Why the service doesn't start."],
  ["systemctl status posline posline.socket", "Whether it runs, how its lines are, and who listens on its ports."],
];

function commandPart({ usage, describe, options, examples, epilogue }) {
  const shown = examples.flatMap((line) => roff(line.replace(/^ {2}/, "")));
  return [
    `.SS ${roff(usage)}`,
    roff(`${describe}.`),
    ...options.flatMap(({ names, describe: what, choices, fallback, type }) => {
      const value = { boolean: "", number: " N" }[type] ?? " VALUE";
      const notes = [
        choices.length > 0 ? `One of ${choices.join(", ")}.` : "",
        fallback === "" ? "" : `Default: ${fallback}.`,
        type === "array" ? "May be given several times." : "",
      ];
      return item(`${names.join(", ")}${value}`, [`${what}.`, ...notes.filter(Boolean)].join(" "));
    }),
    ...(shown.length === 0 ? [] : [".PP", "Examples:", ".PP", ".nf", ".RS 2", ...shown, ".RE", ".fi"]),
    ...(epilogue.length === 0 ? [] : paragraph(epilogue.join("\n"))),
  ];
}

/** posline(1), from the commands of the bundle. */
export function manPage(commands, about) {
  return [
    title("POSLINE", "1", about),
    ".ad l",
    ".SH NAME",
    "posline \\- HTTP services over serial lines to payment and fiscal terminals",
    ".SH SYNOPSIS",
    ...commands.flatMap(({ usage }) => [`.B ${roff(usage)}`, ".br"]).slice(0, -1),
    ".SH DESCRIPTION",
    roff(description),
    ...paragraph("The package's service runs posline serve. Every command explains itself with --help."),
    ".SH COMMANDS",
    ...commands.flatMap(commandPart),
    ".SH EXIT STATUS",
    ...exits.flatMap(([code, text]) => item(code, text)),
    ".SH ENVIRONMENT",
    roff("Values come from defaults, the file, the environment and flags; later ones take precedence."),
    ...variables.flatMap(([names, text]) => item(names, text)),
    ".SH FILES",
    ...files.flatMap(([path, text]) => item(path, text)),
    ".SH SIGNALS",
    ...signals.flatMap(([name, text]) => item(name, text)),
    ".SH WHEN SOMETHING IS WRONG",
    ...troubles.flatMap(([command, text]) => item(command, text)),
    ".SH SEE ALSO",
    ".BR posline.json (5),",
    ".BR systemctl (1),",
    ".BR journalctl (1)",
    "",
  ].join("\n");
}
