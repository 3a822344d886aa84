import assert from "node:assert/strict";
import { existsSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { scratchFolder } from "./bridge-process.ts";
import { Pty } from "./pty.ts";

const folder = scratchFolder();
after(() => folder.remove());

test("Pty.unplug() takes its link away: the next pty of any process may get its number", () => {
  const link = join(folder.path, "tty");
  const first = new Pty(() => {}).linkAt(link);
  first.unplug();
  const other = new Pty(() => {});
  // Through a link that stayed, posline would open this one and answer its owner's requests.
  assert.equal(existsSync(link), false);
  other.unplug();
});

test("Pty.unplug() leaves the link of the pty that took its place", () => {
  const link = join(folder.path, "replugged");
  const first = new Pty(() => {}).linkAt(link);
  const second = new Pty(() => {}).linkAt(link);
  first.unplug();
  assert.equal(readlinkSync(link), second.path);
  second.unplug();
});
