import type { LineConfig } from "../config/config.ts";
import { readTcpAddress } from "../config/device-name.ts";
import { type SerialPortOptions, serialPort } from "./serial-port.ts";
import type { OpenTransport } from "./transport.ts";

/** How a line's path is opened: it is dialled if it is an address, by what is loaded only then, and is a serial device otherwise. */
export function openerOf(config: LineConfig, options: SerialPortOptions = {}): OpenTransport {
  const address = readTcpAddress(config.path);
  if (address === undefined) return serialPort(config, options);
  let open: OpenTransport | undefined;
  return async (handler) => {
    open ??= (await import("./tcp-port.ts")).tcpPort(address);
    return open(handler);
  };
}
