import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below the ports that Linux gives by itself (32768 and up): between two starts of a process no other one is given it there. */
const [portMin, portMax] = [10_240, 32_768] as const;

/** Those that were given already: they may be listened on only later. */
const given = new Set<number>();

/** Ports of localhost on which nothing listens, each only once in this process. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(portMin, portMax);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
