/** Currencies whose minor unit isn't a hundredth, by decimals (ISO 4217); browsers' own tables differ from it, and from each other. */
const decimals: Readonly<Record<number, string>> = {
  0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};

const currencies = new Set(Intl.supportedValuesOf("currency"));

/** How many decimals an amount has; undefined if it is no whole number of minor units, or of no currency that is known. */
export function decimalsOf(digits: string, currency: string): number | undefined {
  if (!/^\d+$/.test(digits) || !currencies.has(currency)) return undefined;
  return Number(Object.keys(decimals).find((each) => decimals[Number(each)]?.includes(currency)) ?? 2);
}

/** Minor units as money, exact whatever their size: "125.00 EUR"; if the currency isn't known, as minor units. */
export function moneyText(digits: string, currency = ""): string {
  const places = decimalsOf(digits, currency);
  if (places === undefined) return `${digits} minor units ${currency}`.trim();
  const padded = digits.padStart(places + 1, "0");
  const whole = padded.slice(0, padded.length - places);
  return `${whole}${places === 0 ? "" : `.${padded.slice(-places)}`} ${currency}`;
}
