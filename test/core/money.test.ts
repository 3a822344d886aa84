import assert from "node:assert/strict";
import { test } from "node:test";
import { moneyText } from "../../src/core/money.ts";

test("moneyText() writes minor units with the currency's decimals, to the digit, and as they are if it isn't known", () => {
  assert.equal(moneyText("12500", "EUR"), "125.00 EUR");
  assert.equal(moneyText("7", "EUR"), "0.07 EUR");
  assert.equal(moneyText("1500", "JPY"), "1500 JPY");
  assert.equal(moneyText("1500", "KWD"), "1.500 KWD");
  assert.equal(moneyText("9007199254740993", "EUR"), "90071992547409.93 EUR");
  assert.equal(moneyText("1500", "ZZZ"), "1500 minor units ZZZ");
  assert.equal(moneyText("7"), "7 minor units");
});
