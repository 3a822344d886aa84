import { get } from "node:http";

/** Watches a posline as people do: a status page's stream, a tap, and Prometheus once a second. `watchers.ts URL`. */

const [url = ""] = process.argv.slice(2);

/** Milliseconds between two scrapes: fifteen times as often as usual. */
const scrapeMs = 1_000;

let streams = 0;

function follow(path: string): void {
  get(new URL(path, url), (response) => {
    if (response.statusCode !== 200) throw new Error(`Cannot watch ${path}: HTTP ${response.statusCode}`);
    response.resume();
    if (++streams === 2) console.log(JSON.stringify({ ready: 1 }));
  });
}

follow("/events");
follow("/tap");
setInterval(() => get(new URL("/metrics", url), (response) => response.resume()), scrapeMs);
