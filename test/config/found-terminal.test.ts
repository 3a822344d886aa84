import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "../../src/config/config.ts";
import { type DeviceState, type FoundTerminal, placeOf, terminalSettings } from "../../src/config/found-terminal.ts";
import { lineDefaults, logDefaults } from "../../src/config/limits.ts";
import type { ContractName } from "../../src/core/call.ts";
import { serviceConfigOf } from "../support/service-config.ts";

const found: FoundTerminal = { path: "/dev/new", baudRate: 9_600, crc16: "umts", contracts: ["bank", "qr"] };

/** Lines by name, each with its services by their names. */
function configOf(lines: Readonly<Record<string, Readonly<Record<string, ContractName>>>>): Config {
  const services = Object.entries(lines).flatMap(([line, each]) =>
    Object.entries(each).map(([name, contract]) => [name, serviceConfigOf({ contract, line })] as const),
  );
  return {
    lines: Object.fromEntries(Object.keys(lines).map((name) => [name, { ...lineDefaults, path: `/dev/${name}` }])),
    services: Object.fromEntries(services),
    journal: false,
    log: logDefaults,
  };
}

const states = (given: Readonly<Record<string, DeviceState>>) => new Map(Object.entries(given));

test("placeOf() gives a terminal a line of its own where no line has one of its services", () => {
  const config = configOf({ till: { fiscal: "fiscal" } });
  for (const state of ["other", "away"] as const) {
    const place = placeOf(config, found, states({ till: state }));
    assert.deepEqual(place, { line: "till-2", state: "new" });
  }
  assert.deepEqual(placeOf(configOf({}), found, states({})), { line: "till", state: "new" });
});

test("placeOf() gives a terminal the line that waits for its services, and the line that has its device before any other", () => {
  const config = configOf({ one: { fiscal: "fiscal" }, two: { bank: "bank", "bank-2": "bank" } });
  assert.deepEqual(placeOf(config, found, states({ one: "other", two: "away" })), { line: "two", state: "away" });
  assert.deepEqual(placeOf(config, found, states({ one: "away", two: "this" })), { line: "two", state: "this" });
});

test("placeOf() refuses what would leave open which of two terminals a sale goes to", () => {
  const there = placeOf(configOf({ one: { bank: "bank" } }), found, states({ one: "other" }));
  assert.match(String(there), /^bank is on line one \(\/dev\/one\) already: unplug that device/);
  const both = placeOf(configOf({ one: { bank: "bank" }, two: { qr: "qr" } }), found, states({ one: "away", two: "away" }));
  assert.match(String(both), /^lines one and two both wait for such a terminal/);
  const split = placeOf(configOf({ one: { bank: "bank" }, two: { qr: "qr" } }), found, states({ one: "away", two: "other" }));
  assert.match(String(split), /^qr is on line two/);
});

test("terminalSettings() of a line with this device corrects its settings, adds what answered, and takes no service away", () => {
  const config = configOf({ till: { fiscal: "fiscal", bank: "bank" } });
  assert.deepEqual(terminalSettings(config, found, { line: "till", state: "this" }), {
    lines: { till: { baudRate: 9_600, crc16: "umts" } },
    services: { qr: { line: "till" } },
  });
});

test("terminalSettings() of a line with this device leaves a service to the other line that has it", () => {
  const config = configOf({ till: { bank: "bank" }, two: { qr: "qr" } });
  const place = placeOf(config, found, states({ till: "this", two: "other" }));
  assert.deepEqual(place, { line: "till", state: "this" });
  const settings = terminalSettings(config, { ...found, baudRate: 115_200, crc16: undefined }, { line: "till", state: "this" });
  assert.deepEqual(settings, { lines: {}, services: {} });
});

test("terminalSettings() of a line that gets another device takes away services that did not answer, and the old wire's settings", () => {
  const config = configOf({ till: { fiscal: "fiscal", bank: "bank", qr: "qr" } });
  const lines = { till: { ...lineDefaults, path: "/dev/till", parity: "even" as const, pauseMs: 5 } };
  const away = { line: "till", state: "away" } as const;
  assert.deepEqual(terminalSettings({ ...config, lines }, { ...found, baudRate: 115_200, crc16: undefined }, away), {
    lines: { till: { path: "/dev/new", parity: "none" } },
    services: { fiscal: null },
  });
});
