// Runs inside the box: tills that ask the bank all the time, until SIGTERM; then it prints what became of each call as JSON.
// Every other till keeps its connection open between calls, and every call that moves money has a key of its own.
import { Agent, request } from "node:http";

const tills = Number(process.argv[2] ?? 4);
const prefix = process.argv[3] ?? "L";
const kept = new Agent({ keepAlive: true });
const outcomes = {};
const errors = {};
/** Why calls were refused. */
const refusals = {};
const sales = [];
let calls = 0;
let slowestMs = 0;
let stopping = false;

const count = (counts, name) => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** The state that a refusal names: `Cannot send to line till: STATE. Nothing was sent, ...`. */
const reasonIn = (text) => /^[^:]*: (.*)\. Nothing was sent/.exec(JSON.parse(text).message)?.[1] ?? text;

/** One call; tells the HTTP status and what posline says became of it, or how the connection failed. */
function ask(route, body, agent) {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port: 8888, method: "POST", path: route, agent };
    const asked = request(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      });
      answer.on("end", () => {
        if (answer.statusCode === 503) count(refusals, reasonIn(text));
        resolve(`${answer.statusCode} ${answer.headers["x-posline-outcome"]}`);
      });
      answer.on("error", (error) => failed(error));
    });
    const failed = (error) => resolve(`${error.code ?? error.message}${asked.reusedSocket ? " on a kept connection" : ""}`);
    asked.on("error", failed);
    asked.end(body);
  });
}

async function till(number) {
  const agent = number % 2 === 0 ? kept : false;
  for (let n = 0; !stopping; n++) {
    const key = `${prefix}-${number}-${n}`;
    const isSale = n % 2 === 0;
    const began = performance.now();
    const body = isSale ? { pay_id: key, amount: 1500, currency_name: "EUR" } : { pay_id: "READY" };
    const ended = await ask(isSale ? "/sale" : "/check", JSON.stringify(body), agent);
    slowestMs = Math.max(slowestMs, performance.now() - began);
    calls++;
    count(/^\d/.test(ended) ? outcomes : errors, ended);
    if (isSale) sales.push([key, ended]);
    if (/^503/.test(ended)) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

process.on("SIGTERM", () => {
  stopping = true;
});
await Promise.all(Array.from({ length: tills }, (_, number) => till(number)));
kept.destroy();
process.stdout.write(JSON.stringify({ calls, slowestMs: Math.round(slowestMs), outcomes, refusals, errors, sales }));
