import assert from "node:assert/strict";
import { test } from "node:test";
import { maskCardNumbers } from "../../src/core/card-number.ts";

// Public test numbers of the card schemes.
for (const [number, masked] of [
  ["4111111111111111", "411111******1111"],
  ["5555555555554444", "555555******4444"],
  ["2223003122003222", "222300******3222"],
  ["378282246310005", "378282*****0005"],
  ["30569309025904", "305693****5904"],
  ["3530111333300000", "353011******0000"],
  ["6011111111111117", "601111******1117"],
  ["6200000000000005", "620000******0005"],
  ["PAY-4111111111111111", "PAY-411111******1111"],
  ["4111111111111111.5555555555554444", "411111******1111.555555******4444"],
] as const) {
  test(`maskCardNumbers() cuts ${number}`, () => {
    assert.equal(maskCardNumbers(number), masked);
  });
}

for (const id of [
  "4111111111111112", // wrong check digit
  "41111111111111111", // no issuer has 17 digits here
  "1700000000000000", // a time in microseconds
  "1111111111111117", // begins like no issuer
  "20240131123456781", // a time of day and a counter
  "2024013112345673",
  "ORDER-1001",
  "A-1",
  "550e8400-e29b-41d4-a716-446655440000",
  "00004111111111111111", // a longer run of digits
  "",
]) {
  test(`maskCardNumbers() leaves the id "${id}" as it is`, () => {
    assert.equal(maskCardNumbers(id), id);
  });
}
