// Preloaded (`node --require`): another platform than Linux, as far as posline can see. `process.platform` is TEST_PLATFORM,
// there is neither /proc nor /sys nor /dev/pts, and what Windows hasn't got of `process` isn't there.
"use strict";
const fs = require("node:fs");

const platform = process.env.TEST_PLATFORM;
Object.defineProperty(process, "platform", { value: platform });
if (platform === "win32") for (const name of ["getuid", "geteuid", "getgid", "getegid", "getgroups"]) process[name] = undefined;

function absent(call, path) {
  return Object.assign(new Error(`ENOENT: no such file or directory, ${call} '${path}'`), { code: "ENOENT", errno: -2, path });
}

function hide(api, fails) {
  for (const [name, original] of Object.entries(api)) {
    if (typeof original !== "function" || /^[A-Z]/.test(name)) continue;
    api[name] = function (path, ...rest) {
      if (typeof path === "string" && /^\/(?:proc|sys|dev\/pts)(?:\/|$)/.test(path)) return fails(name, path, rest);
      return original.call(this, path, ...rest);
    };
  }
}

hide(fs.promises, async (name, path) => {
  throw absent(name, path);
});
hide(fs, (name, path, rest) => {
  if (name === "existsSync") return false;
  if (name.endsWith("Sync")) throw absent(name, path);
  rest.at(-1)(absent(name, path));
});
