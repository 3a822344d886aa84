import { askAtTerminal } from "../../cli/ask.ts";
import { sourceFlags } from "../../cli/config.ts";
import type { Config, LineConfig } from "../../config/config.ts";
import { loadConfig } from "../../config/load.ts";
import { contractOnLine } from "../../contract/contracts.ts";
import { contractNames } from "../../core/call.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../../core/command.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { printable, quoted } from "../../core/shell-text.ts";
import { openerOf } from "../../device/opener.ts";
import { OpenError } from "../../device/transport.ts";
import type { CertifiedService, Sale } from "../certify/asker.ts";
import type { CertifyCheck } from "../certify/check.ts";
import { countOf } from "../report/judgement.ts";
import { listOf, refuseUnknownNames, reportFlags, runJudging, showProgress, tryReports } from "./judging.ts";

/** `posline certify`: judges the terminal at the end of a line by its contracts. */

export type CertifyArguments = ArgumentsOf<typeof flags>;

/** @returns the exit code: 0 if all passed, 1 if one failed, 75 if none did and not all were tested, 69 if the line can't be opened. */
export async function runCertify(args: CertifyArguments): Promise<number> {
  // Loaded when it is run, so that registering the command costs nothing.
  const { certify, checks } = await import("../certify/certification.ts");
  const chosen = chosenChecks(args, checks);
  if (args.list === true) {
    process.stdout.write(listOf(chosen));
    return exitCodes.ok;
  }
  tryReports(args);
  const sale = saleOf(args);
  const { path, line, services } = await lineOf(args);
  if (sale !== undefined && args.yes !== true && !(await isConfirmed(sale, path, chosen))) return exitCodes.unknown;
  const { baudRate, dataBits, parity, stopBits } = line;
  return runJudging({
    subject: path,
    by: "posline certify",
    args,
    chosen,
    refusal: OpenError,
    run: async (judged) => {
      const begins = ({ name, sells }: CertifyCheck, index: number) =>
        showProgress(`${index} of ${chosen.length}: ${name}${sells === true ? ": look at the terminal" : ""}`);
      return certify({ config: line, open: openerOf(line), services, checks: chosen, sale, begins, judged });
    },
    setup: (cases) => {
      if (countOf(cases, "not tested") === cases.length) {
        process.stdout.write(
          `Nothing is claimed of this terminal: posline doctor --line ${quoted(path)} looks for the cause\n`,
        );
      }
      return {
        line: `${baudRate} ${dataBits}${parity.charAt(0).toUpperCase()}${stopBits}`,
        services: services.map(({ contract }) => contract.service).join(", "),
        sales: sale === undefined ? "none" : `${sale.amount} minor units of ${sale.currency}`,
        checks: `${cases.length} of ${checks.length}`,
      };
    },
  });
}

function chosenChecks(
  { check: names, services, withSales = false, closeDay = false }: CertifyArguments,
  all: readonly CertifyCheck[],
): readonly CertifyCheck[] {
  refuseUnknownNames(all, names, "Cannot certify: there is no check");
  const chosen = all.filter((each) => (names?.includes(each.name) ?? true) && (services?.includes(each.service) ?? true));
  if (closeDay && !withSales)
    throw new UsageError("Cannot certify: --close-day is for sales: add --with-sales, or leave it out");
  const asked = chosen.filter(({ sells, closesDay }) => (sells !== true || withSales) && (closesDay !== true || closeDay));
  if (asked.length > 0) return asked;
  throw new UsageError(
    chosen.length > 0
      ? "Cannot certify: these checks move money, print or close the day: add --with-sales, --amount and --currency, or --close-day"
      : "Cannot certify: none of these checks is of these services: name others",
  );
}

function saleOf({ withSales = false, amount, currency }: CertifyArguments): Sale | undefined {
  if (!withSales) {
    const flag = amount !== undefined ? "--amount" : currency !== undefined ? "--currency" : undefined;
    if (flag === undefined) return undefined;
    throw new UsageError(`Cannot certify: ${flag} is for sales: add --with-sales, or leave it out`);
  }
  if (amount === undefined || currency === undefined) {
    throw new UsageError(
      "Cannot certify: --with-sales needs an amount: add --amount in minor units and --currency, such as --amount 100 --currency EUR",
    );
  }
  if (Number.isSafeInteger(amount) && amount > 0) return { amount, currency };
  throw new UsageError(`Cannot certify: --amount is ${amount}: use a whole number of minor units, greater than 0`);
}

interface CertifiedLine {
  readonly path: string;
  readonly line: LineConfig;
  readonly services: readonly CertifiedService[];
}

/** The line's settings are read as `posline emulate` reads them, which is at its other end: from no file, unless one is named. */
async function lineOf(args: CertifyArguments): Promise<CertifiedLine> {
  const { config: file, line: device, baud, merchantIdFile } = args;
  if (device === undefined) {
    throw new UsageError("Cannot certify: no line is named: add --line DEVICE, such as --line /dev/ttyUSB0 or tcp:host:port");
  }
  const flags = { config: file, line: device, baud, merchantIdFile, emulate: {} };
  const { config } = await loadConfig({ env: process.env, flags });
  // The flag has set its path, and is refused if there are several.
  const [[, line] = []] = Object.entries(config.lines);
  if (line === undefined) throw new UsageError("Cannot certify: the configuration has no line: add one, or leave --config out");
  const services = servicesOf(config, args);
  if (services.length === 0) throw new UsageError(`Cannot certify: the configuration has none of these services: name others`);
  return { path: line.path, line, services };
}

function servicesOf({ services: configured }: Config, { services: names }: CertifyArguments): CertifiedLine["services"] {
  const all = Object.values(configured);
  return contractNames.flatMap((name) => {
    if (names !== undefined && !names.includes(name)) return [];
    const service = all.find(({ contract }) => contract === name);
    return service === undefined ? [] : [{ contract: contractOnLine(service), merchantId: service.merchantId }];
  });
}

/** Asks whether money may move. */
async function isConfirmed({ amount, currency }: Sale, path: string, checks: readonly CertifyCheck[]): Promise<boolean> {
  if (process.stdin.isTTY !== true) {
    throw new UsageError("Cannot certify with sales: there is no terminal to ask whether money may move: add --yes");
  }
  const selling = checks.filter(({ sells }) => sells === true).length;
  const asked = `${selling} checks sell, deposit and print on ${path}, each for ${amount} minor units of ${currency}. Money may move. Go on? [y/N] `;
  const answer = await askAtTerminal(process.stderr)(printable(asked));
  if (/^y(?:es)?$/i.test(answer?.trim() ?? "")) return true;
  process.stderr.write("Nothing was sent\n");
  return false;
}

const flags = {
  config: {
    ...sourceFlags.config,
    describe: "Take the line's settings, the services and the merchant's id from this file (default: no file is read)",
  },
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    describe: "The line that the terminal is at: a serial device, a pty, or tcp:host:port",
  },
  baud: sourceFlags.baud,
  "merchant-id-file": {
    type: "string",
    example: "merchant-id",
    describe: "Sign fiscal requests with the merchant's id in this file; without it fiscal isn't asked",
  },
  services: {
    type: "string",
    repeatable: true,
    example: "bank",
    choices: contractNames,
    describe: "Ask only these services, such as bank,fiscal (default: all three)",
  },
  check: { type: "string", repeatable: true, example: "bank-idle", describe: "Make only this check; may be repeated" },
  list: { type: "boolean", describe: "Print the checks, and make none" },
  "with-sales": { type: "boolean", describe: "Make the checks as well that move money, print and change state" },
  amount: { type: "whole", example: "100", describe: "Amount of each sale, in minor units" },
  currency: { type: "string", example: "EUR", describe: "Currency of the sales, as the terminal names it" },
  "close-day": {
    type: "boolean",
    describe: "With sales: close bank's batch and fiscal's shift at the end, and open the shift again",
  },
  yes: { type: "boolean", describe: "Don't ask before money moves" },
  ...reportFlags,
} as const satisfies FlagTable;

export const certifyCommand = defineCommand({
  name: "certify",
  describe: "Judge a terminal by its contracts: what it answers to right requests and wrong ones, sentence by sentence",
  flags,
  epilogue:
    "Use posline doctor to get a line to work, and posline certify to judge the terminal on a line that works. Without --with-sales " +
    "nothing is changed. Stop what has the line open before. " +
    "Exit codes: 0 all passed, 1 one failed, 75 none failed and not all were tested, 69 the line can't be opened.",
  examples: [
    ["certify --line /dev/ttyUSB0 --services bank", "A bank terminal, without a sale"],
    ["certify --line tcp:terminal:4001 --merchant-id-file merchant-id --report terminal.html", "All services, with a report"],
    ["certify --line /dev/ttyUSB0 --with-sales --amount 100 --currency EUR", "With sales of 1.00"],
  ],
  run: runCertify,
});
