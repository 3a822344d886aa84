import { listenerOf } from "./served.ts";

/** A process that serves on the socket it was started with as descriptor 3, until its standard input ends. */
const { listener } = listenerOf("bank");
const { port } = await listener.listen({ fd: 3 });
process.stdout.write(`${port}\n`);
process.stdin.resume().on("end", () => void listener.close());
