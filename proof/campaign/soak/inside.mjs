import { renameSync, writeFileSync } from "node:fs";

/**
 * Loaded into the soak's bridge before it: on SIGUSR2, writes what can only be seen from inside. Plain JavaScript, since the bundle runs
 * without tsx.
 */
const file = process.env["SOAK_INSIDE"] ?? "";

process.on("SIGUSR2", () => {
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  writeFileSync(`${file}.draft`, JSON.stringify({ timers, heapBytes: process.memoryUsage().heapUsed }));
  renameSync(`${file}.draft`, file);
});
