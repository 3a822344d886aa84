#!/usr/bin/env node
"use strict";
// posline's first lines, in words that a Node of 2017 can read: one that is too old can't even parse main.cjs, and would say only that.
const oldest = [20, 19];
const here = process.versions.node.split(".").map(Number);
if (here[0] > oldest[0] || (here[0] === oldest[0] && here[1] >= oldest[1])) {
  // Node opens its debugger on this signal unless somebody listens.
  process.on("SIGUSR1", () => {});
  require("./main.cjs");
} else {
  const cure = "install a newer Node, or the package posline-standalone, which brings its own";
  process.stderr.write(
    `Cannot run posline: this is Node ${process.versions.node}, and posline needs ${oldest.join(".")} or newer: ${cure}\n`,
  );
  process.exitCode = 69;
}
