import { createHash } from "node:crypto";
import type { WorldSettings, WorldShape } from "./world-schema.ts";

/**
 * The world that the emulator plays: what the terminals of one shop are set up with, and another shop has otherwise. What is the contract's,
 * a bound, or there so that no receipt of the emulator can be taken for a real one, isn't part of it.
 */

export const worldSections = ["bank", "qr", "fiscal"] as const;

export interface World extends WorldSettings {
  /** Tells a world from others; undefined for the built-in one. */
  readonly mark: string | undefined;
}

/** The settings in force if nobody wrote others. */
const builtIn: WorldSettings = {
  bank: {
    terminals: [
      {
        terminal: 1,
        terminalId: "EMU00001",
        name: "Emulated till",
        merchant: 1,
        merchantId: "EMU000000000001",
        merchantName: "Emulated shop",
        mcc: "5999",
        fiscalId: "EMU-FISCAL-1",
      },
      {
        terminal: 1,
        terminalId: "EMU00001",
        name: "Emulated till",
        merchant: 2,
        merchantId: "EMU000000000002",
        merchantName: "Emulated café",
        mcc: "5812",
        fiscalId: "EMU-FISCAL-2",
      },
      {
        terminal: 2,
        terminalId: "EMU00002",
        name: "Emulated kiosk",
        merchant: 3,
        merchantId: "EMU000000000003",
        merchantName: "Emulated cinema",
        mcc: "7832",
        fiscalId: "EMU-FISCAL-3",
      },
    ],
    // ISO 4217: the codes that tills write, and the numbers that acquirers do. XTS is there for tests.
    currencies: {
      EUR: ["978"],
      USD: ["840"],
      GBP: ["826"],
      TRY: ["949"],
      AZN: ["944"],
      UZS: ["860"],
      KZT: ["398"],
      KGS: ["417"],
      RUB: ["643"],
      AMD: ["051"],
      GEL: ["981"],
      XTS: ["963"],
    },
    operations: [
      "terminals",
      "sale",
      "preauth",
      "confirm",
      "cancel",
      "refund",
      "xreport",
      "close-shift",
      "terminate",
      "abort",
      "check",
    ],
    // The contract names no code for a reversal: an approved operation was taken back, so it ends as if it had been declined.
    codes: { declined: -20, cancelled: -21, "card-timeout": -54, reversed: -20, exhausted: -20 },
  },
  qr: {
    systems: [
      { name: "QRPAY", operations: ["showqrcode", "check", "cancel", "refund", "final_confirm"], makesTrans: true },
      { name: "PALM", operations: ["showqrcode", "check", "cancel", "refund"], makesTrans: false },
      { name: "QRBASIC", operations: ["showqrcode", "check"], makesTrans: true },
    ],
  },
  fiscal: {
    operations: [
      "supported_operations",
      "sale",
      "refund",
      "check_status",
      "check_copy",
      "abort",
      "open_shift",
      "close_shift",
      "check_shift",
      "x_report",
      "deposit",
      "withdraw",
      "dates_report",
      "get_info",
    ],
    departments: "any",
    taxes: "any",
    payments: ["cash", "cashless", "credit", "bonuses", "prepayment"],
    extraPayments: { CARD: "cashless", QR: "cashless", PALM: "cashless", BONUS: "bonuses", GIFT: "bonuses" },
    drawer: 0,
    // ISO 4217's code for tests: no receipt of the emulator can be taken for money.
    currency: "XTS",
  },
};

/** The world of these settings; what isn't among them is as in the built-in one. */
export function worldOf({ bank, qr, fiscal }: WorldShape): World {
  const settings: WorldSettings = {
    bank: { ...builtIn.bank, ...bank, codes: { ...builtIn.bank.codes, ...bank?.codes } },
    qr: { ...builtIn.qr, ...qr },
    fiscal: { ...builtIn.fiscal, ...fiscal },
  };
  return { ...settings, mark: markOf(settings) };
}

/** Of what differs from the built-in world alone, so that a setting that a later version adds changes no mark. */
function markOf(settings: WorldSettings): string | undefined {
  const differing = worldSections.flatMap((section) => {
    const [own, usual] = [Object.entries(settings[section]), new Map<string, unknown>(Object.entries(builtIn[section]))];
    return own.flatMap(([key, value]) => {
      const text = JSON.stringify(value);
      return text === JSON.stringify(usual.get(key)) ? [] : `${section}.${key} ${text}`;
    });
  });
  if (differing.length === 0) return undefined;
  return createHash("sha256").update(differing.sort().join("\n")).digest("hex").slice(0, 16);
}

/** What the emulator plays if no file says otherwise. */
export const builtInWorld: World = worldOf({});
