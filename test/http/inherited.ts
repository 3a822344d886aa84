import { AdminListener } from "../../src/http/admin-listener.ts";
import { socketAt } from "../../src/systemd/descriptors.ts";
import { listenerOf } from "./served.ts";

/** A process that serves on the socket it was started with as descriptor 3, until its standard input ends. */
const listener =
  process.argv[2] === "AdminListener"
    ? new AdminListener({
        config: { host: "127.0.0.1", port: 0 },
        routes: { "GET /thing": () => ({ status: 200, text: "{}" }) },
        error: () => {},
      })
    : listenerOf("bank").listener;
const { holder, port: seen } = socketAt(3);
// Whatever is awaited between the two: nothing may be accepted, and lost, meanwhile.
await new Promise((resolve) => setTimeout(resolve, 50));
const { port } = await listener.listen({ holders: [holder] });
process.stdout.write(`${port} ${seen}\n`);
process.stdin.resume().on("end", () => void listener.close());
