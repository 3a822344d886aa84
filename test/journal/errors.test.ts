import assert from "node:assert/strict";
import { test } from "node:test";
import { JournalError, journalFile, readReason, writeReason } from "../../src/journal/errors.ts";
import { folder } from "./records.ts";
import { systemError } from "./sim-disk.ts";

test("writeReason() says what is wrong and what to do, by the system's code", () => {
  for (const [codes, said] of [
    [
      ["ENOENT", "ENOTDIR"],
      `there is no folder ${folder}: create it for posline's user (sudo install -d -o posline -g posline ${folder})`,
    ],
    [["EACCES", "EPERM"], `no permission in ${folder}: give it to posline's user (sudo chown -R posline:posline ${folder})`],
    [["EROFS"], /^the file system of \/var\/lib\/posline is read-only, .* otherwise mount it for writing$/],
    [["ENOSPC", "EDQUOT"], `the disk is full: free some space (df -h ${folder})`],
    [["EIO"], "write error of the disk (EIO): save its data and replace it (details: sudo dmesg | tail)"],
    [["EISDIR"], `${folder}/journal is a folder: move it away`],
    [["EMFILE"], "EMFILE: of a test"],
  ] as const) {
    for (const code of codes) {
      const reason = writeReason(systemError(code), folder);
      if (typeof said === "string") assert.equal(reason, said);
      else assert.match(reason, said);
    }
  }
  assert.equal(writeReason(new JournalError("as it is"), folder), "as it is");
});

test("readReason() says for who reads what is wrong and what to do", () => {
  for (const [codes, said] of [
    [["ENOENT", "ENOTDIR"], "there is no journal: name its folder with --folder (posline config shows journal.folder)"],
    [
      ["EACCES", "EPERM"],
      "no permission: use sudo, or join the group posline (sudo usermod -aG posline $USER, then log in again)",
    ],
    [["EIO"], "read error of the disk (EIO): save its data and replace it (details: sudo dmesg | tail)"],
    [["EISDIR"], `${folder}/journal is a folder: move it away`],
  ] as const) {
    for (const code of codes) assert.equal(readReason(systemError(code), folder), said);
  }
});

test("journalFile() is the same however the folder's name ends", () => {
  for (const end of ["", "/", "//"]) assert.equal(journalFile(`${folder}${end}`), `${folder}/journal`);
});
