import { signOf } from "../../src/envelope/sign.ts";

/** A bridge that asks for a sign and a key, both of which are secrets, and what a till sends it. */

const merchantId = "SECRET-MERCHANT-77";
const apiKey = "SECRET-API-KEY-88";

export const services = { fiscal: { merchantId }, bank: { apiKey }, qr: {} };

export const key = { "x-api-key": apiKey };

export const signed = (json: string) => {
  const data = Buffer.from(json).toString("base64");
  return `data=${data}&sign=${signOf(data, merchantId)}`;
};
