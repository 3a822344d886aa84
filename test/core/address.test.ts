import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesOf, canonicalAddress, hostOfAddresses, isLoopback, reachableAddress } from "../../src/core/address.ts";

test("canonicalAddress() writes each address in one form, and leaves a name as it is", () => {
  for (const [written, canonical] of [
    ["0:0:0:0:0:0:0:1", "::1"],
    ["::FFFF:7F00:1", "127.0.0.1"],
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["::127.0.0.1", "::127.0.0.1"],
    ["fd00:0::0:2", "fd00::2"],
    ["127.0.0.1", "127.0.0.1"],
    ["127.1", "127.1"],
    ["till-7.lan", "till-7.lan"],
    ["", ""],
  ] as const) {
    assert.equal(canonicalAddress(written), canonical);
  }
});

test("isLoopback() knows the box's own addresses however they are written, and no name but localhost", () => {
  for (const host of ["localhost", "127.0.0.1", "127.8.9.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"]) {
    assert.equal(isLoopback(host), true, host);
  }
  for (const host of [
    ...["0.0.0.0", "::", "::ffff:10.0.0.5", "10.0.0.5", "127.evil.example", "localhost.evil.example", "127.1", ""],
  ]) {
    assert.equal(isLoopback(host), false, host);
  }
});

test("addressesOf() and hostOfAddresses() have two addresses of localhost, in any order, and one of every other host", () => {
  assert.deepEqual(addressesOf("localhost"), ["127.0.0.1", "::1"]);
  assert.deepEqual(addressesOf("10.0.0.5"), ["10.0.0.5"]);
  assert.equal(hostOfAddresses(["::1", "127.0.0.1"]), "localhost");
  assert.equal(hostOfAddresses(["127.0.0.1"]), "127.0.0.1");
  assert.equal(hostOfAddresses(["10.0.0.5", "::1"]), "10.0.0.5");
});

test("reachableAddress() is one that a client can connect to", () => {
  assert.deepEqual(["0.0.0.0", "::", "localhost", "10.0.0.5"].map(reachableAddress), [
    "127.0.0.1",
    "::1",
    "127.0.0.1",
    "10.0.0.5",
  ]);
});
