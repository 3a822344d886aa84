import type { Config, ServiceConfig } from "../config/config.ts";
import { emulatedMerchantId } from "../config/overrides.ts";
import type { ContractName } from "../core/call.ts";
import { printableLines } from "../core/shell-text.ts";
import { urlHost } from "../core/url-host.ts";
import { signOf } from "../envelope/sign.ts";
import type { Admin } from "../process/admin.ts";
import type { Listening } from "../process/served.ts";

/** What a person is greeted with who starts an emulator: where it is reached, and commands that work when they are pasted. */
export interface Greeting {
  /** What runs, in words. */
  readonly title: string;
  readonly listening: readonly Listening[];
  readonly admin: Admin | undefined;
  /** Devices on which it answers. */
  readonly devices: readonly string[];
  /** The folder of its journal; undefined where none is kept. */
  readonly journal?: string | undefined;
  readonly services: Config["services"];
  /** Whether any sign will do. */
  readonly anySign: boolean;
}

export function greeting({ title, listening, admin, devices, journal, services, anySign }: Greeting): string {
  const places = listening.map(({ service, host, port, line }) => {
    return `  ${service.padEnd(7)}  http://${urlHost(host)}:${port}${line === undefined ? "" : `  on line ${line}`}`;
  });
  // The simplest first: a card payment, then what needs a signature.
  const tries = (["bank", "qr", "fiscal"] as const).flatMap((contract) => {
    const one = listening.find(({ service }) => (services[service]?.contract ?? service) === contract);
    if (one === undefined) return [];
    return commands[contract](`http://${urlHost(one.host)}:${one.port}`, services[one.service], anySign);
  });
  const declining: string[] = [];
  if (admin !== undefined) {
    const url = `http://${urlHost(admin.host)}:${admin.port}/emulator`;
    places.push(`  ${"control".padEnd(7)}  ${url}`);
    // Apart from those that are pasted one after the other, or the next sale would fail and nobody know why.
    if (tries.length > 0) {
      const command = `${curl} -d '${JSON.stringify(nextDeclined)}' ${url}`;
      declining.push("", "This makes the next sale by bank be declined, whatever its amount:", "", `  ${command}`);
    }
  }
  const lines = [
    "",
    `${title}: no money moves`,
    "",
    ...places,
    ...devices.map((path) => `  ${"line".padEnd(7)}  ${path}`),
    ...(journal === undefined ? [] : [`  ${"journal".padEnd(7)}  ${journal}`]),
    ...(tries.length === 0 ? [] : ["", ...tryLines, ""]),
    ...tries.map((command) => `  ${command}`),
    ...declining,
    "",
    "Stop it with Ctrl-C. The log follows on standard output.",
    "",
    "",
  ];
  return printableLines(lines.join("\n"));
}

const tryLines = [
  "Try these in another terminal. A sale is in progress until /check says otherwise; an amount that ends in 20 is declined",
  "(docs/emulator.md has the others):",
];

/** Silent, and each answer on a line of its own. */
const curl = "curl -s -w '\\n'";

const sale = (payId: string, amount: number) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });
const fiscalSale = {
  documentExtID: "TRY-1",
  items: [{ itemId: "1", itemName: "Coffee", itemQty: 1000, itemAmount: 1500, itemTaxes: [{ taxPrc: 1800 }] }],
  payments: { cashAmount: 1500 },
};
const nextDeclined = { next: { service: "bank", route: "/sale", outcome: "declined" } };

type Commands = (base: string, config: ServiceConfig | undefined, anySign: boolean) => readonly string[];

const commands: Readonly<Record<ContractName, Commands>> = {
  fiscal: (base, config, anySign) => {
    // A real merchant's id is a secret, and a sign made with it would be one too.
    if (!anySign && config?.merchantId !== emulatedMerchantId) return [`${curl} ${base}/supported_operations`];
    const data = Buffer.from(JSON.stringify(fiscalSale)).toString("base64");
    return [`${curl} -d 'data=${data}&sign=${signOf(data, emulatedMerchantId)}' ${base}/sale`];
  },
  bank: (base, config) => {
    const withKey = `${curl}${keyHeader(config)}`;
    return [sale("TRY-1", 1500), sale("TRY-2", 1520)].map((body) => `${withKey} -d '${body}' ${base}/{sale,check,check}`);
  },
  qr: (base) => [`${curl} -X POST ${base}/check_connection`],
};

/** The header of the API key, which isn't shown. */
function keyHeader(config: ServiceConfig | undefined): string {
  if (config?.apiKey === undefined) return "";
  return config.apiKeyFile === undefined ? " -H 'X-API-Key: THE-KEY'" : ` -H "X-API-Key: $(cat '${config.apiKeyFile}')"`;
}
