import { setTimeout as pause } from "node:timers/promises";
import { encodeLength } from "../../src/wire/length.ts";
import { answering, type Behaviour, probeReply } from "./terminal.ts";
import { sampledAt } from "./wrong-speed.ts";

/** Terminals that don't answer as they should, each in one of the ways met at tills. */

const replyOf = (asked: Parameters<Behaviour>[0]) => probeReply(asked) ?? '{"status":"success"}';

export const healthy = answering(() => '{"status":"success"}');

export const silent: Behaviour = () => {};

export const garbage: Behaviour = (_, terminal) => terminal.send(Buffer.from("\x02\x81garbage\xff\xfe", "latin1"));

export const otherCrc: Behaviour = (asked, terminal) =>
  terminal.send(Buffer.concat(encodeLength("umts", [Buffer.from(replyOf(asked))])));

export const wrongSpeed: Behaviour = (asked, terminal) =>
  terminal.send(sampledAt(terminal.frame(asked.framing, replyOf(asked)), 9_600, 115_200));

export const echo: Behaviour = ({ framing, text }, terminal) => terminal.reply(framing, text);

/** A console: it gives back what is typed, and asks for a name. */
export const loginPrompt: Behaviour = ({ framing, text }, terminal) =>
  terminal.send(
    Buffer.concat([terminal.frame(framing, text), Buffer.from("\r\n\r\nDebian GNU/Linux 12 box ttyS0\r\n\r\nbox login: ")]),
  );

/** It is still starting: it answers what it was asked, in order, once it is up. */
export const lateBy =
  (ms: number): Behaviour =>
  async (asked, terminal) => {
    if (asked.number === 1) await pause(ms);
    await terminal.reply(asked.framing, replyOf(asked));
  };
