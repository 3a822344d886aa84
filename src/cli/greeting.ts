import type { Listening } from "../app/bridge.ts";
import { signOf } from "../envelope/sign.ts";

/** What `serve --emulated` tells a person: where it listens, and one command for each service that works when it is pasted. */
export function greeting(listening: readonly Listening[], merchantId: string | undefined): string {
  const lines = ["", "posline serves an emulated terminal: no device is used and no money moves", ""];
  for (const { service, host, port, line } of listening) {
    lines.push(`  ${service.padEnd(6)}  http://${urlHost(host)}:${port}  on line ${line}`);
  }
  lines.push("", "Try:", "");
  for (const { service, host, port } of listening)
    lines.push(`  ${commands[service](`http://${urlHost(host)}:${port}`, merchantId)}`);
  lines.push("", "Stop it with Ctrl-C. The log follows on standard output, one JSON object a line.", "", "");
  return lines.join("\n");
}

const urlHost = (host: string) => (host.includes(":") ? `[${host}]` : host);

const bankSale = { pay_id: "TRY-1", amount: 1500, currency_name: "EUR" };
const fiscalSale = {
  documentExtID: "TRY-1",
  items: [{ itemId: "1", itemName: "Coffee", itemQty: 1000, itemAmount: 1500, itemTaxes: [{ taxPrc: 1800 }] }],
  payments: { cashAmount: 1500 },
};

const commands: Readonly<Record<Listening["service"], (base: string, merchantId: string | undefined) => string>> = {
  fiscal: (base, merchantId) => {
    if (merchantId === undefined) return `curl ${base}/supported_operations`;
    const data = Buffer.from(JSON.stringify(fiscalSale)).toString("base64");
    return `curl -d 'data=${data}&sign=${signOf(data, merchantId)}' ${base}/sale`;
  },
  bank: (base) => `curl -d '${JSON.stringify(bankSale)}' ${base}/sale`,
  qr: (base) => `curl -X POST ${base}/check_connection`,
};
