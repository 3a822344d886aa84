import type { Ask, Json, Row } from "./conformance-rows.ts";

/** The qr service's rows. It has one code, 1, for whatever is wrong. */

type Qr = Omit<Row, "service">;

const shown = { pay_id: "P-1", amount: 1000, currency: "978", currency_name: "EUR", pay_system: "QRPAY" };
/** The first of the emulator's own references: the same after each reset. */
const rrn = "000000000001";
const trans = `EMU${rrn}`;
const show: Ask = { route: "/showqrcode", body: shown };
const asked = { pay_id: "P-1", trans, pay_system: "QRPAY" };
const check: Ask = { route: "/check", body: asked };
const paid: readonly Ask[] = [show, check, check];
const back = { trans, pay_id: "P-1", rrn, amount: 400, currency: "978", pay_system: "QRPAY" };

/** What each route with a body answers to a request that lacks a field, is no JSON, or names the wrong system. */
const wrong = (route: string, body: Json, field: string, before: readonly Ask[] = []): readonly Qr[] => [
  { route, raw: "no json", before, case: 1, why: "no JSON" },
  { route, body: { ...body, [field]: undefined }, before, case: 1, why: `no ${field}` },
  { route, body: { ...body, pay_system: "qrpay" }, before, case: 1, why: "pay_system is case-sensitive" },
];

const givingBack = (route: string): readonly Qr[] => [
  { route, body: back, before: paid, case: "success", has: ["data.rrn"] },
  ...wrong(route, back, "rrn", paid),
  { route, body: { ...back, trans: "EMU9" }, before: paid, case: 1, why: "wrong trans" },
  { route, body: { ...back, rrn: "999999999999" }, before: paid, case: 1, why: "wrong rrn" },
  { route, body: { ...back, amount: 1001 }, before: paid, case: 1, why: "more than was paid" },
  { route, body: back, before: [show], case: 1, why: "not paid yet" },
];

export const qrRows: readonly Qr[] = [
  { route: "/check_connection", case: "success", has: ["data.systems"] },
  { ...show, case: "success", has: ["data.trans"] },
  { ...show, before: [show], case: "resend", has: ["data.trans"] },
  ...wrong("/showqrcode", shown, "amount"),
  {
    route: "/showqrcode",
    body: { ...shown, amount: 1100 },
    before: [show],
    case: 1,
    why: "another amount under the same pay_id",
  },
  { ...show, outcome: { name: "internal-error" }, case: 1, why: "nothing is begun" },
  { ...check, before: [show], case: "success", why: "in progress" },
  { ...check, before: paid.slice(0, 2), case: "success", has: ["data.rrn"], why: "paid" },
  { ...check, before: paid, case: "resend", has: ["data.rrn"] },
  ...wrong("/check", asked, "trans", [show]),
  { route: "/check", body: { ...asked, trans: "EMU9" }, before: [show], case: 1, why: "wrong trans" },
  { route: "/check", body: { ...asked, pay_id: "P-9" }, before: [show], case: 1, why: "unknown pay_id" },
  { ...check, before: [{ route: "/showqrcode", body: { ...shown, amount: 1020 } }, check], case: 1, why: "declined" },
  ...givingBack("/cancel"),
  ...givingBack("/refund"),
  { route: "/final_confirm", body: { ...asked, rrn }, before: paid, case: "success" },
  { route: "/final_confirm", body: { pay_system: "QRPAY" }, case: "success" },
  { route: "/final_confirm", body: {}, case: 1, why: "no pay_system" },
  { route: "/final_confirm", body: { pay_system: "QRBASIC" }, case: 1, why: "not enabled for the system" },
];
